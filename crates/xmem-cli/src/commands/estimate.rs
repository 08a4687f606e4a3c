//! `xmem estimate`.

mod args;
mod error;
mod run;
mod source;
mod workload;

pub(crate) use args::{EstimateGraphArgs, SHORT_HELP};
pub(crate) use run::run;
