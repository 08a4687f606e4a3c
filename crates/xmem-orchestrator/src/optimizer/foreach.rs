//! A recipe carried out: the lists of one parameter group in the order in which CUDA's allocator is
//! asked for them.

use super::recipe::{Act, Extent, Local, Recipe, Scratch, When};
use super::updates::{Update, made_in_loop};
use crate::draft::{Addition, Draft, Position};
use crate::rules::name;
use std::collections::BTreeMap;
use xmem_analyzer::{DType, Role};
use xmem_types::{Bytes, OpId};

/// Puts in what `_multi_tensor_*` does for one parameter group.
///
/// Parameters of different types are handled one type after the other, the type that comes last
/// first (aten/src/ATen/native/ForeachUtils.h, `_group_tensors_by_first_tensors_device_and_dtype`: a
/// hash map, which takes new keys in front).
pub(super) fn run(draft: &mut Draft<'_>, recipe: &Recipe, updates: &[Update], mark: OpId) {
    let (Some(first), Some(last)) = (updates.first(), updates.last()) else { return };
    let at = Position::start(draft.profile.op_start(first.end()));
    let end = Position::end(draft.profile.op_end(last.end()));
    let mut function = Function { draft, at, mark, locals: BTreeMap::new() };
    for list in by_type(updates) {
        for act in recipe.body {
            function.act(act, &list);
        }
    }
    function.at = end;
    for local in recipe.locals {
        function.release(local);
    }
    let forgotten: Vec<Local> = function.locals.keys().copied().collect();
    debug_assert!(forgotten.is_empty(), "{} leaves {forgotten:?}", recipe.class);
}

/// Lists of parameters of one type each.
fn by_type(updates: &[Update]) -> Vec<Vec<&Update>> {
    let mut lists: Vec<(Option<DType>, Vec<&Update>)> = Vec::new();
    for update in updates {
        match lists.iter_mut().find(|l| l.0 == update.dtype) {
            Some(list) => list.1.push(update),
            None => lists.push((update.dtype, vec![update])),
        }
    }
    lists.into_iter().rev().map(|l| l.1).collect()
}

/// A `_multi_tensor_*` function at work.
struct Function<'a, 'b> {
    draft: &'a mut Draft<'b>,
    /// Where in the trace it stands.
    at: Position,
    mark: OpId,
    /// The lists that variables hold: items of the draft.
    locals: BTreeMap<Local, Vec<usize>>,
}

impl Function<'_, '_> {
    fn act(&mut self, act: &Act, list: &[&Update]) {
        match act {
            Act::Make { local, like, when } if holds(*when, list) => {
                let made = list.iter().filter_map(|u| self.make(u.size, like, u)).collect();
                self.bind(local, made);
            }
            Act::Move { from, to, when } if holds(*when, list) => {
                let moved = self.locals.remove(from).unwrap_or_default();
                self.bind(to, moved);
            }
            Act::Make { .. } | Act::Move { .. } => {}
            Act::Drop(local) => self.release(local),
            Act::KeepLast { of, by } => {
                let last = self.locals.get_mut(of).and_then(Vec::pop);
                self.bind(by, last.into_iter().collect());
            }
            Act::State => {
                for update in list {
                    self.take_state(update);
                }
            }
            Act::Each(scratch) => self.each(scratch, list),
        }
    }

    fn each(&mut self, scratch: &[Scratch], list: &[&Update]) {
        let mut lists: BTreeMap<Local, Vec<usize>> = BTreeMap::new();
        for update in list {
            let mut slots: BTreeMap<usize, usize> = BTreeMap::new();
            for act in scratch {
                match act {
                    Scratch::New(slot, extent) => {
                        let size = match extent {
                            Extent::Parameter => update.size,
                            Extent::Mask => Bytes(update.elements),
                            Extent::Number => Bytes(DType::F32.size()),
                        };
                        if let Some(made) = self.make(size, "", update) {
                            slots.insert(*slot, made);
                        }
                    }
                    Scratch::Free(slot) => {
                        if let Some(item) = slots.remove(slot) {
                            self.free(item);
                        }
                    }
                    Scratch::Append(slot, local) => {
                        lists.entry(local).or_default().extend(slots.remove(slot));
                    }
                }
            }
        }
        for (local, made) in lists {
            self.bind(local, made);
        }
    }

    /// Allocates; reports name the loop's operator that makes the like, if there is one. A tensor
    /// without elements takes no memory.
    fn make(&mut self, size: Bytes, like: &str, update: &Update) -> Option<usize> {
        if size == Bytes::ZERO {
            return None;
        }
        let alloc = self.draft.after_position(self.at);
        let profile = self.draft.profile;
        let op = update.ops.iter().copied().find(|&op| profile.op_name(op) == like);
        let op = op.unwrap_or_else(|| update.end());
        let role = Role::Temporary;
        self.draft.add(Addition { size, alloc, free: None, role, op }, name::OPTIMIZER);
        Some(self.draft.items.len() - 1)
    }

    fn free(&mut self, item: usize) {
        self.draft.items[item].free = Some(self.draft.after_position(self.at));
    }

    fn bind(&mut self, local: Local, list: Vec<usize>) {
        if let Some(old) = self.locals.insert(local, list) {
            self.free_all(old);
        }
    }

    fn release(&mut self, local: Local) {
        if let Some(list) = self.locals.remove(local) {
            self.free_all(list);
        }
    }

    /// Python's sequences let go of their last item first (Objects/tupleobject.c,
    /// `tuple_dealloc`; listobject.c, `list_dealloc`).
    fn free_all(&mut self, list: Vec<usize>) {
        for item in list.into_iter().rev() {
            self.free(item);
        }
    }

    /// Moves the buffers that an update makes to where the function stands.
    fn take_state(&mut self, update: &Update) {
        for op in update.ops.clone() {
            for block in self.draft.blocks_in(op) {
                if self.draft.escapes(block, self.mark) && made_in_loop(self.draft.profile, block) {
                    let alloc = self.draft.after_position(self.at);
                    let free = self.draft.items[block].free;
                    self.draft.retime(block, alloc, free, name::OPTIMIZER);
                }
            }
        }
    }
}

fn holds(when: When, list: &[&Update]) -> bool {
    let negated = list.iter().any(|u| u.negated);
    let decayed = list.iter().any(|u| u.decayed);
    match when {
        When::Always => true,
        When::Copied => negated || decayed,
        When::NotCopied => !negated && !decayed,
        When::Negated => negated,
        When::NotBoth => !(negated && decayed),
    }
}
