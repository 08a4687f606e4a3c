//! `xmem snapshot`.

mod args;
mod run;

pub(crate) use args::SnapshotArgs;
pub(crate) use run::{read, run};
