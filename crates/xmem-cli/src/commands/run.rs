//! `xmem run`.

mod args;
mod error;
mod planned;
mod present;
#[expect(clippy::module_inception, reason = "the work of the command, as in the others")]
mod run;

pub(crate) use args::RunArgs;
pub(crate) use error::RunFailure;
pub(crate) use run::run;
