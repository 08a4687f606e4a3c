//! Settings that cannot be used.

use crate::error::failures;
use crate::terminal::shown;
use miette::Diagnostic;
use std::path::PathBuf;
use thiserror::Error;
use xmem_gate::SiteError;

failures! {
    /// Settings that cannot be used.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum ConfigFailure {
        #[error("cannot read the site file `{}`", shown(path))]
        #[diagnostic(help("`xmem config --format schema` prints the JSON Schema of a site file"))]
        Site { path: PathBuf, source: Box<SiteError> } => Usage,
        #[error("{place}: {reason}")]
        #[diagnostic(help("`xmem config` shows all settings and where each comes from"))]
        Value { place: String, reason: String } => Usage,
    }
}
