//! Questions that `xmem replay` does not answer.

use crate::error::failures;
use crate::terminal::shown;
use miette::Diagnostic;
use std::path::PathBuf;
use thiserror::Error;
use xmem_report::lines::ReadLinesError;

failures! {
    /// A question that is not answered, or answers that cannot be kept.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum ReplayFailure {
        #[error("--snapshot writes a single run, but {count} {of} were given")]
        #[diagnostic(help("run the command once for each, with a different --snapshot file"))]
        SnapshotOfSeveral { count: usize, of: &'static str } => Usage,
        #[error("--vary answers one question about one trace: {problem}")]
        #[diagnostic(help("{advice}"))]
        Vary { problem: String, advice: &'static str } => Usage,
        #[error("--tune answers one question about one trace, as text or JSON")]
        #[diagnostic(help("give one trace, one device and one --alloc-conf, and --format text or json"))]
        TuneOfSeveral => Usage,
        #[error("--skip-done needs --format jsonl or csv")]
        #[diagnostic(help("add --format jsonl or --format csv"))]
        SkipDoneForm => Usage,
        #[error("--skip-done cannot be used with standard input")]
        #[diagnostic(help("give file names: an answer is found again by the name of its trace"))]
        SkipDoneStdin => Usage,
        #[error("--skip-done cannot continue `{}`", shown(path))]
        #[diagnostic(help(
            "the file was not changed; give another --output, or remove --skip-done to start over"
        ))]
        SkipDone { path: PathBuf, source: Box<ReadLinesError> } => Unreadable,
        #[error("cannot append to `{}`", shown(path))]
        #[diagnostic(help(
            "the lines already written are kept: check disk space and permissions, then continue with \
             --skip-done"
        ))]
        Append { path: PathBuf, source: std::io::Error } => Unreadable,
    }
}
