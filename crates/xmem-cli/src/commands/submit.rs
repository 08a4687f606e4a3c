//! `xmem submit`.

mod args;
mod error;
mod run;

pub(crate) use args::SubmitArgs;
pub(crate) use error::SubmitFailure;
pub(crate) use run::run;
