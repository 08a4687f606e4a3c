//! Commands that are not run.

use crate::error::failures;
use miette::Diagnostic;
use thiserror::Error;

failures! {
    /// A command that is not run.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum RunFailure {
        #[error("neither a measure nor a virtual GPU was named: the command would run as without xmem")]
        #[diagnostic(help(
            "--with MEASURES lowers its memory (xmem fit finds them), and --virtual-gpu NAME runs it without a GPU"
        ))]
        Nothing => Usage,
    }
}
