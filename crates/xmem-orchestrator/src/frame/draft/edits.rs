//! The edits of a rule.

use super::item::{Item, ItemId};
use super::place::Place;
use super::plan::Plan;
use super::{Draft, OpId};
use crate::rule::{Rule, RuleEffect, RuleId};
use crate::schedule::Origin;
use crate::uncertainty::SizeRange;
use std::ops::Deref;
use xmem_analyzer::Role;
use xmem_types::{BlockId, Bytes, FallbackId, Nanos};

/// A draft in the hands of one rule, to which every edit is credited.
pub(crate) struct Edits<'d, 'p> {
    draft: &'d mut Draft<'p>,
    rule: RuleId,
}

/// A block that a rule adds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addition {
    /// Requested bytes.
    pub(crate) size: Bytes,
    /// The place of its allocation.
    pub(crate) alloc: Place,
    /// The place of its free.
    pub(crate) free: Place,
    /// Its role.
    pub(crate) role: Role,
    /// The operator of the CPU trace that it belongs to.
    pub(crate) op: OpId,
}

impl<'p> Deref for Edits<'_, 'p> {
    type Target = Draft<'p>;

    fn deref(&self) -> &Draft<'p> {
        self.draft
    }
}

impl<'d, 'p> Edits<'d, 'p> {
    /// The draft in the hands of `rule`.
    pub(crate) fn of(draft: &'d mut Draft<'p>, rule: RuleId) -> Self {
        Self { draft, rule }
    }

    /// The draft in the hands of another rule, whose code this one calls.
    pub(crate) fn credit(&mut self, rule: &'static Rule) -> Edits<'_, 'p> {
        let index = self.draft.effects.iter().position(|effect| effect.rule == rule);
        let rule = RuleId::new(index.expect("a rule of this lowering"));
        Edits { draft: self.draft, rule }
    }

    fn effect(&mut self) -> &mut RuleEffect {
        &mut self.draft.effects[self.rule.index()]
    }

    fn edit(&mut self, id: ItemId) -> &mut Item {
        &mut self.draft.items[id.index()]
    }

    /// The place just after `place`; later calls give later places.
    pub(crate) fn next(&mut self, place: Place) -> Place {
        self.draft.rank += 1;
        place.ranked(self.draft.rank)
    }

    /// The place just after an item's allocation; later calls give later places.
    pub(crate) fn after(&mut self, id: impl Into<ItemId>) -> Place {
        let alloc = self.item(id).alloc();
        self.next(alloc)
    }

    /// Decides that a block is on the GPU as it is.
    pub(crate) fn keep(&mut self, id: impl Into<ItemId>) {
        self.edit(id.into()).settled = true;
    }

    /// Leaves a block out.
    pub(crate) fn drop_block(&mut self, id: impl Into<ItemId>) {
        let rule = self.rule;
        let item = self.edit(id.into());
        if item.dropped {
            return;
        }
        (item.dropped, item.rule) = (true, Some(rule));
        let size = item.size;
        let effect = self.effect();
        effect.dropped.0 += 1;
        effect.dropped.1 += size;
    }

    /// Gives a block another size; one that was left out stays as it is.
    pub(crate) fn resize(&mut self, id: impl Into<ItemId>, size: Bytes) {
        let rule = self.rule;
        let item = self.edit(id.into());
        item.settled = true;
        let before = item.size;
        if item.dropped || before == size {
            return;
        }
        item.size = size;
        item.rule = Some(rule);
        let effect = self.effect();
        effect.resized.0 += 1;
        effect.resized.1 += before;
        effect.resized.2 += size;
    }

    /// Moves a block's allocation and free; one that was left out stays as it is.
    pub(crate) fn retime(&mut self, id: impl Into<ItemId>, alloc: Place, free: Place) {
        let rule = self.rule;
        let item = self.edit(id.into());
        item.settled = true;
        if item.dropped || (item.alloc == alloc && item.free == free) {
            return;
        }
        (item.alloc, item.free, item.rule) = (alloc, free, Some(rule));
        let size = item.size;
        let effect = self.effect();
        effect.retimed.0 += 1;
        effect.retimed.1 += size;
    }

    /// Moves a block's allocation.
    pub(crate) fn move_alloc(&mut self, id: impl Into<ItemId>, alloc: Place) {
        let id = id.into();
        self.retime(id, alloc, self.item(id).free());
    }

    /// Moves a block's free.
    pub(crate) fn move_free(&mut self, id: impl Into<ItemId>, free: Place) {
        let id = id.into();
        self.retime(id, self.item(id).alloc(), free);
    }

    /// Gives a block another role.
    pub(crate) fn set_role(&mut self, id: impl Into<ItemId>, role: Role) {
        self.edit(id.into()).role = role;
    }

    /// Lets a block have smaller sizes where memory is short.
    pub(crate) fn fall_back(&mut self, id: ItemId, sizes: FallbackId) {
        self.edit(id).fallback = Some(sizes);
    }

