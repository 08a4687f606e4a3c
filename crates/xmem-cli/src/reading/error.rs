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
        Trace(ReadError) => Unreadable XM0211 {
            title: "unreadable trace",
            cause: "The file does not exist, is not a trace of torch.profiler, or is damaged.",
            example: "xmem replay notes.txt --device t4-16g",
            fix:
                "Give the file that `xmem profile -- python train.py` or `export_chrome_trace` wrote. `xmem inspect \
                 TRACE` shows the contents of a trace.",
        },
        #[error("{error}")]
        #[diagnostic(help(
            "if the file is genuine, allow more with --max-input, for example --max-input 200GiB"
        ))]
        TraceLimit { error: ReadError } => Unreadable XM0212 {
            title: "trace beyond the limit of its size",
            cause:
                "The text of the trace is longer than the limit. A small compressed file can hold a very long text.",
            example: "xmem replay huge.json.gz --device t4-16g",
            fix: "If the file is genuine, raise the limit, for example `--max-input 200GiB`.",
        },
        #[error("cannot read the snapshot `{}`", shown(path))]
        Snapshot { path: PathBuf, source: Box<SnapshotError> } => Unreadable XM0213 {
            title: "unreadable memory snapshot",
            cause: "The file is not a memory snapshot of PyTorch, or is damaged.",
            example: "xmem snapshot info weights.pickle",
            fix:
                "Give the file that `torch.cuda.memory._dump_snapshot` wrote. `xmem snapshot info FILE` shows the \
                 contents of a snapshot.",
        },
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
