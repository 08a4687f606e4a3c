//! The CPU's loop, read back: which parameters a step updates, in which groups.

use super::recipe::{End, Previous, Recipe};
use crate::frame::count::Count;
use crate::frame::draft::Draft;
use rustc_hash::FxHashMap;
use std::ops::Range;
use xmem_analyzer::{DType, Profile};
use xmem_types::{BlockId, Bytes, OpId, Sym};

/// The update of one parameter.
#[derive(Clone, Debug)]
pub(super) struct Update {
    /// The operators directly in the step that make it up, as recorded.
    pub(super) ops: Vec<OpId>,
    /// Size of the parameter.
    pub(super) size: Bytes,
    pub(super) elements: u64,
    /// `None` if shapes were not recorded.
    pub(super) dtype: Option<DType>,
    /// Its gradient was negated (`maximize`).
    pub(super) negated: bool,
    /// L2 weight decay was added to its gradient.
    pub(super) decayed: bool,
}

impl Update {
    /// The operator that ends it.
    pub(super) fn end(&self) -> OpId {
        *self.ops.last().expect("an update has the operator that ends it")
    }
}

/// The operators of a step's own, directly in it: a closure's forward and backward come first.
pub(super) fn own_operators(profile: &Profile, mark: OpId) -> Vec<OpId> {
    let children: Vec<OpId> = profile.tree.children(mark).collect();
    let is_backward = |op: &OpId| {
        profile.op_name(*op).starts_with("autograd::") || profile.backward_node(*op).is_some()
    };
    let own = children.iter().rposition(is_backward).map_or(0, |at| at + 1);
    children[own..].to_vec()
}

/// Cuts the loop into the updates of single parameters.
pub(super) fn updates(draft: &Draft<'_>, recipe: &Recipe, mark: OpId, own: &[OpId]) -> Vec<Update> {
    let profile = draft.profile();
    let mut found = Vec::new();
    let mut from = 0;
    for (at, &op) in own.iter().enumerate() {
        let previous = at.checked_sub(1).map_or("", |p| profile.op_name(own[p]));
        if is_end(&recipe.end, profile.op_name(op), previous) {
            found.push(update(draft, recipe, mark, &own[from..=at]));
            from = at + 1;
        }
    }
    found
}

fn is_end(end: &End, name: &str, previous: &str) -> bool {
    name == end.op
        && match end.previous {
            Previous::Any => true,
            Previous::Is(wanted) => previous == wanted,
            Previous::IsNot(unwanted) => previous != unwanted,
        }
}

fn update(draft: &Draft<'_>, recipe: &Recipe, mark: OpId, ops: &[OpId]) -> Update {
    let profile = draft.profile();
    let names = || ops.iter().map(|&op| profile.op_name(op));
    let end = ops[ops.len() - 1];
    let (size, elements, dtype) = match profile.arguments(end).tensor(0) {
        Some(t) => (Count::bytes(t).into(), Count::elements(t).get(), Some(t.dtype)),
        None => {
            let size = largest_temporary(draft, mark, ops);
            (size, size.get() / DType::F32.size(), None)
        }
    };
    Update {
        size,
        elements,
        dtype,
        negated: names().any(|n| n == "aten::neg"),
        decayed: names()
            .take_while(|n| !recipe.decays_before.contains(n))
            .any(|n| n == "aten::add"),
        ops: ops.to_vec(),
    }
}

/// The parameter's size if shapes were not recorded: that of the loop's largest temporary.
fn largest_temporary(draft: &Draft<'_>, mark: OpId, ops: &[OpId]) -> Bytes {
    let blocks = ops.iter().flat_map(|&op| draft.blocks_in(op));
    let temporaries = blocks.filter(|&block| !draft.escapes(block, mark));
    temporaries.map(|block| draft.recorded_size(block)).max().unwrap_or_default()
}

/// The parameter groups of the steps so far. State is made group by group, so that the first step
/// shows them; later ones look like it.
#[derive(Debug, Default)]
pub(super) struct Groups {
    seen: FxHashMap<(Sym, Vec<Bytes>), Vec<usize>>,
}

impl Groups {
    /// Ranges of `updates`, one a parameter group (`Optimizer.param_groups`).
    pub(super) fn split(
        &mut self,
        draft: &Draft<'_>,
        recipe: &Recipe,
        mark: OpId,
        updates: &[Update],
    ) -> Vec<Range<usize>> {
        let key = (draft.profile().op_symbol(mark), updates.iter().map(|u| u.size).collect());
        let mut starts = state_between(draft, mark, updates);
        if starts.is_empty() {
            starts = self.seen.get(&key).cloned().unwrap_or_default();
        } else {
            self.seen.insert(key, starts.clone());
        }
        starts.push(0);
        let looks: Vec<_> = updates.iter().map(|u| look(draft.profile(), recipe, u)).collect();
        starts.extend((1..updates.len()).filter(|&i| looks[i - 1] != looks[i]));
        starts.sort_unstable();
        starts.dedup();
        let ends = starts.iter().skip(1).copied().chain([updates.len()]);
        starts.iter().copied().zip(ends).map(|(from, to)| from..to).collect()
    }
}

/// Updates before which the step makes state (`_init_group`), other than the first.
fn state_between(draft: &Draft<'_>, mark: OpId, updates: &[Update]) -> Vec<usize> {
    let profile = draft.profile();
    let makes_state = |i: &usize| {
        let from = profile.op_end(updates[i - 1].end());
        let to = profile.op_start(updates[*i].end());
        profile
            .blocks_between(from, to)
            .map(BlockId::new)
            .any(|block| draft.escapes(block, mark) && !made_in_loop(profile, block))
    };
    (1..updates.len()).filter(makes_state).collect()
}

/// Returns whether a block is a copy of a gradient: SGD's loop makes its buffers on the way.
pub(super) fn made_in_loop(profile: &Profile, block: BlockId) -> bool {
    let path = profile.op_path(profile.block(block));
    path.take_while(|&op| !profile.is_annotation(op)).any(|op| profile.op_name(op) == "aten::clone")
}

/// The difference between updates of different groups: the operators that an option adds or leaves out,
/// and the factors of weight decay and SGD's learning rate.
fn look<'a>(profile: &'a Profile, recipe: &Recipe, update: &Update) -> (Vec<usize>, Vec<&'a str>) {
    let count = |name: &str| update.ops.iter().filter(|&&op| profile.op_name(op) == name).count();
    let counts = ["aten::neg", "aten::add", "aten::mul_", "aten::maximum"].map(count).to_vec();
    let sums = update.ops.iter().filter(|&&op| {
        let name = profile.op_name(op);
        name == "aten::add" || recipe.class == "SGD" && name == "aten::add_"
    });
    (counts, sums.filter_map(|&op| profile.arguments(op).value(2)).collect())
}
