//! Terminals that cannot show a run.

use crate::error::failures;
use miette::Diagnostic;
use thiserror::Error;

failures! {
    /// A terminal that cannot show a run.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum LookFailure {
        #[error("cannot show {trace}: standard output is not an interactive terminal")]
        #[diagnostic(help(
            "`xmem look` needs a terminal; `xmem replay` prints the answer as text, `xmem report` writes pages and \
             pictures"
        ))]
        NoTerminal { trace: String } => Usage,
    }
}
