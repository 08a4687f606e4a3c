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
        Site { path: PathBuf, source: Box<SiteError> } => Usage XM0111 {
            title: "unreadable site file",
            cause: "The site file does not exist, is not TOML, or has a setting that xmem does not know.",
            example: "xmem check trace.json.zst --site broken.toml",
            fix: "Check the file against the schema that `xmem config --format schema` prints.",
        },
        #[error("{place}: {reason}")]
        #[diagnostic(help("`xmem config` shows all settings and where each comes from"))]
        Value { place: String, reason: String } => Usage XM0112 {
            title: "invalid setting",
            cause: "A setting of the site file, the user's file or the environment has a value that cannot be used.",
            example: "XMEM_POLICY=maybe xmem check trace.json.zst --device t4-16g",
            fix: "Run `xmem config`: it shows all settings and the source of each. Correct the value there.",
        },
    }
}
