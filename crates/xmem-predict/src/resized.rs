//! A job whose blocks have other sizes.

use crate::prediction::Prediction;
use crate::sections::Sections;
use xmem_simulator::{Outline, RequestIndex, outline};
use xmem_types::{BlockId, Bytes, Fallbacks, Request, RequestKind};

impl<'j> Prediction<'j> {
    /// The requests up to the end of the iterations that were recorded in full; what may follow is the rest of the script.
    #[must_use]
    pub fn recorded_requests(&self) -> &[Request] {
        let end = self.schedule.rest_start(self.profile()).unwrap_or(self.schedule.requests.len());
        &self.schedule.requests[..end]
    }

    /// The job up to the end of the iterations that were recorded in full.
    #[must_use]
    pub fn without_rest(&self) -> Self {
        let end = self.recorded_requests().len();
        self.resized(end, |block| self.schedule.block(block).size, self.schedule.fallbacks.clone())
    }

    /// The first requests, up to `end`, with a `size` for each block, and with smaller sizes that blocks fall back on.
    #[must_use]
    pub fn resized(
        &self,
        end: usize,
        size: impl Fn(BlockId) -> Bytes,
        fallbacks: Fallbacks,
    ) -> Self {
        let mut resized = self.clone();
        let schedule = &mut resized.schedule;
        schedule.requests.truncate(end);
        schedule.times.truncate(end);
        schedule.calls.retain(|placed| placed.before <= end);
        schedule.has_rest &= end > self.recorded_requests().len();
        schedule.uncertain.clear();
        schedule.fallbacks = fallbacks;
        for request in &mut schedule.requests {
            if let RequestKind::Alloc { size: of_request, .. } = &mut request.kind {
                *of_request = size(request.block);
                schedule.blocks[request.block.index()].size = *of_request;
            }
        }
        resized.sections =
            Sections::new(self.iteration_starts(), end.min(self.recorded_requests().len()));
        resized
    }

    /// The peaks of all requests where there is enough memory.
    #[must_use]
    pub fn ample_outline(&self) -> Outline {
        let ample = self.device.without_limit();
        outline(self.workload(), &self.setup.choice, &ample, RequestIndex(0))
    }
}
