//! Snapshots that cannot be replayed.

use crate::error::Failure;
use crate::exit::Exit;
use miette::Diagnostic;
use thiserror::Error;
use xmem_eval::RerunError;

/// A snapshot that cannot be replayed.
#[derive(Debug, Error, Diagnostic)]
#[error("cannot replay `{snapshot}`")]
pub(crate) struct RerunFailure {
    pub(crate) snapshot: String,
    pub(crate) source: RerunError,
}

impl RerunFailure {
    pub(crate) fn new(snapshot: &str, source: RerunError) -> Self {
        Self { snapshot: snapshot.to_owned(), source }
    }
}

impl Failure for RerunFailure {
    fn exit(&self) -> Exit {
        match self.source {
            RerunError::Setup(_) => Exit::Usage,
            _ => Exit::Unreadable,
        }
    }
}
