//! Recorded blocks by where they were allocated and when they were freed, so that no rule has to look
//! at all of them for each operator.

use std::ops::RangeInclusive;
use xmem_analyzer::Profile;
use xmem_types::{Nanos, OpId};

/// The blocks of a profile in two orders.
pub(crate) struct RecordedBlocks {
    /// Position in pre-order of the innermost operator, and the block.
    by_op: Vec<(u32, u32)>,
    /// Those that are freed.
    by_free: Vec<(Nanos, u32)>,
}

impl RecordedBlocks {
    pub(crate) fn of(profile: &Profile) -> Self {
        let blocks = || profile.blocks.iter().zip(0_u32..);
        let position = |op| profile.tree.positions(op).start as u32;
        let mut by_op: Vec<_> =
            blocks().filter_map(|(block, i)| Some((position(block.op?), i))).collect();
        let mut by_free: Vec<_> =
            blocks().filter_map(|(block, i)| Some((block.free_time?, i))).collect();
        by_op.sort_unstable();
        by_free.sort_unstable();
        Self { by_op, by_free }
    }

    /// Indices of the blocks allocated within `op`, in order.
    pub(crate) fn within(&self, profile: &Profile, op: OpId) -> Vec<usize> {
        let positions = profile.tree.positions(op);
        let at = |position: usize| self.by_op.partition_point(|&(p, _)| (p as usize) < position);
        let inside = &self.by_op[at(positions.start)..at(positions.end)];
        let mut blocks: Vec<usize> = inside.iter().map(|&(_, block)| block as usize).collect();
        blocks.sort_unstable();
        blocks
    }

    /// Indices of the blocks freed in a stretch of time, the latest to be allocated first.
    pub(crate) fn freed_in(&self, time: &RangeInclusive<Nanos>) -> Vec<usize> {
        let from = self.by_free.partition_point(|(free, _)| free < time.start());
        let to = self.by_free.partition_point(|(free, _)| free <= time.end());
        let freed = self.by_free.get(from..to).unwrap_or_default();
        let mut blocks: Vec<usize> = freed.iter().map(|&(_, block)| block as usize).collect();
        blocks.sort_unstable_by(|a, b| b.cmp(a));
        blocks
    }
}
