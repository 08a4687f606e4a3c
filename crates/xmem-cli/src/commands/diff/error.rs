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
        Answer { input: String, source: Box<AnswerError> } => Unreadable XM0431 {
            title: "unreadable answer",
            cause: "The file is JSON, but not one answer of `xmem replay --format json` of this version.",
            example: "xmem diff answers.jsonl after.json.zst --device t4-16g",
            fix:
                "Give a trace, a snapshot, or the file that `xmem replay TRACE --device NAME --format json -o FILE` \
                 writes.",
        },
        #[error("{input} is a JSON answer, which cannot be grouped by {key}")]
        #[diagnostic(help(
            "an answer in JSON has the bytes of roles only: use --by role, or give the traces (or snapshots) \
             themselves, with --device"
        ))]
        KeyOfAnswer { input: String, key: &'static str } => Usage XM0432 {
            title: "JSON answer without these groups",
            cause: "An answer in JSON has the bytes of roles only. It cannot be grouped by module, line or operator.",
            example: "xmem diff before.json after.json --by module",
            fix:
                "Use `--by role`, or compare the traces themselves: `xmem diff A.json.zst B.json.zst --device NAME \
                 --by module`.",
        },
    }
}
