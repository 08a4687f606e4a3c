//! The decision whether a job fits: what is expected, and with the range of the estimate what is said about it. Every
//! report, the page, the viewer and the gate say what [`Decision::of`] and [`Need`] say.

use xmem_analyzer::integrity::Condition;
use xmem_predict::Confidence;
use xmem_types::{Bytes, WithheldReason};

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

/// What is decided about a job on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// It runs, over the whole range of the estimate, and leaves the margin free.
    Fits,
    /// It fits, and a smaller device of the site holds it too.
    OverRequested,
    /// It may run and it may not, or it runs without leaving the margin free.
    Tight,
    /// Nothing can be said: too much is missing from the trace, or the trace is damaged.
    NoVerdict,
    /// It runs out of memory, over the whole range of the estimate.
    DoesNotFit,
}

impl Decision {
    /// All decisions, from the best to the worst.
    pub const ALL: [Self; 5] =
        [Self::Fits, Self::OverRequested, Self::Tight, Self::NoVerdict, Self::DoesNotFit];

    /// The name in machine-readable output (`does_not_fit`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::OverRequested => "over_requested",
            Self::Tight => "tight",
            Self::NoVerdict => "no_verdict",
            Self::DoesNotFit => "does_not_fit",
        }
    }

    /// What is said about a job with this verdict and this confidence, without a margin and without other devices; and
    /// why it is tight, if it is.
    #[must_use]
    pub const fn of(verdict: Verdict, confidence: Confidence) -> (Self, Option<TightBy>) {
        match (verdict, confidence) {
            (Verdict::Fits, Confidence::Certain | Confidence::Likely) => (Self::Fits, None),
            (Verdict::Fits, Confidence::Doubtful) => (Self::Tight, Some(TightBy::Recording)),
            (Verdict::Fits, _) => (Self::Tight, Some(TightBy::MayFail)),
            (Verdict::DoesNotFit, Confidence::MayFit) => (Self::Tight, Some(TightBy::MayFit)),
            (Verdict::DoesNotFit, _) => (Self::DoesNotFit, None),
            (Verdict::DamagedFits | Verdict::DamagedDoesNotFit | Verdict::Withheld, _) => {
                (Self::NoVerdict, None)
            }
        }
    }

    /// The decision in words (`DOES NOT FIT`).
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Fits => "FITS",
            Self::OverRequested => "OVER-REQUESTED",
            Self::Tight => "TIGHT",
            Self::NoVerdict => "NO VERDICT",
            Self::DoesNotFit => "DOES NOT FIT",
        }
    }

    /// The decision of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.name() == name)
    }
}

/// Why a job is tight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TightBy {
    /// It is expected to run, and needs part of the margin.
    Margin,
    /// It is expected to run, and may not: the upper end of the range does not fit.
    MayFail,
    /// It is expected to run out of memory, and may run: the lower end of the range fits.
    MayFit,
    /// It is expected to run, but the recording is doubtful.
    Recording,
    /// It fits on some of the devices on which it may be started, and not on others.
    Placement,
}

impl TightBy {
    /// The name in machine-readable output (`may_fail`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Margin => "margin",
            Self::MayFail => "may_fail",
            Self::MayFit => "may_fit",
            Self::Recording => "recording",
            Self::Placement => "placement",
        }
    }

    /// All reasons.
    pub const ALL: [Self; 5] =
        [Self::Margin, Self::MayFail, Self::MayFit, Self::Recording, Self::Placement];

    /// The reason of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.name() == name)
    }

    /// The reason in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Margin => "leaves too little free",
            Self::MayFail => "may run out of memory",
            Self::MayFit => "probably runs out of memory",
            Self::Recording => "the trace is doubtful",
            Self::Placement => "fits on larger ones only",
        }
    }
}

/// The device memory that a job needs, context included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// What it takes if it certainly runs, else the least memory of a device like this one with which it runs.
    pub least: Bytes,
    /// What it takes where there is room: the allocator caches more there.
    pub ample: Bytes,
}

impl Need {
    /// The memory that is missing on a device with `memory`; none if it is enough.
    #[must_use]
    pub fn beyond(self, memory: Bytes) -> Option<Bytes> {
        (self.least > memory).then(|| self.least - memory)
    }

    /// The need against the memory of a device: `needs at least 2.97 GiB of 2.54 GiB on t4-16g`.
    #[must_use]
    pub fn against(self, memory: Bytes, device: &str) -> String {
        let at_least = if self.takes_more() { "at least " } else { "" };
        format!("needs {at_least}{} of {}", self.least, Self::room(memory, device))
    }

    /// The memory of a device: `2.54 GiB on t4-16g`.
    #[must_use]
    pub fn room(memory: Bytes, device: &str) -> String {
        match device {
            // Only its memory is known.
            "custom" => memory.to_string(),
            name => format!("{memory} on {name}"),
        }
    }

    /// What follows [`against`](Self::against): the memory that is missing, or why the job is tight.
    #[must_use]
    pub fn because(self, memory: Bytes, decided: (Decision, Option<TightBy>)) -> String {
        match decided {
            (Decision::DoesNotFit, _) => format!(": {} too much", self.least - memory),
            (_, Some(by)) => format!(": {}", by.words()),
            _ => String::new(),
        }
    }

    /// What the job takes where there is room; none if that is what it needs.
    #[must_use]
    pub fn with_room(self) -> Option<String> {
        self.takes_more().then(|| format!("takes {} where there is room", self.ample))
    }

    /// Returns whether the two figures are not the same to a reader.
    fn takes_more(self) -> bool {
        self.least < self.ample && self.least.to_string() != self.ample.to_string()
    }
}
