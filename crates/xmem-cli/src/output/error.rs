//! Results that cannot be written.

use crate::error::failures;
use crate::terminal::shown;
use miette::Diagnostic;
use std::path::PathBuf;
use thiserror::Error;

failures! {
    /// A result that cannot be written.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum OutputFailure {
        #[error("cannot write `{}`", shown(path))]
        #[diagnostic(help(
            "the file was not changed; check that the directory exists, is writable and has free space"
        ))]
        File { path: PathBuf, source: std::io::Error } => Unreadable,
        #[error("cannot write to standard output")]
        Stdout { source: std::io::Error } => Unreadable,
    }
}
