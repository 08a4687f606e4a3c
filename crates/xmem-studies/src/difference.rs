//! Two runs side by side: their peaks, what is allocated at the peak by name, the settings that differ, and the first
//! request at which they part. Names are matched across versions of a script.
//!
//! Left to others: reading runs (`Estimate`, and xmem-report for answers in JSON), and showing the difference.

mod align;
mod divergence;
mod fnv;
mod group_row;
mod groups;
mod limit;
mod lines;
mod matched_groups;
mod modules;
mod settings;

pub use divergence::{Divergence, RequestAction, RunRequest};
pub use group_row::{DifferenceRow, GroupFigures, NameMatch};
pub use groups::DifferenceKey;
pub use limit::{GrowthLimit, ParseGrowthLimitError, PeakFigure};
pub use settings::{OtherSetting, RunSetting};

use matched_groups::Rows;
use xmem::Answer;
use xmem::Verdict;
use xmem_analyzer::ScriptPart;
use xmem_predict::Timeline;
use xmem_types::{Bytes, IterationId};

/// One of two runs that are compared.
#[derive(Clone, Debug)]
pub struct ComparisonRun {
    /// Its peaks.
    pub peaks: RunPeaks,
    /// The decision about it.
    pub verdict: Verdict,
    /// Iteration and phase of the peak of allocated memory, behind the recorded iterations the part of the script; none if
    /// nothing is allocated.
    pub peak_at: Option<(Option<IterationId>, String)>,
    /// Settings that are known of it.
    pub settings: Vec<(RunSetting, String)>,
    /// Bytes at the peak of allocated memory by the name of the role.
    pub by_role: Vec<(String, Bytes)>,
    /// The run event by event; none of an answer that was read from a document.
    pub timeline: Option<Timeline>,
}

/// The figures that are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPeaks {
    /// Peak allocated: `torch.cuda.max_memory_allocated`.
    pub allocated: Bytes,
    /// Peak reserved: `torch.cuda.max_memory_reserved`.
    pub reserved: Bytes,
    /// Peak reserved and the context: the figure of nvidia-smi.
    pub device: Bytes,
}

impl ComparisonRun {
    /// A run with its answer and its timeline.
    #[must_use]
    pub fn new(answer: &Answer, timeline: Timeline) -> Self {
        let peak = &answer.memory.peak;
        Self {
            peaks: RunPeaks {
                allocated: peak.allocated,
                reserved: peak.reserved,
                device: peak.device,
            },
            verdict: answer.verdict,
            peak_at: peak.at.as_ref().map(|at| {
                let phase = at.part.map_or(at.phase.name(), ScriptPart::name);
                (at.iteration, phase.to_owned())
            }),
            settings: settings::of(answer),
            by_role: answer
                .memory
                .by_role
                .iter()
                .map(|share| (share.role.name().to_owned(), share.bytes))
                .collect(),
            timeline: Some(timeline),
        }
    }

    /// Returns whether the recording is damaged, or too much is missing from it, so that its figures say little.
    #[must_use]
    pub fn is_withheld(&self) -> bool {
        !matches!(self.verdict, Verdict::Fits | Verdict::DoesNotFit)
    }
}

/// Bytes in the first run and in the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteChange {
    /// In the first.
    pub a: Bytes,
    /// In the second.
    pub b: Bytes,
}

impl ByteChange {
    /// The size of the difference, whichever is larger.
    #[must_use]
    pub fn size(self) -> Bytes {
        Bytes(self.a.get().abs_diff(self.b.get()))
    }

    /// The difference, the second less the first; at the ends of 64 bits where it has no such number.
    #[must_use]
    pub fn signed(self) -> i64 {
        let size = i64::try_from(self.size().get()).unwrap_or(i64::MAX);
        if self.b < self.a { -size } else { size }
    }

