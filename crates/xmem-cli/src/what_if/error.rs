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
        UnknownRule { name: String, known: String } => Usage,
    }
}
