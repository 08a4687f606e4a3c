//! `xmem look`.

mod args;
mod error;
mod run;

pub(crate) use args::{LookArgs, SHORT_HELP};
pub(crate) use error::LookFailure;
pub(crate) use run::run;
