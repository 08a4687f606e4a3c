//! Offloading that cannot be simulated.

use crate::error::failures;
use miette::Diagnostic;
use thiserror::Error;
use xmem_studies::offloading::OffloadError;

failures! {
    /// Offloading that cannot be simulated.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum OffloadFailure {
        #[error("offloading cannot be simulated for {input}")]
        Simulation { input: String, source: Box<OffloadError> } => Unreadable,
    }
}
