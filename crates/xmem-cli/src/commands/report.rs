//! `xmem report`.

mod args;
mod error;
mod html;
mod names;
mod picture;
mod run;
mod settings;
pub(crate) mod what_ifs;

pub(crate) use args::{ReportArgs, SHORT_HELP};
pub(crate) use error::ReportFailure;
pub(crate) use run::run;
