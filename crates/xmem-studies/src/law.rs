//! The memory of a job as a function of a number in its command: a batch size, a length.
//!
//! A few recordings with other values are matched block by block, by operator, module, line and iteration. Where the size of a
//! block is a polynomial of the value through all recordings, it is that for every value between them; else it lies on straight
//! lines. With the sizes of a value, the requests of the next larger recording go through the allocator's simulator: peaks are
//! replayed, not interpolated ([`JobLaw::at`]). How far that can be trusted is measured by leaving recordings out, one at a
//! time ([`JobLaw::check`]).

mod blocks;
mod table;

pub use table::{LawCheck, LawNeed, LawPoint, LawSubject, LawTable, LawWith};

use blocks::Recording;
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;
use xmem_convolutions::{ConvolutionQuestion, ConvolutionSource, Plans};
use xmem_devices::Device;
use xmem_predict::{Prediction, STEADY_ITERATIONS, telling_length};
use xmem_types::{Bytes, IterationId};

/// The memory of a job, from recordings with several values.
#[derive(Debug)]
pub struct JobLaw<'p> {
    /// By value, ascending; at least two.
    recordings: Vec<Recording<'p>>,
    /// The iterations that the job has to run through.
    iterations: usize,
    answers: Answers,
}

/// The sizes of the workspaces of convolutions' plans, in the order in which PyTorch tries them.
type Answers = BTreeMap<ConvolutionQuestion, Vec<Bytes>>;

/// The factor between two recorded values from which on what lies between is not known: libraries and kernels of PyTorch choose
/// other ways with other batch sizes.
const WIDE: f64 = 4.0;

fn width((one, other): (u64, u64)) -> f64 {
    other as f64 / one.max(1) as f64
}

/// The part of its recordings that a law is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedPart {
    /// The iterations that were recorded in full.
    Iterations,
    /// All of the script, as far as it was recorded. What comes after those iterations is not matched block by block: its peaks
    /// lie on straight lines.
    Whole,
}

/// Recordings that give no law.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LawError {
    /// There are fewer than two values.
    #[error("a law needs recordings with two values, and there is {found}")]
    TooFew {
        /// How many there are.
        found: usize,
    },
    /// No two recordings have enough in common.
    #[error(
        "the recordings with {one} and {other} are not of the same program: {matched} of {all} blocks match"
    )]
    TooDifferent {
        /// The value of one.
        one: u64,
        /// That of the other.
        other: u64,
        /// Blocks of one that the other has as well.
        matched: usize,
        /// All blocks of one.
        all: usize,
    },
}

/// Blocks, by how their sizes follow from the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LawSummary {
    /// All that a recording allocates.
    pub blocks: usize,
    /// Of the same size for all values.
    pub constant: usize,
    /// Whose sizes lie on a polynomial of the first or second degree of the value, or of the padded value, to the byte.
    pub polynomial: usize,
    /// Whose sizes lie on straight lines between recorded ones.
    pub interpolated: usize,
    /// Which not all recordings have.
    pub unmatched: usize,
}

