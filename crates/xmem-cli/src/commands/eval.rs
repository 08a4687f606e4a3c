//! `xmem eval`.

mod args;
mod cluster;
mod error;
mod exports;
mod figures;
mod graph_source;
mod jobs;
mod lanes;
mod matrix;
mod measured;
mod output;
mod place;
mod readings;
mod results;
mod rounds;
mod run;
mod store;

pub(crate) use args::{EvalArgs, SHORT_HELP};
pub(crate) use error::EvalFailure;
pub(crate) use run::run;
