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
        Simulation { input: String, source: Box<OffloadError> } => Unreadable XM0711 {
            title: "offloading that cannot be simulated",
            cause: "The recording lacks what the simulation needs, for example a complete training iteration.",
            example: "xmem offload damaged.json.zst --device t4-16g",
            fix:
                "Check the recording with `xmem inspect TRACE`, or record the job again with `xmem profile -- \
                 COMMAND`.",
        },
    }
}
