//! Gradients: what the accumulation nodes of backward received and kept.

use super::facts::Facts;
use crate::block::Block;
use crate::names::NameKind;
use crate::spans::Phase;
use crate::timeline::MarkKind;
use rustc_hash::FxHashMap;
use xmem_types::{Bytes, Nanos, OpId};

/// One run of `torch::autograd::AccumulateGrad`.
#[derive(Clone, Copy, Debug)]
struct Accumulation {
    start: Nanos,
    end: Nanos,
    /// Index of its backward pass.
    pass: usize,
    /// Of the gradient it received, where shapes were recorded.
    size: Option<Bytes>,
    /// True if it added to a gradient that was already there.
    adds: bool,
}

/// The gradients that the backward passes accumulated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gradients {
    /// Per backward pass: the sizes of the gradients of all leaves it reached.
    pub(crate) passes: Vec<Pass>,
    /// Sizes of gradients that the first pass added to but that no block of the trace holds.
    pub(crate) before_trace: Vec<Bytes>,
}

/// The leaves that one backward pass reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pass {
    pub(crate) start: Nanos,
    pub(crate) sizes: Vec<Bytes>,
}

/// The way in which an accumulation node kept a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accumulated {
    /// It is freed within backward.
    Passing,
    /// The node made it: a copy of the incoming gradient, or a sum.
    Made,
    /// The incoming gradient.
    TakenOver,
}

/// The gradients that the backward passes accumulated, and the blocks that they kept, by row.
///
/// `AccumulateGrad` (torch/csrc/autograd/functions/accumulate_grad.h, `accumulateGrad`) takes over
/// the incoming gradient where it can, else clones it; if there is a gradient already it adds to
/// it. So the most recent block of the accumulated size that backward made and that outlives the pass
/// is the gradient, else (a hook may free it) the most recent that is alive, unless the node adds
/// in place.
pub(super) fn find(
    blocks: &[Block],
    facts: &Facts<'_>,
) -> (Gradients, FxHashMap<usize, Accumulated>) {
    let (mut passes, accumulations) = accumulations(facts);
    let mut accumulated = FxHashMap::default();
    let mut before_trace = Vec::new();
    let mut open: FxHashMap<Bytes, Candidates> = FxHashMap::default();
    let mut next = 0;
    for a in &accumulations {
        while let Some(block) = blocks.get(next).filter(|b| b.alloc_time <= a.end) {
            if block.phase == Phase::Backward {
                let of_size = open.entry(block.size).or_default();
                if block.lasts_beyond(facts.span_end(block.alloc_time)) {
                    of_size.kept.push(next);
                } else {
                    of_size.passing.push(next);
                }
            }
            next += 1;
        }
        let Some(size) = a.size else { continue };
        passes[a.pass].sizes.push(size);
        let of_size = open.entry(size).or_default();
        let own = |i: &usize| blocks[*i].alloc_time >= a.start && blocks[*i].lasts_beyond(a.end);
        if a.adds && !of_size.kept.last().is_some_and(own) {
            let known = of_size.taken.is_some_and(|i| blocks[i].lasts_beyond(a.start));
            if a.pass == 0 && !known {
                before_trace.push(size);
            }
            continue;
        }
        let Some((candidate, kept)) = of_size.take(blocks, a.start) else { continue };
        let how = match (own(&candidate), kept) {
            (_, false) => Accumulated::Passing,
            (true, true) => Accumulated::Made,
            (false, true) => Accumulated::TakenOver,
        };
        accumulated.insert(candidate, how);
    }
    if !facts.program.has_shapes() {
        add_kept(&mut passes, blocks, facts);
    }
    (Gradients { passes, before_trace }, accumulated)
}

/// Adds what nodes made and kept to their pass: without shapes, all that shows of the leaves.
fn add_kept(passes: &mut [Pass], blocks: &[Block], facts: &Facts<'_>) {
    let made = blocks.iter().filter(|b| b.phase == Phase::Backward && is_in_node(b, facts));
    for block in made.filter(|b| b.lasts_beyond(facts.span_end(b.alloc_time))) {
        let after = passes.partition_point(|p| p.start <= block.alloc_time);
        if let Some(pass) = after.checked_sub(1) {
            passes[pass].sizes.push(block.size);
        }
    }
}

/// Returns whether a backward node made the block.
pub(super) fn is_in_node(block: &Block, facts: &Facts<'_>) -> bool {
    block.op.is_some_and(|op| facts.program.autograd.node_of(op).is_some())
}

/// Blocks of one size that may be gradients, in order of allocation.
#[derive(Default)]
struct Candidates {
    /// Those that outlive the pass.
    kept: Vec<usize>,
    /// Those that do not.
    passing: Vec<usize>,
    /// The latest that was taken.
    taken: Option<usize>,
}

impl Candidates {
    /// The gradient that is accumulated at `time`, and whether it outlives the pass.
    fn take(&mut self, blocks: &[Block], time: Nanos) -> Option<(usize, bool)> {
        let dead = |i: &usize| !blocks[*i].lasts_beyond(time);
        while self.kept.last().is_some_and(dead) {
            self.kept.pop();
        }
        if let Some(i) = self.kept.pop() {
            self.taken = Some(i);
            return Some((i, true));
        }
        while self.passing.last().is_some_and(dead) {
            self.passing.pop();
        }
        let found = self.passing.pop()?;
        self.taken = Some(found);
        Some((found, false))
    }
}

fn accumulations(facts: &Facts<'_>) -> (Vec<Pass>, Vec<Accumulation>) {
    let program = facts.program;
    let kind = |op: OpId| program.kind(op);
    let mut passes = Vec::new();
    let mut found = Vec::new();
    for mark in facts.timeline.marks.iter().filter(|m| m.kind == MarkKind::Backward) {
        let pass = passes.len();
        passes.push(Pass { start: mark.start, sizes: Vec::new() });
        for &outer in facts.timeline.ops(mark) {
            // Checkpointed segments run backward passes of their own within a node.
            let inside = program.tree.descendants(outer).iter().copied();
            for node in std::iter::once(outer).chain(inside) {
                if kind(node) != NameKind::AccumulateNode {
                    continue;
                }
                let inner = program.tree.descendants(node);
                // Where both last less than the clock's unit, one follows the other.
                let accumulate = inner
                    .iter()
                    .copied()
                    .chain(program.tree.following(node))
                    .find(|&o| kind(o) == NameKind::Accumulate);
                found.push(Accumulation {
                    start: program.op_start(node),
                    end: program.op_end(node),
                    pass,
                    size: facts.program.tensor_bytes(accumulate.unwrap_or(node), 0),
                    adds: inner
                        .iter()
                        .any(|&o| matches!(program.op_name(o), "aten::add_" | "aten::add")),
                });
            }
        }
    }
    found.sort_by_key(|a| a.start);
    (passes, found)
}
