//! `xmem estimate`.

mod args;
mod batches;
mod error;
mod law;
mod page;
mod run;

pub(crate) use args::{EstimateGraphArgs, SHORT_HELP};
pub(crate) use run::run;
