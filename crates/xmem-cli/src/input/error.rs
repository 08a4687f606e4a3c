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
        Io { path: PathBuf, source: std::io::Error } => Unreadable XM0201 {
            title: "unreadable input",
            cause: "The file does not exist, is a folder, or cannot be read.",
            example: "xmem inspect missing.json",
            fix: "Check the path and the permissions of the file with `ls -l FILE`. `-` reads standard input.",
        },
        #[error("{input} {limit}")]
        #[diagnostic(help("{advice}"))]
        TooLarge { input: String, limit: ExceededLimit, advice: &'static str } => Unreadable XM0202 {
            title: "input beyond a limit",
            cause:
                "The input is larger than xmem accepts for a file of this kind. The limit protects against damaged and \
                 hostile files.",
            example: "xmem simulate huge.json",
            fix:
                "Check that the file is the right one. For a large trace, raise the limit, for example `--max-input \
                 200GiB`.",
        },
        #[error("{input} is empty")]
        Empty { input: String } => Unreadable XM0203 {
            title: "empty input",
            cause: "The file has no content, often because the program that writes it was stopped.",
            example: "xmem simulate empty.json",
            fix: "Write the file again. `xmem profile -- python train.py` records a trace.",
        },
    }
}
