//! Times as a viewer needs them: from zero on, in order, and within the recording.

use crate::Run;
use xmem::types::Nanos;

/// The time of each moment, since the recording began. Where a part of the run is predicted again (the first iteration
/// of a recording that begins late), time stands still until the recording goes on.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    begin: Nanos,
    end: Nanos,
    moments: Vec<Nanos>,
}

impl Clock {
    pub(crate) fn new(run: &Run<'_>) -> Self {
        let profile = run.job.profile();
        let tree = &profile.tree;
        let ops = tree.preorder().iter().flat_map(|&op| [profile.op_start(op), tree.end(op)]);
        let modules = profile.module_calls();
        let calls = modules.iter().flat_map(|call| [call.start, call.end]);
        let blocks = profile.blocks.iter().map(|block| block.alloc_time);
        let known = || ops.clone().chain(calls.clone()).chain(blocks.clone());
        let begin = known().min().unwrap_or_default();
        let end = known().max().unwrap_or_default();
        let mut clock = Self { begin, end, moments: Vec::new() };
        let mut now = Nanos::ZERO;
        let times = run.timeline.moments.iter().map(|moment| {
            now = now.max(clock.since_begin(moment.time));
            now
        });
        clock.moments = times.collect();
        clock
    }

    /// A time of the recording, since its beginning.
    pub(crate) fn since_begin(&self, time: Nanos) -> Nanos {
        time.clamp(self.begin, self.end) - self.begin
    }

    /// The time of a moment.
    pub(crate) fn at(&self, moment: u32) -> Nanos {
        self.moments.get(moment as usize).copied().unwrap_or_default()
    }
}
