//! `xmem diff`.

mod args;
mod error;
mod run;

pub(crate) use args::DiffArgs;
pub(crate) use run::run;
