//! Recorded blocks by the operator of their allocation and by the time of their free, so that no rule
//! has to look at all of them for each operator.

use std::ops::RangeInclusive;
use xmem_analyzer::Profile;
use xmem_types::{BlockId, Nanos, OpId};

/// The blocks of a profile in two orders.
pub(super) struct RecordedBlocks {
    /// Position in pre-order of the innermost operator, and the block.
    by_op: Vec<(u32, BlockId)>,
    /// Those that are freed.
    by_free: Vec<(Nanos, BlockId)>,
}

impl RecordedBlocks {
    pub(super) fn of(profile: &Profile) -> Self {
        let blocks = || profile.blocks.iter().zip((0_u32..).map(BlockId));
        let position = |op| profile.tree.positions(op).start as u32;
        let mut by_op: Vec<_> =
            blocks().filter_map(|(block, id)| Some((position(block.op?), id))).collect();
        let mut by_free: Vec<_> =
            blocks().filter_map(|(block, id)| Some((block.free_time?, id))).collect();
        by_op.sort_unstable();
        by_free.sort_unstable();
        Self { by_op, by_free }
    }

    /// The blocks allocated within `op`, in order.
    pub(super) fn within(&self, profile: &Profile, op: OpId) -> Vec<BlockId> {
        let positions = profile.tree.positions(op);
        let at = |position: usize| self.by_op.partition_point(|&(p, _)| (p as usize) < position);
        let inside = &self.by_op[at(positions.start)..at(positions.end)];
        let mut blocks: Vec<BlockId> = inside.iter().map(|&(_, block)| block).collect();
        blocks.sort_unstable();
        blocks
    }

    /// The blocks freed in a span of time, the latest allocation first.
    pub(super) fn freed_in(&self, time: &RangeInclusive<Nanos>) -> Vec<BlockId> {
        let from = self.by_free.partition_point(|(free, _)| free < time.start());
        let to = self.by_free.partition_point(|(free, _)| free <= time.end());
        let freed = self.by_free.get(from..to).unwrap_or_default();
        let mut blocks: Vec<BlockId> = freed.iter().map(|&(_, block)| block).collect();
        blocks.sort_unstable_by(|a, b| b.cmp(a));
        blocks
    }
}