    /// The difference as a share of the first, in percent; none if the first is zero.
    #[must_use]
    pub fn percent(self) -> Option<f64> {
        let (a, b) = (self.a.get() as f64, self.b.get() as f64);
        (a > 0.0).then(|| 100.0 * (b - a) / a)
    }
}

impl std::fmt::Display for ByteChange {
    /// `+12.00 MiB`, `-512 B`, `0 B`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = match self.a.cmp(&self.b) {
            std::cmp::Ordering::Less => "+",
            std::cmp::Ordering::Equal => "",
            std::cmp::Ordering::Greater => "-",
        };
        f.pad(&format!("{sign}{}", self.size()))
    }
}

/// What two runs differ in. With the runs swapped, every difference has the other sign.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Peak allocated.
    pub allocated: ByteChange,
    /// Peak reserved.
    pub reserved: ByteChange,
    /// Peak of the device.
    pub device: ByteChange,
    /// The key of the rows.
    pub key: DifferenceKey,
    /// The groups that grew or shrank at the peak, the largest difference first.
    pub rows: Vec<DifferenceRow>,
    /// The groups that are the same in both, together.
    pub unchanged: GroupFigures,
    /// All groups together: peak allocated of each.
    pub total: (GroupFigures, GroupFigures),
    /// The settings that are known of both, and differ.
    pub settings: Vec<OtherSetting>,
    /// The requests of each run; none if either has no timeline.
    pub requests: Option<(u64, u64)>,
    /// The first request at which the runs part; none if they make the same, or if either has no timeline.
    pub divergence: Option<Box<Divergence>>,
}

/// The error of a key that an answer has no figures for: it was read from a document, which has roles only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a JSON answer cannot be grouped by {}", key.name())]
pub struct NoTimeline {
    /// The key.
    pub key: DifferenceKey,
}

impl Difference {
    /// Compares two runs.
    ///
    /// # Errors
    /// If a run has no timeline, and the key is another than the role.
    pub fn new(
        a: &ComparisonRun,
        b: &ComparisonRun,
        key: DifferenceKey,
    ) -> Result<Self, NoTimeline> {
        let rows = Rows::of(a, b, key).ok_or(NoTimeline { key })?;
        let timelines = a.timeline.as_ref().zip(b.timeline.as_ref());
        let count = |timeline: &Timeline| timeline.moments.len() as u64;
        Ok(Self {
            allocated: ByteChange { a: a.peaks.allocated, b: b.peaks.allocated },
            reserved: ByteChange { a: a.peaks.reserved, b: b.peaks.reserved },
            device: ByteChange { a: a.peaks.device, b: b.peaks.device },
            key,
            rows: rows.changed,
            unchanged: rows.unchanged,
            total: rows.total,
            settings: settings::that_differ(&a.settings, &b.settings),
            requests: timelines.map(|(a, b)| (count(a), count(b))),
            divergence: timelines.and_then(|(a, b)| Divergence::first(a, b)).map(Box::new),
        })
    }

    /// The peaks by name.
    #[must_use]
    pub fn peak(&self, figure: PeakFigure) -> ByteChange {
        match figure {
            PeakFigure::Allocated => self.allocated,
            PeakFigure::Reserved => self.reserved,
            PeakFigure::Device => self.device,
        }
    }

    /// The rows from `shown` on, and what is the same in both, as one.
    #[must_use]
    pub fn rest(&self, shown: usize) -> (GroupFigures, GroupFigures) {
        let hidden = self.rows.iter().skip(shown);
        hidden.fold((self.unchanged, self.unchanged), |(a, b), row| (a + row.a, b + row.b))
    }

    /// Returns whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let peaks = [self.allocated, self.reserved, self.device];
        let is_same = self.requests.is_none_or(|(a, b)| a == b) && self.divergence.is_none();
        is_same
            && self.rows.is_empty()
            && self.settings.is_empty()
            && peaks.iter().all(|peak| peak.a == peak.b)
    }
}
