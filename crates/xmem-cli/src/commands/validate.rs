//! `xmem validate`.

mod args;
mod error;
mod run;

pub(crate) use args::{SHORT_HELP, ValidateArgs};
pub(crate) use run::{check, run};
