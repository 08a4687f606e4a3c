//! `xmem simulate`.

mod args;
mod error;
mod plan;
mod run;

pub(crate) use args::SimulateArgs;
pub(crate) use run::run;
