//! Recordings that cannot be read.

use crate::error::{CliError, failures};
use crate::terminal::shown;
use miette::Diagnostic;
use std::path::PathBuf;
use thiserror::Error;
use xmem::InputError;
use xmem::trace::ReadError;
use xmem_eval::SnapshotError;

failures! {
    /// A recording that cannot be read.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum ReadingFailure {
        #[error(transparent)]
        Trace(ReadError) => Unreadable,
        #[error("{error}")]
        #[diagnostic(help(
            "if the file is genuine, allow more with --max-input, for example --max-input 200GiB"
        ))]
        TraceLimit { error: ReadError } => Unreadable,
        #[error("cannot read the snapshot `{}`", shown(path))]
        Snapshot { path: PathBuf, source: Box<SnapshotError> } => Unreadable,
    }
}

impl From<ReadError> for CliError {
    fn from(error: ReadError) -> Self {
        match error {
            error @ ReadError::InflateLimit { .. } => ReadingFailure::TraceLimit { error },
            other => ReadingFailure::Trace(other),
        }
        .into()
    }
}

impl From<InputError> for CliError {
    fn from(error: InputError) -> Self {
        match error {
            InputError::Trace(error) => error.into(),
            InputError::Snapshot { input, source } => {
                ReadingFailure::Snapshot { path: PathBuf::from(input), source }.into()
            }
        }
    }
}
