//! `xmem estimate`.

mod args;
mod batches;
mod error;
mod law;
mod page;
mod question;
mod run;
mod search;

pub(crate) use args::{EstimateGraphArgs, SHORT_HELP};
pub(crate) use error::EstimateGraphFailure;
pub(crate) use run::run;
