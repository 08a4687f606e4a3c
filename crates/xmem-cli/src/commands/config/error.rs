//! Formats that need a site file.

use crate::error::failures;
use miette::Diagnostic;
use thiserror::Error;

failures! {
    /// A format that needs a site file.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum ConfigCommandFailure {
        #[error("there is no site file")]
        #[diagnostic(help("name it with --site or XMEM_SITE, or write /etc/xmem/site.toml"))]
        NoSite => Usage XM0841 {
            title: "no site file",
            cause: "This format is made from the site file, and there is no site file.",
            example: "xmem config --format lua",
            fix: "Name it with `--site FILE` or XMEM_SITE, or write /etc/xmem/site.toml.",
        },
    }
}
