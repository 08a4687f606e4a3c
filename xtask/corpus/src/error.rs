//! What tasks on recorded jobs can fail with.

use std::path::PathBuf;
use xmem_task::TaskError;

/// Why a task on recorded jobs did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CorpusError {
    /// A script, a case or a list is not as it should be.
    #[error("cannot use {}: {what}", .path.display())]
    Unusable { path: PathBuf, what: String },
    /// Estimates are further off than they may be; each bound was printed.
    #[error("{task}: {count} bounds are broken, see above")]
    Bounds { task: &'static str, count: usize },
}

impl TaskError for CorpusError {}
