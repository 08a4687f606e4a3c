//! `xmem offload`.

mod args;
mod run;

pub(crate) use args::{OffloadArgs, PolicySelection, policy};
pub(crate) use run::{error, policies, run};
