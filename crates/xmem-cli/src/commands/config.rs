//! `xmem config`.

mod args;
mod error;
mod lua;
mod run;

pub(crate) use args::ConfigArgs;
pub(crate) use error::ConfigCommandFailure;
pub(crate) use run::run;
