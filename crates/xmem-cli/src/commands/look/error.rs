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
        NoTerminal { trace: String } => Usage XM0451 {
            title: "no interactive terminal",
            cause:
                "`xmem look` draws on the terminal, and standard output is a file, a pipe, or a terminal that cannot \
                 move text.",
            example: "xmem look trace.json.zst --device t4-16g > out.txt",
            fix:
                "Run it in a terminal, or use `xmem replay TRACE --device NAME` for text and `xmem report TRACE \
                 --device NAME -o report.html` for a page.",
        },
    }
}
