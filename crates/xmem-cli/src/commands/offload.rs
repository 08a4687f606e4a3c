//! `xmem offload`.

mod args;
mod error;
mod run;

pub(crate) use args::{OffloadArgs, SHORT_HELP, policy};
pub(crate) use error::OffloadFailure;
pub(crate) use run::{error, run};
