//! Reasons for withholding a verdict.

use std::fmt;

/// A reason why no verdict can be given: an essential part of the input is missing or unusable.
///
/// The stage that notices it [withholds](crate::Diagnostics::withhold) the verdict with it. The
/// reasons of all stages together decide; severities of other diagnostics do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WithheldReason {
    /// The trace has no memory events.
    NoMemoryEvents,
    /// The trace has no memory events of the device that is analyzed.
    NoEventsOfDevice,
    /// The job was recorded on a GPU, so that the events of the host are only a part of its memory.
    GpuTrace,
    /// The trace has no operators.
    NoOperators,
    /// The events of the trace contradict each other more than those of any intact recording.
    DamagedTrace,
    /// The events of the trace contradict each other, and no doubt about them was accepted.
    DoubtfulTrace,
    /// The recording has no complete iteration.
    NoIteration,
    /// The recorded script put nothing on a GPU.
    NothingOnGpu,
    /// Sizes follow from values that were assumed without bounds, or the job does not fit with their upper bounds.
    AssumedSizes,
    /// A memory snapshot has no history, or one that begins after the job did: the job needs at least what the snapshot
    /// shows, which fits.
    IncompleteHistory,
    /// A request is larger than the memory of any device, and was left out of the replay.
    RequestBeyondAnyDevice,
    /// The script was not recorded to its end, which was required: what was recorded of it fits.
    NotToTheEnd,
    /// The recorded script ran out of memory, and what was recorded of it fits.
    RanOutOfMemory,
}

impl WithheldReason {
    /// The code of the diagnostic that goes with it (`no-memory-events`).
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoMemoryEvents => "no-memory-events",
            Self::NoEventsOfDevice => "no-events-of-device",
            Self::GpuTrace => "gpu-trace",
            Self::NoOperators => "no-operators",
            Self::DamagedTrace => "damaged-trace",
            Self::DoubtfulTrace => "doubtful-trace",
            Self::NoIteration => "no-iteration",
            Self::NothingOnGpu => "nothing-on-gpu",
            Self::AssumedSizes => "assumed-sizes",
            Self::IncompleteHistory => "incomplete-history",
            Self::RequestBeyondAnyDevice => "request-beyond-any-device",
            Self::NotToTheEnd => "not-to-the-end",
            Self::RanOutOfMemory => "ran-out-of-memory",
        }
    }
}

impl fmt::Display for WithheldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}
