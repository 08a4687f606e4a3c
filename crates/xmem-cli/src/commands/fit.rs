//! `xmem fit`.

mod args;
mod candidates;
mod error;
mod law;
mod page;
mod progress;
mod recordings;
mod run;
mod template;

pub(crate) use args::{FitArgs, SHORT_HELP};
pub(crate) use error::FitFailure;
pub(crate) use run::run;
