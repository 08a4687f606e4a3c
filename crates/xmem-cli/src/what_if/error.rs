//! What-ifs that cannot be answered.

use crate::error::failures;
use miette::Diagnostic;
use thiserror::Error;

failures! {
    /// A what-if that cannot be answered.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum WhatIfFailure {
        #[error("unknown rule `{name}`")]
        #[diagnostic(help("the known rules are: {known}"))]
        UnknownRule { name: String, known: String } => Usage XM0131 {
            title: "unknown rule",
            cause: "`--no-rule` names a rule that does not exist.",
            example: "xmem replay trace.json.zst --device t4-16g --no-rule scratch",
            fix:
                "Run `xmem replay TRACE --device NAME --explain`, which lists the rules, and use one of those names.",
        },
    }
}
