//! `xmem snapshot`.

mod args;
mod error;
mod run;

pub(crate) use args::SnapshotArgs;
pub(crate) use error::{EXPLAINED, RerunFailure};
pub(crate) use run::{read, run};
