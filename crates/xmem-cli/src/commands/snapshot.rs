//! `xmem snapshot`.

mod args;
mod error;
mod run;

pub(crate) use args::SnapshotArgs;
pub(crate) use error::RerunFailure;
pub(crate) use run::{read, run};
