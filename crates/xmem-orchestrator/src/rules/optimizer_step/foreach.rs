//! A recipe carried out: the lists of one parameter group in the order in which CUDA's allocator gets
//! their requests.

use super::recipe::{Act, Local, Recipe, When};
use super::updates::{Update, made_in_loop};
use crate::frame::draft::{Edits, Piece, Plan};
use std::collections::BTreeMap;
use xmem_analyzer::{DType, Role};
use xmem_types::{BlockId, Bytes, OpId};

/// Requests what `_multi_tensor_*` requests for one parameter group.
///
/// Parameters of different types are handled one type after the other, the type that comes last
/// first (aten/src/ATen/native/ForeachUtils.h, `_group_tensors_by_first_tensors_device_and_dtype`: a
/// hash map, which takes new keys in front).
pub(super) fn run(edits: &mut Edits<'_, '_>, recipe: &Recipe, updates: &[Update], mark: OpId) {
    let (Some(first), Some(last)) = (updates.first(), updates.last()) else { return };
    let (at, end) = (edits.before(first.end()), edits.after_op(last.end()));
    let plan = edits.plan(first.end(), at, Role::Temporary);
    let mut function = Function { plan, mark, locals: BTreeMap::new() };
    for list in by_type(updates) {
        for act in recipe.body {
            function.act(act, &list);
        }
    }
    function.plan.move_to(end);
    for local in recipe.locals {
        function.release(local);
    }
    let forgotten: Vec<Local> = function.locals.keys().copied().collect();
    debug_assert!(forgotten.is_empty(), "{} leaves {forgotten:?}", recipe.class);
    function.plan.finish();
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
struct Function<'e, 'd, 'p> {
    plan: Plan<'e, 'd, 'p>,
    mark: OpId,
    /// The lists that variables hold.
    locals: BTreeMap<Local, Vec<Piece>>,
}

impl Function<'_, '_, '_> {
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
            Act::Each(requests) => {
                let mut lists: BTreeMap<Local, Vec<Piece>> = BTreeMap::new();
                for update in list {
                    self.plan.belongs_to(update.end());
                    for (local, piece) in requests(&mut self.plan, update) {
                        lists.entry(local).or_default().push(piece);
                    }
                }
                for (local, made) in lists {
                    self.bind(local, made);
                }
            }
        }
    }

    /// Allocates; reports name the loop's operator that makes the like, if there is one. A tensor
    /// without elements takes no memory.
    fn make(&mut self, size: Bytes, like: &str, update: &Update) -> Option<Piece> {
        if size == Bytes::ZERO {
            return None;
        }
        let profile = self.plan.edits().profile();
        let op = update.ops.iter().copied().find(|&op| profile.op_name(op) == like);
        self.plan.belongs_to(op.unwrap_or_else(|| update.end()));
        Some(self.plan.take(size))
    }

    fn bind(&mut self, local: Local, list: Vec<Piece>) {
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
    fn free_all(&mut self, list: Vec<Piece>) {
        self.plan.free_all(list.into_iter().rev());
    }

    /// Moves the buffers that an update makes to where the function stands.
    fn take_state(&mut self, update: &Update) {
        let edits = self.plan.edits();
        let made = update.ops.iter().flat_map(|&op| edits.blocks_in(op));
        let is_state = |&block: &BlockId| {
            edits.escapes(block, self.mark) && made_in_loop(edits.profile(), block)
        };
        for block in made.filter(is_state).collect::<Vec<_>>() {
            self.plan.land(block);
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
