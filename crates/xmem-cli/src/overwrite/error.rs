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
        Input { option: &'static str, output: String, input: String } => Usage XM0311 {
            title: "output that would replace another file",
            cause:
                "Two options of the command name the same file, or an output has the name of an input. Nothing was \
                 read or written.",
            example: "xmem replay trace.json --device t4-16g -o trace.json",
            fix: "Give the output another name, for example `-o answer.json`.",
        },
        #[error("`{option} {output}` would replace the file of {first}")]
        #[diagnostic(help("give two different file names; nothing was read or written"))]
        Output { option: &'static str, output: String, first: &'static str } => Usage XM0311,
    }
}
