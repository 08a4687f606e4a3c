//! Servers that end.

use crate::error::Failure;
use crate::exit::Exit;
use miette::Diagnostic;
use thiserror::Error;
use xmem_serve::ServeError;

/// A server that cannot start, or ends.
#[derive(Debug, Error, Diagnostic)]
#[error(transparent)]
pub(crate) struct ServeFailure(#[from] ServeError);

impl Failure for ServeFailure {
    fn exit(&self) -> Exit {
        match self.0 {
            ServeError::Site { .. } | ServeError::Certificate { .. } => Exit::Usage,
            _ => Exit::Unreadable,
        }
    }
}
