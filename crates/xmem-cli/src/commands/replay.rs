//! `xmem replay`.

mod args;
mod batch;
mod collect;
mod dataset;
mod error;
mod interrupt;
mod lengths;
mod next;
mod ranks;
mod resume;
mod run;
mod settings;
mod snapshot;
mod stream;
mod summary;
mod trace_error;
mod tune;

pub(crate) use args::{ReplayArgs, SHORT_HELP};
pub(crate) use error::ReplayFailure;
pub(crate) use run::{check, run};
