//! `xmem simulate`.

mod args;
mod error;
mod plan;
mod run;

pub(crate) use args::{SHORT_HELP, SimulateArgs};
pub(crate) use error::SimulateFailure;
pub(crate) use run::run;
