//! `xmem look`.

mod args;
mod run;

pub(crate) use args::LookArgs;
pub(crate) use run::run;
