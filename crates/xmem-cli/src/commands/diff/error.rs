//! Runs that cannot be compared.

use crate::error::failures;
use miette::Diagnostic;
use thiserror::Error;
use xmem_report::json::AnswerError;

failures! {
    /// A run that cannot be compared.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum DiffFailure {
        #[error("cannot read {input} as an answer")]
        #[diagnostic(help(
            "give a trace, a memory snapshot, or one answer that `xmem replay --format json` of this version wrote"
        ))]
        Answer { input: String, source: Box<AnswerError> } => Unreadable,
        #[error("{input} is a JSON answer, which cannot be grouped by {key}")]
        #[diagnostic(help(
            "an answer in JSON has the bytes of roles only: use --by role, or give the traces (or snapshots) \
             themselves, with --device"
        ))]
        KeyOfAnswer { input: String, key: &'static str } => Usage,
    }
}
