//! From a job that does not fit to one that does: the largest value of an option that fits, and what changes to the job lower
//! its memory.
//!
//! Every figure is of a recording: a variant of the job runs on a virtual GPU, and its recording is replayed. What makes
//! recordings is a [`Recorder`]; this module decides which ones are made, as each takes seconds. The largest value is found from
//! two values by the straight line through them ([`largest()`]); changes are tried one by one, and then together in the order of
//! what they cost in time ([`measures()`]). If nothing makes it fit on one GPU, it is divided over several ([`over_gpus()`]).

mod answer;
mod fewest;
mod gpus;
mod largest;
mod measures;
mod step;

pub use answer::{FewestWith, FitAnswer, LargestWith, Measure, Proof, VariedOption};
pub use fewest::{Fewest, fewest};
pub use gpus::{OverGpus, over_gpus};
pub use largest::{Largest, Range, largest};
pub use measures::{Candidate, Ladder, Tried, measures};
pub use step::step_time;

use xmem_types::{Bytes, Nanos};

/// A variant of a job: a value of its option, and the candidates that are taken, by their places in the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variant {
    /// The value; none if the job has no option that is varied.
    pub value: Option<u64>,
    /// The candidates, ascending.
    pub measures: Vec<usize>,
}

impl Variant {
    /// The variant with these candidates.
    #[must_use]
    pub fn with(value: Option<u64>, mut measures: Vec<usize>) -> Self {
        measures.sort_unstable();
        measures.dedup();
        Self { value, measures }
    }
}

/// What a recording of a variant says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// The least memory of a device like the one that is asked about with which it runs.
    pub needs: Bytes,
    /// Whether it runs on that device.
    pub fits: bool,
    /// Whether it runs there without releasing cached memory. Else each step may take and release segments, which costs time
    /// that no model here knows.
    pub has_room: bool,
    /// The time of a step by the model of `xmem-timing`; none where the recording does not show a step.
    pub step: Option<Nanos>,
}

impl Figures {
    /// The time of a step against that of another variant, as a factor.
    #[must_use]
    pub fn time_against(&self, other: &Self) -> Option<f64> {
        let (this, other) = (self.step?, other.step?);
        (other > Nanos::ZERO).then(|| this.0 as f64 / other.0 as f64)
    }
}

/// The figures of a variant, or why there are none.
pub type Recorded = Result<Figures, String>;

/// Makes recordings.
pub trait Recorder {
    /// The figures of variants, in their order. They may be recorded side by side.
    fn record(&mut self, variants: &[Variant]) -> Vec<Recorded>;

    /// Runs a variant in the memory of the device, for longer than it is recorded: whether it runs there; none if that is not
    /// tried.
    fn confirm(&mut self, variant: &Variant) -> Option<bool>;

    /// The last value up to `high` with which the job is expected to fit with some candidates, by the law of what was recorded of
    /// it; `low` if none above it is, and none where there is no law.
    fn expect(&mut self, measures: &[usize], low: u64, high: u64) -> Option<u64> {
        let _ = (measures, low, high);
        None
    }

    /// Returns whether there is time for another recording.
    fn has_time(&self) -> bool;

    /// The number of recordings that are made side by side.
    fn side_by_side(&self) -> usize;
}
