//! `xmem simulate`.

mod args;
mod plan;
mod run;

pub(crate) use args::SimulateArgs;
pub(crate) use run::run;
