//! Inputs that cannot be read.

use crate::error::failures;
use crate::terminal::shown;
use miette::Diagnostic;
use std::path::PathBuf;
use thiserror::Error;
use xmem::types::ExceededLimit;

failures! {
    /// An input that cannot be read.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum InputFailure {
        #[error("cannot read `{}`", shown(path))]
        #[diagnostic(help("give the path of a complete, readable file, or `-` for standard input"))]
        Io { path: PathBuf, source: std::io::Error } => Unreadable,
        #[error("{input} {limit}")]
        #[diagnostic(help("{advice}"))]
        TooLarge { input: String, limit: ExceededLimit, advice: &'static str } => Unreadable,
        #[error("{input} is empty")]
        Empty { input: String } => Unreadable,
    }
}
