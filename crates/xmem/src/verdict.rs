//! The decision whether a job fits.

use xmem_analyzer::integrity::Condition;
use xmem_types::WithheldReason;

/// The decision whether a job fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The replay under the device's own capacity runs to its end.
    Fits,
    /// The replay runs out of memory.
    DoesNotFit,
    /// The replay of a damaged recording runs to its end. Given only with
    /// [`IntegrityPolicy::Lenient`]: the job may need more than the recording shows.
    DamagedFits,
    /// The replay of a damaged recording runs out of memory. Given only with
    /// [`IntegrityPolicy::Lenient`].
    DamagedDoesNotFit,
    /// Too much is missing from the trace: some stage gave a [`WithheldReason`].
    Withheld,
}

/// How the [`Condition`] of a recording counts for the verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IntegrityPolicy {
    /// A damaged recording withholds the verdict; a doubtful one lowers the confidence.
    #[default]
    Standard,
    /// A doubtful recording withholds the verdict too.
    Strict,
    /// A damaged recording gets a verdict that says that it is damaged.
    Lenient,
}

impl IntegrityPolicy {
    /// The reason for which a recording in this condition gets no verdict.
    #[must_use]
    pub const fn withholds(self, condition: Condition) -> Option<WithheldReason> {
        match (self, condition) {
            (Self::Standard | Self::Strict, Condition::Damaged) => {
                Some(WithheldReason::DamagedTrace)
            }
            (Self::Strict, Condition::Doubtful) => Some(WithheldReason::DoubtfulTrace),
            _ => None,
        }
    }
}

impl Verdict {
    /// Decides from the replay, the condition of the recording, and the reasons for withholding the
    /// verdict, of which one is enough.
    #[must_use]
    pub fn decide(fits: bool, condition: Condition, reasons: &[WithheldReason]) -> Self {
        if !reasons.is_empty() {
            return Self::Withheld;
        }
        match (condition, fits) {
            (Condition::Damaged, true) => Self::DamagedFits,
            (Condition::Damaged, false) => Self::DamagedDoesNotFit,
            (_, true) => Self::Fits,
            (_, false) => Self::DoesNotFit,
        }
    }

    /// All verdicts.
    pub const ALL: [Self; 5] =
        [Self::Fits, Self::DoesNotFit, Self::DamagedFits, Self::DamagedDoesNotFit, Self::Withheld];

    /// The name in machine-readable output (`does_not_fit`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::DoesNotFit => "does_not_fit",
            Self::DamagedFits => "damaged_fits",
            Self::DamagedDoesNotFit => "damaged_does_not_fit",
            Self::Withheld => "withheld",
        }
    }
}
