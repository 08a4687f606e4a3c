//! The blocks to be placed, and what follows from their lifetimes alone.

use crate::instance::Instance;
use thiserror::Error;
use xmem_types::Bytes;

/// A block: a size, and the half-open interval `[start, end)` of ticks in which it is live. A tick is one
/// request: of a trace, the number of allocations and frees before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedBlock {
    /// Its size, rounded as its allocator would round it. A block of no bytes is placed at offset zero.
    pub size: Bytes,
    /// The first tick at which it is live.
    pub start: u32,
    /// The first tick at which it is no longer live.
    pub end: u32,
    /// The operator that made it, in the caller's numbering. Only
    /// [`Planner::GreedyByBreadth`](crate::Planner::GreedyByBreadth) uses it.
    pub operator: Option<u32>,
}

impl PlannedBlock {
    /// True if both are live at some tick.
    #[must_use]
    pub const fn overlaps_in_time(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// Blocks to be placed. A block's id is its place in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockList {
    blocks: Vec<PlannedBlock>,
    instance: Instance,
}

/// The reason why blocks make no list.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ListError {
    /// A block ends before it begins, or when it begins.
    #[error("block {block} has an empty lifetime: ticks {start} to {end}")]
    NoLifetime {
        /// Its place in the list.
        block: usize,
        /// Its first tick.
        start: u32,
        /// The tick at which it is said to end.
        end: u32,
    },
    /// All blocks together have more bytes than an offset can count.
    #[error("the blocks have more than 2^63 bytes together")]
    TooLarge,
    /// There are more blocks than ids.
    #[error("there are more than 2^31 blocks")]
    TooMany,
}

impl BlockList {
    /// The list of these blocks.
    ///
    /// # Errors
    /// If a block is never live, or their sizes add up to more than 2^63 bytes.
    pub fn new(blocks: Vec<PlannedBlock>) -> Result<Self, ListError> {
        if blocks.len() > i32::MAX as usize {
            return Err(ListError::TooMany);
        }
        if let Some(block) = blocks.iter().position(|block| block.start >= block.end) {
            let PlannedBlock { start, end, .. } = blocks[block];
            return Err(ListError::NoLifetime { block, start, end });
        }
        let total = blocks.iter().map(|block| u128::from(block.size.get())).sum::<u128>();
        if total > i64::MAX as u128 {
            return Err(ListError::TooLarge);
        }
        let instance = Instance::new(&blocks);
        Ok(Self { blocks, instance })
    }

    /// The blocks, by id.
    #[must_use]
    pub fn blocks(&self) -> &[PlannedBlock] {
        &self.blocks
    }

    /// The number of blocks.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.blocks.len()
    }

    /// True if there are no blocks.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The most bytes that are live at one tick (the "max load"). No plan has a lower peak, and some lists
    /// have no plan with this one.
    #[must_use]
    pub fn lower_bound(&self) -> Bytes {
        Bytes(self.instance.lower_bound())
    }

    /// The bytes of all blocks: the peak of a plan in which nothing is used twice.
    #[must_use]
    pub fn total(&self) -> Bytes {
        self.blocks.iter().map(|block| block.size).sum()
    }

    pub(crate) const fn instance(&self) -> &Instance {
        &self.instance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(blocks: &[(u64, u32, u32)]) -> Result<BlockList, ListError> {
        let block =
            |&(size, start, end)| PlannedBlock { size: Bytes(size), start, end, operator: None };
        BlockList::new(blocks.iter().map(block).collect())
    }

    #[test]
    fn the_lower_bound_is_the_largest_load() {
        for (blocks, bound) in [
            (&[][..], 0),
            (&[(5, 0, 1)], 5),
            // One that ends at a tick and one that begins there are not live together.
            (&[(5, 0, 1), (7, 1, 2)], 7),
            (&[(5, 0, 2), (7, 1, 2)], 12),
            (&[(5, 3, 9), (7, 1, 4), (1, 2, 3), (2, 8, 10)], 12),
            (&[(0, 0, 5), (3, 1, 2)], 3),
        ] {
            assert_eq!(list(blocks).expect("a list").lower_bound(), Bytes(bound), "{blocks:?}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let never = ListError::NoLifetime { block: 1, start: 3, end: 3 };
        assert_eq!(list(&[(1, 0, 1), (1, 3, 3)]), Err(never));
        assert_eq!(list(&[(u64::MAX, 0, 1)]), Err(ListError::TooLarge));
    }
}
