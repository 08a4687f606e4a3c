//! `xmem look`.

mod args;
mod error;
mod run;

pub(crate) use args::LookArgs;
pub(crate) use run::run;
