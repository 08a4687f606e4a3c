//! One block of the schedule to be.

use super::place::Place;
use crate::rule::RuleId;
use crate::schedule::Origin;
use crate::uncertainty::SizeRange;
use xmem_analyzer::{Block, Role};
use xmem_types::{BlockId, Bytes, FallbackId, OpId};

/// The id of an item: recorded blocks first, in their order, then what rules added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ItemId(u32);

impl ItemId {
    pub(super) const fn new(index: usize) -> Self {
        Self(index as u32)
    }

    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<BlockId> for ItemId {
    fn from(block: BlockId) -> Self {
        Self(block.0)
    }
}

/// A block of the schedule to be: recorded, or added by a rule.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(super) size: Bytes,
    pub(super) alloc: Place,
    pub(super) free: Place,
    pub(super) role: Role,
    /// A rule has decided about it; passes about everything else leave it alone.
    pub(super) settled: bool,
    /// Left out of the schedule.
    pub(super) dropped: bool,
    pub(super) origin: Origin,
    /// The last rule that resized, moved or added it, or the one that left it out.
    pub(super) rule: Option<RuleId>,
    /// The bounds of its size, if it is uncertain. Seldom there, hence the box.
    pub(super) range: Option<Box<SizeRange>>,
    /// The smaller sizes that it may have where memory is short.
    pub(super) fallback: Option<FallbackId>,
    /// It is the workspace in which all plans of a convolution are tried.
    pub(super) is_trial: bool,
    /// The operator that made it, if that operator has no CUDA model.
    pub(super) unmodeled: Option<OpId>,
}

impl Item {
    pub(super) fn recorded(id: BlockId, block: &Block) -> Self {
        let free = block.free.zip(block.free_time);
        Self {
            size: block.size,
            alloc: Place::recorded(block.alloc_time, block.alloc),
            free: free.map_or(Place::NEVER, |(tick, time)| Place::recorded(time, tick)),
            role: block.role,
            settled: false,
            dropped: false,
            origin: Origin::Recorded(id),
            rule: None,
            range: None,
            fallback: None,
            is_trial: false,
            unmodeled: None,
        }
    }

    /// Requested bytes.
    pub(crate) fn size(&self) -> Bytes {
        self.size
    }

    /// The place of its allocation.
    pub(crate) fn alloc(&self) -> Place {
        self.alloc
    }

    /// The place of its free; [`Place::NEVER`] if it stays.
    pub(crate) fn free(&self) -> Place {
        self.free
    }

    /// Its role in the job.
    pub(crate) fn role(&self) -> Role {
        self.role
    }

    /// Its origin.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns whether it is in the schedule.
    pub(crate) fn is_live(&self) -> bool {
        !self.dropped
    }

    /// Returns whether a rule has decided about it.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }
}
