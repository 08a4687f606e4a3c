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
        File { path: PathBuf, source: std::io::Error } => Unreadable XM0301 {
            title: "result that cannot be written",
            cause:
                "The folder does not exist, is not writable, or its file system is full. The file was not changed.",
            example: "xmem replay trace.json.zst --device t4-16g -o missing/answer.json",
            fix: "Check the folder and the free space with `ls -ld FOLDER` and `df FOLDER`, or give another file.",
        },
        #[error("cannot write to standard output")]
        Stdout { source: std::io::Error } => Unreadable XM0302 {
            title: "closed or full standard output",
            cause: "The result cannot be written to standard output, for example because its file system is full.",
            example: "xmem replay trace.json.zst --device t4-16g > /dev/full",
            fix: "Check the free space with `df`, or write to a file with `-o FILE`.",
        },
    }
}
