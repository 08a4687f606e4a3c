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
        NoSite => Usage,
    }
}
