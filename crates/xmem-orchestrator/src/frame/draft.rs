//! The schedule while rules work on it: one item per block, with places instead of indices.
//!
//! Everybody may look; edits go through [`Edits`], which credits each of them to a rule.

mod edits;
mod finish;
mod item;
mod place;
mod plan;
mod recorded;

pub(crate) use edits::{Addition, Edits};
pub(crate) use item::{Item, ItemId};
pub(crate) use place::Place;
pub(crate) use plan::{Piece, Plan};

use crate::rule::{Rule, RuleEffect};
use recorded::RecordedBlocks;
use xmem_analyzer::{Block, Profile};
use xmem_types::{BlockId, Bytes, Fallbacks, Nanos, OpId};

/// The number of blocks, counted back from an operator, among which its inputs are looked for
/// ([`Draft::recent`]). Blocks that rules have left out do not count.
///
/// The trace has no tensor ids, so that an input is the latest live block of its size. On three devices,
/// the 54 recorded traces have 2,658 such matches. The farthest were 142 blocks back for attention masks
/// (a position bias that the layers of T5 share), 109 for queries, keys and values (cross-attention), 51
/// for gradients that are viewed as rows, and 3 for inputs of operators that autocast casts.
pub(crate) const RECENT_WINDOW: usize = 256;

/// The items and the rules' account.
pub(crate) struct Draft<'p> {
    profile: &'p Profile,
    recorded: RecordedBlocks,
    /// First the profile's blocks, in order, then what rules added.
    items: Vec<Item>,
    fallbacks: Fallbacks,
    effects: Vec<RuleEffect>,
    rank: i32,
}

impl<'p> Draft<'p> {
    /// The draft of a lowering by `rules`, whose ids are their places in the list.
    pub(crate) fn new(profile: &'p Profile, rules: &[&'static Rule]) -> Self {
        let count = profile.blocks.len();
        // Rules seldom add as many again: growing would copy all of them.
        let mut items = Vec::with_capacity(count + count / 2);
        items.extend(
            profile.blocks.iter().zip((0_u32..).map(BlockId)).map(|(b, id)| Item::recorded(id, b)),
        );
        let effects = rules.iter().map(|rule| RuleEffect::none(rule)).collect();
        let recorded = RecordedBlocks::of(profile);
        Self { profile, recorded, items, fallbacks: Fallbacks::default(), effects, rank: 0 }
    }

    /// The profile that the draft was made of.
    pub(crate) fn profile(&self) -> &'p Profile {
        self.profile
    }

    /// An item.
    pub(crate) fn item(&self, id: impl Into<ItemId>) -> &Item {
        &self.items[id.into().index()]
    }

    /// Every item, in order.
    pub(crate) fn items(&self) -> impl Iterator<Item = (ItemId, &Item)> {
        self.items.iter().enumerate().map(|(index, item)| (ItemId::new(index), item))
    }

    /// Every recorded block, in order.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (BlockId, &'p Block)> + use<'p> {
        self.profile.blocks.iter().enumerate().map(|(i, block)| (BlockId::new(i), block))
    }

    /// Returns whether an item is still in the schedule.
    pub(crate) fn live(&self, id: impl Into<ItemId>) -> bool {
        self.item(id).is_live()
    }

    /// The recorded size of a block.
    pub(crate) fn recorded_size(&self, block: BlockId) -> Bytes {
        self.profile.block(block).size
    }

    /// The recorded blocks allocated within `op`, in order.
    pub(crate) fn blocks_in(&self, op: OpId) -> Vec<BlockId> {
        self.recorded.within(self.profile, op)
    }

    /// Returns whether a recorded block outlives `op`.
    pub(crate) fn escapes(&self, block: BlockId, op: OpId) -> bool {
        self.profile.block(block).lasts_beyond(self.profile.op_end(op))
    }

    /// The live blocks allocated within `op` that outlive it, in order.
    pub(crate) fn escaping(&self, op: OpId) -> Vec<BlockId> {
        let escapes = |&block: &BlockId| self.live(block) && self.escapes(block, op);
        self.blocks_in(op).into_iter().filter(escapes).collect()
    }

    /// The recorded blocks that are freed while `op` runs, the latest allocation first.
    pub(crate) fn freed_in(&self, op: OpId) -> Vec<BlockId> {
        self.recorded.freed_in(&(self.profile.op_start(op)..=self.profile.op_end(op)))
    }

    /// The recorded blocks that were allocated before `op` and are still in the schedule, the latest
    /// first, as far back as [`RECENT_WINDOW`]. All searches for "the most recent live block of this
    /// size" go through this function.
    pub(crate) fn recent(&self, op: OpId) -> impl Iterator<Item = BlockId> + '_ {
        let start = self.profile.op_start(op);
        let before = self.profile.blocks.partition_point(|b| b.alloc_time < start);
        let blocks = (0..before).rev().map(BlockId::new);
        blocks.filter(|&block| self.live(block)).take(RECENT_WINDOW)
    }

    /// The place before everything that `op` does.
    pub(crate) fn before(&self, op: OpId) -> Place {
        Place::before(self.profile.op_start(op))
    }

    /// The place after everything at the end of `op`.
    pub(crate) fn after_op(&self, op: OpId) -> Place {
        Place::after(self.profile.op_end(op))
    }

    /// The place at the end of `op`, before whatever happens when it has returned.
    pub(crate) fn at_end(&self, op: OpId) -> Place {
        let (start, end) = (self.profile.op_start(op), self.profile.op_end(op));
        Place::just_before(end.max(start + Nanos(1)))
    }
}