impl<'p> JobLaw<'p> {
    /// The law of a job, from predictions of it with some values. What it needs is enough for `iterations` like the recorded
    /// ones.
    ///
    /// # Errors
    /// If there are fewer than two values, or no two recordings are of the same program.
    pub fn new<'a>(
        predictions: impl IntoIterator<Item = (u64, &'a Prediction<'p>)>,
        part: RecordedPart,
        iterations: usize,
    ) -> Result<Self, LawError>
    where
        'p: 'a,
    {
        let iterations = iterations.min(STEADY_ITERATIONS);
        let recording = |(value, prediction): (u64, &'a Prediction<'p>)| {
            let mut recording = Recording::new(value, prediction);
            recording.whole =
                (part == RecordedPart::Whole).then(|| point(value, prediction, iterations));
            recording
        };
        let mut recordings: Vec<Recording<'p>> = predictions.into_iter().map(recording).collect();
        recordings.sort_by_key(|recording| recording.value);
        recordings.dedup_by_key(|recording| recording.value);
        Self::of(recordings, iterations, Answers::new())
    }

    fn of(
        mut recordings: Vec<Recording<'p>>,
        iterations: usize,
        answers: Answers,
    ) -> Result<Self, LawError> {
        if recordings.len() < 2 {
            return Err(LawError::TooFew { found: recordings.len() });
        }
        blocks::fit(&mut recordings)?;
        Ok(Self { recordings, iterations, answers })
    }

    /// The least and the greatest recorded value, between which the law holds.
    #[must_use]
    pub fn bounds(&self) -> (u64, u64) {
        (self.recordings[0].value, self.recordings[self.recordings.len() - 1].value)
    }

    /// What others than the allocator take of the device's memory.
    #[must_use]
    pub fn context(&self) -> Bytes {
        self.recordings[0].context()
    }

    /// The recorded values, ascending.
    pub fn values(&self) -> impl Iterator<Item = u64> {
        self.recordings.iter().map(|recording| recording.value)
    }

    /// How the sizes of the blocks follow from the value, in the recording with the greatest one.
    #[must_use]
    pub fn summary(&self) -> LawSummary {
        self.recordings[self.recordings.len() - 1].summary(self.recordings.len())
    }

    /// Asks for the plans of the job's convolutions with some values: the workspace of a convolution is no function of the batch
    /// size that two recordings would show.
    #[must_use]
    pub fn with_convolutions(
        mut self,
        (source, device): (&dyn ConvolutionSource, &Device),
        values: &[u64],
    ) -> Self {
        let of = |&value: &u64| {
            let (nearest, other) = self.nearest(value);
            let others = other.into_iter().flat_map(move |other| other.convolutions(value));
            nearest.convolutions(value).chain(others)
        };
        let all: BTreeSet<ConvolutionQuestion> = values.iter().flat_map(of).collect();
        let new: Vec<_> = all.into_iter().filter(|q| !self.answers.contains_key(q)).collect();
        if !new.is_empty() {
            let answers = source.answer(device, &new);
            // Where a model stands in for a library, what was recorded is the better guide.
            if answers.release().is_some() && answers.warning().is_none() {
                let sizes = |(question, plans): (&ConvolutionQuestion, &Plans)| {
                    let sizes = plans.trial.as_ref().map_or(&plans.sizes, |trial| &trial.sizes);
                    (*question, sizes.clone())
                };
                self.answers.extend(answers.iter().map(sizes));
            }
        }
        self
    }

    /// The last value from `low` to `high` with which the job is expected to need no more than `room`, beyond the recorded ones
    /// as well; `low` if it needs more there.
    #[must_use]
    pub fn last_within(
        mut self,
        room: Bytes,
        (low, high): (u64, u64),
        source: Option<(&dyn ConvolutionSource, &Device)>,
    ) -> u64 {
        let (mut low, mut high) = (low, high);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if let Some(source) = source {
                self = self.with_convolutions(source, &[middle]);
            }
            match self.expected(middle).needs <= room {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        low
    }

    /// The memory with a value, wherever it is.
    fn expected(&self, value: u64) -> LawPoint {
        let (nearest, other) = self.nearest(value);
        let of = |recording: &Recording<'p>| {
            let figures = point(value, &recording.at(value, &self.answers), self.iterations);
            self.whole(value).map_or(figures, |whole| figures.or_more(whole))
        };
        let expected = of(nearest);
        match other.map(of) {
            Some(other) => {
                let (low, high) =
                    (other.needs.min(expected.needs), other.needs.max(expected.needs));
                LawPoint { range: (low, high), ..expected }
            }
            None => expected,
        }
    }

    /// The figures of all of the script, on a straight line between those of two recordings.
    fn whole(&self, value: u64) -> Option<LawPoint> {
        let last = self.recordings.len() - 1;
        let above = self.recordings.partition_point(|recording| recording.value < value);
        let (below, above) = match above.clamp(1, last) {
            above if self.recordings[above].value == value => (above, above),
            above if self.recordings[above - 1].value == value => (above - 1, above - 1),
            above => (above - 1, above),
        };
        let (one, other) = (self.recordings[below].whole?, self.recordings[above].whole?);
        let share = match other.value - one.value {
            0 => 0.0,
            width => (value as f64 - one.value as f64) / width as f64,
        };
        let between = |of: fn(&LawPoint) -> Bytes| {
            let (one, other) = (of(&one).get() as f64, of(&other).get() as f64);
            Bytes((one + (other - one) * share).max(0.0) as u64)
        };
        let needs = between(|point| point.needs);
        Some(LawPoint {
            value,
            allocated: between(|point| point.allocated),
            reserved: between(|point| point.reserved),
            needs,
            range: (needs, needs),
        })
    }

    /// The memory with a value; none beyond the recorded ones.
    #[must_use]
    pub fn at(&self, value: u64) -> Option<LawPoint> {
        let (least, greatest) = self.bounds();
        (least..=greatest).contains(&value).then(|| self.expected(value))
    }

    /// The recording with the nearest value, and the one on the other side of the value, if it lies between two that do not have
    /// the same blocks.
    fn nearest(&self, value: u64) -> (&Recording<'p>, Option<&Recording<'p>>) {
        let above = self.recordings.partition_point(|recording| recording.value < value);
        let last = self.recordings.len() - 1;
        match (self.recordings.get(above), above.checked_sub(1)) {
            (None, _) => (&self.recordings[last], None),
            (Some(recording), None) => (recording, None),
            (Some(recording), _) if recording.value == value => (recording, None),
            (Some(above), Some(below)) => {
                let below = &self.recordings[below];
                let count = self.recordings.len();
                if below.is_matched(count) && above.is_matched(count) {
                    return (above, None);
                }
                match width((below.value, value)) < width((value, above.value)) {
                    true => (below, Some(above)),
                    false => (above, Some(below)),
                }
            }
        }
    }

    /// The values to record next, the most telling one first: in wide gaps between recorded values, beside a recording about
    /// which the law of the others was off by more than `share`, and one that shows whether sizes are those of padded values.
    #[must_use]
    pub fn next(&self, checks: &[LawCheck], share: f64) -> Vec<u64> {
        let values: Vec<u64> = self.values().collect();
        let gaps = values.windows(2).map(|pair| (pair[0], pair[1]));
        let mut wide: Vec<(u64, u64)> = gaps.filter(|&gap| width(gap) > WIDE).collect();
        wide.sort_by(|one, other| width(*other).total_cmp(&width(*one)));
        let off = |check: &LawCheck| check.needs_off().max(check.allocated_off());
        let mut worst: Vec<&LawCheck> = checks.iter().filter(|check| off(check) > share).collect();
        worst.sort_by(|one, other| off(other).total_cmp(&off(one)));
        let beside = worst.into_iter().filter_map(|check| {
            let at = values.binary_search(&check.recorded.value).ok()?;
            let (below, above) = (values.get(at.checked_sub(1)?)?, values.get(at + 1)?);
            let gaps = [(*below, values[at]), (values[at], *above)].into_iter();
            gaps.max_by(|one, other| width(*one).total_cmp(&width(*other)))
        });
        let mut next: Vec<u64> = Vec::new();
        for (one, other) in wide.into_iter().chain(beside) {
            let middle = ((one.max(1) as f64 * other as f64).sqrt() as u64).clamp(one, other);
            if !values.contains(&middle) && !next.contains(&middle) {
                next.push(middle);
            }
        }
        let telling = telling_length(&values, self.bounds());
        next.extend(telling.filter(|value| !next.contains(value)));
        next
    }

    /// What the law of all other recordings says about each recording but the first and the last, beside what it is.
    #[must_use]
    pub fn check(&self) -> Vec<LawCheck> {
        let count = self.recordings.len();
        let inner = (1..count.saturating_sub(1)).filter_map(|left_out| {
            let others = self.recordings.iter().enumerate().filter(|(at, _)| *at != left_out);
            let others = others.map(|(_, recording)| recording.unfitted()).collect();
            let law = Self::of(others, self.iterations, self.answers.clone()).ok()?;
            let value = self.recordings[left_out].value;
            Some(LawCheck { recorded: self.at(value)?, predicted: law.at(value)? })
        });
        inner.collect()
    }
}

impl LawPoint {
    /// What a job needs that was run with this value, and has to run through enough iterations for the peaks to settle.
    #[must_use]
    pub fn of_run(value: u64, job: &Prediction<'_>) -> Self {
        point(value, job, STEADY_ITERATIONS)
    }
}

/// The memory of a job, which has to run through `iterations`.
fn point(value: u64, job: &Prediction<'_>, iterations: usize) -> LawPoint {
    let ample = job.ample_outline();
    let whole = IterationId(0)..IterationId::new(job.iteration_starts().len());
    let recorded = job.min_capacity(&whole);
    let of = |allocated: Bytes, reserved: Bytes, needs: Bytes| LawPoint {
        value,
        allocated,
        reserved,
        needs,
        range: (needs, needs),
    };
    let figures = of(ample.allocated, ample.reserved, recorded);
    // Later iterations may find the cached memory in other pieces.
    match job.steady_run(iterations) {
        Ok(steady) => {
            let ample = steady.ample_outline();
            let needs = steady.min_capacity_from(recorded);
            figures.or_more(of(ample.allocated, ample.reserved, needs))
        }
        Err(_) => figures,
    }
}
