//! Predicted runs of recorded traces.

use std::path::Path;
use std::sync::Arc;
use xmem::convolutions::FittedModel;
use xmem::predict::{SnapshotEnd, Timeline};
use xmem::{Answer, Bytes, Device, Estimate, Job, ReadOptions, find};
use xmem_view::Run;

/// A run with all that it borrows.
pub(crate) struct Recorded {
    job: Job,
    answer: Answer,
    timeline: Timeline,
}

impl Recorded {
    /// A trace, by its path in `traces/`, on an A100 of 40 GB.
    pub(crate) fn trace(path: &str) -> Self {
        Self::on(path, find("a100-40g").expect("a known device").clone())
    }

    /// The same on a device with some memory.
    pub(crate) fn with_capacity(path: &str, memory: Bytes) -> Self {
        Self::on(path, Device::custom(memory))
    }

    fn on(path: &str, device: Device) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(path);
        let job = Job::from_path(path, &ReadOptions::default()).expect("a trace");
        Self::of(job, device)
    }

    /// A trace that is written in the test.
    pub(crate) fn text(trace: &str) -> Self {
        let job = Job::from_bytes(trace.as_bytes(), &ReadOptions::default()).expect("a trace");
        Self::of(job, Device::custom(Bytes::gib(8)))
    }

    fn of(job: Job, device: Device) -> Self {
        let estimate = Estimate::builder(device).convolutions(Arc::new(FittedModel)).build();
        let answer = estimate.job(&job).expect("an answer");
        let timeline = estimate.predict(&job).expect("a prediction").timeline(SnapshotEnd::Job);
        Self { job, answer, timeline }
    }

    pub(crate) fn run(&self) -> Run<'_> {
        Run { name: "run", job: &self.job, answer: &self.answer, timeline: &self.timeline }
    }
}
