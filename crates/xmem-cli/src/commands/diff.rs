//! `xmem diff`.

mod args;
mod error;
mod run;

pub(crate) use args::{DiffArgs, SHORT_HELP};
pub(crate) use error::DiffFailure;
pub(crate) use run::run;
