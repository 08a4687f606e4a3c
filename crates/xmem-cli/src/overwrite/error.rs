//! Outputs that would replace other files.

use crate::error::failures;
use miette::Diagnostic;
use thiserror::Error;

failures! {
    /// An output that would replace another file of the command.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum OverwriteFailure {
        #[error("`{option} {output}` would replace the input {input}")]
        #[diagnostic(help("give another file name; nothing was read or written"))]
        Input { option: &'static str, output: String, input: String } => Usage,
        #[error("`{option} {output}` would replace the file of {first}")]
        #[diagnostic(help("give two different file names; nothing was read or written"))]
        Output { option: &'static str, output: String, first: &'static str } => Usage,
    }
}
