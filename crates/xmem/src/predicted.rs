//! A job as an estimate predicts it to run: it is lowered once, and whatever is asked about it is replayed from there.

use crate::job::Job;
use crate::timings::Timings;
use crate::verdict::IntegrityPolicy;
use std::ops::Range;
use xmem_analyzer::recording::Rank;
use xmem_convolutions::ConvolutionAnswers;
use xmem_orchestrator::Target;
use xmem_predict::{
    AllocatorSettings, Detail, DeviceBudget, NoSegments, Prediction, SnapshotEnd, Timeline,
};
use xmem_snapshot::Snapshot;
use xmem_types::IterationId;

/// The predicted run of a job on a device.
#[derive(Clone, Debug)]
pub struct PredictedJob<'j> {
    pub(crate) job: &'j Job,
    pub(crate) prediction: Prediction<'j>,
    /// Its device is that of the budget.
    pub(crate) target: Target,
    pub(crate) budget: DeviceBudget,
    pub(crate) convolutions: ConvolutionAnswers,
    /// The place of the process in the job that is replayed.
    pub(crate) rank: Option<Rank>,
    /// The iterations that are asked about.
    pub(crate) iterations: Range<IterationId>,
    pub(crate) detail: Detail,
    pub(crate) integrity: IntegrityPolicy,
    /// Whether the script must have been recorded to its end.
    pub(crate) to_the_end: bool,
    pub(crate) allocator: AllocatorSettings,
    pub(crate) timings: Timings,
    /// The job on the other GPUs that it was recorded on.
    pub(crate) others: Vec<Self>,
}

impl<'j> PredictedJob<'j> {
    /// All requests that the job is predicted to make, whatever iterations the estimate is about, with the allocator and the
    /// device that serve them.
    #[must_use]
    pub fn prediction(&self) -> &Prediction<'j> {
        &self.prediction
    }

    /// GPU, PyTorch version and what-ifs. The device's context includes what others than the allocator take.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The run up to the end of the iterations that the estimate is about, event by event
    /// ([`Prediction::timeline`]).
    #[must_use]
    pub fn timeline(&self, end: SnapshotEnd) -> Timeline {
        self.prediction.timeline(&self.iterations, end)
    }

    /// The same run as a memory snapshot ([`Prediction::snapshot`]).
    ///
    /// # Errors
    /// If the allocator has no segments to show.
    pub fn snapshot(&self, end: SnapshotEnd) -> Result<Snapshot, NoSegments> {
        self.prediction.snapshot(&self.iterations, end)
    }
}
