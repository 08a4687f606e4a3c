//! The decision whether a job fits.

use xmem_types::WithheldReason;

/// The decision whether a job fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The replay under the device's own capacity runs to its end.
    Fits,
    /// The replay runs out of memory.
    DoesNotFit,
    /// Too much is missing from the trace: some stage gave a [`WithheldReason`].
    Withheld,
}

impl Verdict {
    /// Decides from the replay and from the reasons that the stages gave. One reason is enough to
    /// withhold the verdict.
    #[must_use]
    pub fn decide(fits: bool, reasons: &[WithheldReason]) -> Self {
        match (reasons.is_empty(), fits) {
            (false, _) => Self::Withheld,
            (true, true) => Self::Fits,
            (true, false) => Self::DoesNotFit,
        }
    }

    /// The name in machine-readable output (`does_not_fit`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::DoesNotFit => "does_not_fit",
            Self::Withheld => "withheld",
        }
    }
}
