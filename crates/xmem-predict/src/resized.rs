//! A job whose blocks have other sizes.

use crate::prediction::Prediction;
use crate::sections::Sections;
use std::collections::BTreeMap;
use xmem_analyzer::Role;
use xmem_orchestrator::{Origin, ScheduledBlock, WithoutWorkspace};
use xmem_simulator::{Outline, RequestIndex, outline};
use xmem_types::{BlockId, Bytes, Fallbacks, Request, RequestKind};

impl<'j> Prediction<'j> {
    /// The requests up to the end of the iterations that were recorded in full; what may follow is the rest of the script.
    #[must_use]
    pub fn recorded_requests(&self) -> &[Request] {
        let end = self.schedule.rest_start(self.profile()).unwrap_or(self.schedule.requests.len());
        &self.schedule.requests[..end]
    }

    /// Returns whether more of the script was recorded after those iterations.
    #[must_use]
    pub fn has_rest(&self) -> bool {
        self.recorded_requests().len() < self.requests().len()
    }

    /// The job up to the end of the iterations that were recorded in full.
    #[must_use]
    pub fn without_rest(&self) -> Self {
        let end = self.recorded_requests().len();
        self.resized(end, |block| self.schedule.block(block).size, self.schedule.fallbacks.clone())
    }

    /// The same job with a block of no bytes for each convolution of a recorded GPU that needs no workspace.
    #[must_use]
    pub fn with_empty_workspaces(&self) -> Self {
        let mut with = self.clone();
        let mut behind: BTreeMap<BlockId, Vec<WithoutWorkspace>> = BTreeMap::new();
        for without in std::mem::take(&mut with.schedule.without_workspace) {
            behind.entry(without.behind).or_default().push(without);
        }
        let mut requests = Vec::with_capacity(with.schedule.requests.len() + 2 * behind.len());
        for (row, &request) in self.schedule.requests.iter().enumerate() {
            requests.push((request, row));
            let RequestKind::Alloc { stream, .. } = request.kind else { continue };
            for without in behind.remove(&request.block).into_iter().flatten() {
                let schedule = &mut with.schedule;
                let (block, size) = (BlockId::new(schedule.blocks.len()), Bytes::ZERO);
                schedule.blocks.push(ScheduledBlock {
                    size,
                    role: Role::Workspace,
                    origin: Origin::Added { op: without.op, at: schedule.times[row] },
                    rule: None,
                    unmodeled: None,
                });
                schedule.workspaces.insert(block, without.convolution);
                let kind = RequestKind::Alloc { stream, size };
                requests.push((Request { block, kind }, row));
                requests.push((Request { block, kind: RequestKind::Free }, row));
            }
        }
        with.replace_requests(&requests);
        with
    }

    /// The first requests, up to `end`, with a `size` for each block, and with smaller sizes that blocks fall back on. Blocks of
    /// no bytes are not requested.
    #[must_use]
    pub fn resized(
        &self,
        end: usize,
        size: impl Fn(BlockId) -> Bytes,
        fallbacks: Fallbacks,
    ) -> Self {
        let mut resized = self.clone();
        let schedule = &mut resized.schedule;
        schedule.has_rest &= end > self.recorded_requests().len();
        schedule.uncertain.clear();
        schedule.fallbacks = fallbacks;
        let mut requests = Vec::with_capacity(end);
        for (row, request) in self.schedule.requests[..end].iter().enumerate() {
            let mut request = *request;
            let block = &mut schedule.blocks[request.block.index()];
            if let RequestKind::Alloc { size: of_request, .. } = &mut request.kind {
                block.size = size(request.block);
                *of_request = block.size;
            }
            if block.size > Bytes::ZERO {
                requests.push((request, row));
            }
        }
        resized.replace_requests(&requests);
        resized
    }

    /// Replaces the requests by others, each with the row of the request that it is, or that it comes right behind. Rows ascend.
    fn replace_requests(&mut self, requests: &[(Request, usize)]) {
        let moved = |row: usize| requests.partition_point(|&(_, old)| old < row);
        let rest = self.schedule.rest_start(self.profile());
        let schedule = &mut self.schedule;
        let last = requests.last().map_or(0, |&(_, row)| row + 1);
        schedule.calls.retain(|placed| placed.before <= last);
        for placed in &mut schedule.calls {
            placed.before = moved(placed.before);
        }
        for start in &mut self.iteration_starts {
            *start = moved(*start);
        }
        schedule.times = requests.iter().map(|&(_, row)| schedule.times[row]).collect();
        schedule.requests = requests.iter().map(|&(request, _)| request).collect();
        let end = rest.map_or(requests.len(), moved);
        self.sections = Sections::new(&self.iteration_starts, end);
    }

    /// The peaks of all requests where there is enough memory.
    #[must_use]
    pub fn ample_outline(&self) -> Outline {
        let ample = self.device.without_limit();
        outline(self.workload(), &self.setup.choice, &ample, RequestIndex(0))
    }
}