    /// Registers a list of sizes for [`Edits::fall_back`], in the order in which they are tried.
    pub(crate) fn fallback_sizes(&mut self, sizes: impl Iterator<Item = Bytes>) -> FallbackId {
        self.draft.fallbacks.add(sizes)
    }

    /// Says of a block that its operator has no CUDA model.
    pub(crate) fn mark_unmodeled(&mut self, id: impl Into<ItemId>, op: OpId) {
        self.edit(id.into()).unmodeled = Some(op);
    }

    /// Adds a block that the CPU does not have, and returns its item. A size of zero adds nothing.
    pub(crate) fn add(&mut self, new: Addition) -> Option<ItemId> {
        (new.size > Bytes::ZERO).then(|| self.put(new, None))
    }

    /// Adds a block whose size is uncertain. If it is expected to be zero, it shows in
    /// [`Schedule::uncertain`](crate::Schedule::uncertain) only.
    pub(crate) fn add_uncertain(&mut self, new: Addition, range: SizeRange) -> Option<ItemId> {
        if range.is_exact() {
            return self.add(new);
        }
        Some(self.put(new, Some(range)))
    }

    /// Adds the workspace in which all plans of a convolution are tried; all cached memory is released
    /// with its free, even where no plan needs a workspace.
    pub(crate) fn add_trial(&mut self, new: Addition, range: SizeRange, sizes: FallbackId) {
        let is_exact = range.is_exact() || new.size == Bytes::ZERO;
        let id = self.put(new, (!is_exact).then_some(range));
        let item = self.edit(id);
        (item.fallback, item.is_trial) = (Some(sizes), true);
    }

    /// Adds a block that was there before the trace began; it lives until `free`.
    pub(crate) fn add_preexisting(&mut self, size: Bytes, role: Role, free: Place) {
        let block = self.profile.blocks.first().map_or(Nanos::ZERO, |b| b.alloc_time);
        let iteration = self.profile.iterations.first().map_or(Nanos::MAX, |i| i.start);
        let first = block.min(Nanos(iteration.0.saturating_sub(1)));
        self.draft.rank += 1;
        let alloc = Place::before(first).ranked(i32::MIN + self.draft.rank);
        self.push(size, role, (alloc, free), Origin::Preexisting, None);
    }

    /// Adds a block that no operator of the trace made.
    pub(crate) fn add_unseen(&mut self, size: Bytes, role: Role, alloc: Place, free: Place) {
        self.push(size, role, (alloc, free), Origin::Unseen { at: alloc.time() }, None);
    }

    fn put(&mut self, new: Addition, range: Option<SizeRange>) -> ItemId {
        let Addition { size, alloc, free, role, op } = new;
        let origin = Origin::Added { op, at: alloc.time() };
        self.push(size, role, (alloc, free), origin, range.map(Box::new))
    }

    fn push(
        &mut self,
        size: Bytes,
        role: Role,
        (alloc, free): (Place, Place),
        origin: Origin,
        range: Option<Box<SizeRange>>,
    ) -> ItemId {
        let id = ItemId::new(self.draft.items.len());
        let expected = range.is_none() || size > Bytes::ZERO;
        self.draft.items.push(Item {
            size,
            alloc,
            free,
            role,
            settled: true,
            dropped: false,
            origin,
            rule: Some(self.rule),
            range,
            fallback: None,
            is_trial: false,
            unmodeled: None,
        });
        if expected {
            let effect = self.effect();
            effect.added.0 += 1;
            effect.added.1 += size;
        }
        id
    }

    /// Adds scratch that lives from just after an item's allocation until just after that again: the
    /// workspace of one kernel call.
    pub(crate) fn add_call_scratch(&mut self, size: Bytes, id: impl Into<ItemId>, op: OpId) {
        let id = id.into();
        let (alloc, free) = (self.after(id), self.after(id));
        self.add(Addition { size, alloc, free, role: Role::Workspace, op });
    }

    /// A plan of the requests of `op`: its outputs stay where they are or move behind earlier requests,
    /// the scratch of the CPU's kernel is left out.
    pub(crate) fn replace_scratch(&mut self, op: OpId) -> Plan<'_, 'd, 'p> {
        let live = |&block: &BlockId| self.live(block);
        let blocks: Vec<BlockId> = self.blocks_in(op).into_iter().filter(live).collect();
        let (outputs, scratch): (Vec<BlockId>, Vec<BlockId>) =
            blocks.into_iter().partition(|&block| self.escapes(block, op));
        for block in scratch {
            self.drop_block(block);
        }
        let (start, end) = (self.before(op), self.after_op(op));
        Plan::new(self, op, start, Role::Workspace).ends(end).outputs(outputs)
    }

    /// A plan of requests from `at` on, which belong to `op`.
    pub(crate) fn plan(&mut self, op: OpId, at: Place, role: Role) -> Plan<'_, 'd, 'p> {
        Plan::new(self, op, at, role)
    }
}
