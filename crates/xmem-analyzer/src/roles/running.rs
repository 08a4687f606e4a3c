//! Blocks made while the loop runs: batch data, forward results, optimizer state.

use super::facts::Facts;
use crate::block::Block;
use crate::names::NameKind;
use crate::spans::Phase;
use crate::timeline::MarkKind;
use rustc_hash::{FxHashMap, FxHashSet};
use xmem_types::{Bytes, Nanos, OpId, Sym};

/// Blocks that are alike: of one operator, size and source line.
pub(super) type Likeness = (Option<Sym>, Bytes, Sym);

/// The iterations in which forward makes blocks that outlive `last_use`, as bits, by likeness.
pub(super) fn made_in_forward(
    blocks: &[Block],
    last_use: Nanos,
    facts: &Facts<'_>,
) -> FxHashMap<Likeness, u32> {
    let mut made: FxHashMap<Likeness, u32> = FxHashMap::default();
    let kept = |b: &&Block| b.phase == Phase::Forward && b.lasts_beyond(last_use);
    for block in blocks.iter().filter(kept) {
        *made.entry(likeness(block, facts)).or_default() |=
            block.iteration.map_or(0, |i| 1_u32.checked_shl(i.0).unwrap_or(1 << 31));
    }
    made
}

pub(super) fn likeness(block: &Block, facts: &Facts<'_>) -> Likeness {
    (block.op.map(|op| facts.program.op_symbol(op)), block.size, block.line)
}

/// The number of operators before `aten::lift_fresh` that are searched for the ones of its tensor. The
/// longest sequence is `empty`, `to`, `_to_copy`, `empty_strided`, `copy_`; in the recorded traces
/// (traces/, 54 files) each of 5,276 begins 2 operators before, with `empty` and `to`.
const LIFT_WINDOW: usize = 8;

/// Operators whose result came from Python values: `torch.tensor(value)` allocates with
/// `aten::empty`, converts with `aten::to` and ends with `aten::lift_fresh`
/// (torch/csrc/utils/tensor_new.cpp, `internal_new_from_data`).
pub(super) fn made_from_numbers(facts: &Facts<'_>) -> FxHashSet<OpId> {
    let program = facts.program;
    let order = program.tree.preorder();
    let mut found = FxHashSet::default();
    for (at, &lift) in order.iter().enumerate() {
        if program.kind(lift) != NameKind::LiftFresh {
            continue;
        }
        for &op in order[at.saturating_sub(LIFT_WINDOW)..at].iter().rev() {
            let name = program.op_name(op);
            if !matches!(
                name,
                "aten::empty"
                    | "aten::to"
                    | "aten::_to_copy"
                    | "aten::empty_strided"
                    | "aten::copy_"
            ) {
                break;
            }
            found.insert(op);
            if name == "aten::empty" {
                break;
            }
        }
    }
    found
}

/// The end of the step around `time`. One that nothing marks ends with its last operator, and
/// what that one used is freed just after it.
pub(super) fn step_end(facts: &Facts<'_>, time: Nanos) -> Nanos {
    let Some(span) = facts.phase_at(time) else { return Nanos::MAX };
    if span.mark.is_some() {
        return span.end;
    }
    let outer = &facts.timeline.outer;
    let next = outer.partition_point(|&op| facts.program.op_start(op) < span.end);
    outer.get(next).map_or(Nanos::MAX, |&op| facts.program.op_start(op))
}

/// Starts of the optimizer steps, with whether they run fused.
pub(super) fn fused_steps(facts: &Facts<'_>) -> Vec<(Nanos, bool)> {
    let program = facts.program;
    let is_fused = |op: OpId| program.op_name(op).starts_with("aten::_fused_");
    let steps = facts.timeline.marks.iter().filter(|m| m.kind == MarkKind::Step);
    steps
        .map(|mark| {
            let mut ops = facts.timeline.ops(mark).iter();
            let fused = ops.any(|&op| is_fused(op) || program.tree.children(op).any(is_fused));
            (mark.start, fused)
        })
        .collect()
}

/// Starts of forward phases that a data phase or the start of an iteration precedes.
pub(super) fn forward_starts(facts: &Facts<'_>) -> Vec<Nanos> {
    let mut starts = Vec::new();
    let mut last = Phase::Init;
    for span in facts.phases {
        // Clearing gradients may split a forward in two.
        if span.phase == Phase::Forward && last != Phase::Forward {
            starts.push(span.start);
        }
        if span.phase != Phase::ZeroGrad {
            last = span.phase;
        }
    }
    starts
}
