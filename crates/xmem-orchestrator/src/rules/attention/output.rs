//! The output of a call and the copies around it.

use crate::frame::count::Count;
use crate::frame::draft::Draft;
use xmem_types::{BlockId, Bytes, OpId};

/// The number of blocks after a call among which the copy of its output lies: the next operators view,
/// transpose and copy it (`transpose(1, 2).contiguous()`, `reshape`). In the recorded traces, all of 714
/// copies were the first block.
const COPY_WINDOW: usize = 4;

/// The copies of a block of this size among the first blocks after `op`.
pub(super) fn copies_after<'a>(
    draft: &'a Draft<'_>,
    op: OpId,
    size: Bytes,
) -> impl Iterator<Item = BlockId> + 'a {
    let profile = draft.profile();
    let after = profile.blocks.partition_point(|b| b.alloc_time <= profile.op_end(op));
    let blocks = after..profile.blocks.len().min(after + COPY_WINDOW);
    let is_copied =
        move |&block: &BlockId| profile.block(block).size == size && is_copy(draft, block);
    blocks.map(BlockId::new).filter(is_copied)
}

/// Returns whether a block is made by a copy of a tensor.
pub(super) fn is_copy(draft: &Draft<'_>, block: BlockId) -> bool {
    let profile = draft.profile();
    profile.op_path(profile.block(block)).take(4).any(|o| profile.op_name(o) == "aten::clone")
}

/// The recorded size of a block, in bytes.
pub(super) fn size(draft: &Draft<'_>, block: BlockId) -> Count {
    draft.recorded_size(block).into()
}
