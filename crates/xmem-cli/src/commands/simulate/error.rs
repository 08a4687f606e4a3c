//! Options that do not go together.

use crate::error::failures;
use miette::Diagnostic;
use thiserror::Error;

failures! {
    /// Options that do not go together.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum SimulateFailure {
        #[error("--segments needs --format json or jsonl")]
        #[diagnostic(help("add --format json, or remove --segments"))]
        SegmentsAsText => Usage XM0721 {
            title: "option of another format",
            cause: "`--segments` belongs to `--format json` or `jsonl`, `--plan` to `--format text` or `json`.",
            example: "xmem simulate ops.json --segments end",
            fix: "Add `--format json`, which has both.",
        },
        #[error("--plan needs --format text or json")]
        #[diagnostic(help("a run that follows a plan has one result, not one for each operation"))]
        PlanAsLines => Usage XM0721,
    }
}
