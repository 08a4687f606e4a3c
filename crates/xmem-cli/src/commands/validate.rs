//! `xmem validate`.

mod args;
mod error;
mod run;

pub(crate) use args::ValidateArgs;
pub(crate) use run::{check, run};
