//! `xmem check`.

mod answers;
mod args;
mod baseline;
mod cache;
mod error;
mod kubernetes;
mod law;
mod question;
mod run;
mod skypilot;
mod slurm;
mod subject;

pub(crate) use args::{CheckArgs, SHORT_HELP};
pub(crate) use error::CheckFailure;
pub(crate) use run::run;
pub(crate) use slurm::{Decided, submission};
