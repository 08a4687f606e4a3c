//! `xmem offload`.

mod args;
mod error;
mod run;

pub(crate) use args::{OffloadArgs, PolicySelection, policy};
pub(crate) use run::{error, policies, run};
