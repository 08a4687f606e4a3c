//! Blocks made while the loop runs: batch data, forward results, optimizer state.

use super::Facts;
use super::case::{Case, Clues};
use crate::block::{Block, Phase};
use crate::names::NameKind;
use crate::timeline::MarkKind;
use rustc_hash::FxHashSet;
use xmem_trace::DeviceKind;
use xmem_types::{Bytes, Nanos, OpId, Sym};

/// Finds counters' operators and fused steps.
pub(super) fn prepare_steps(clues: &mut Clues, _: &[Block], facts: &Facts<'_>) {
    clues.numbers = made_from_numbers(facts);
    clues.fused_steps = fused_steps(facts);
}

/// Finds where forward begins.
pub(super) fn prepare_data(clues: &mut Clues, _: &[Block], facts: &Facts<'_>) {
    clues.forward_starts = forward_starts(facts);
}

/// Finds which iterations made what the run keeps.
pub(super) fn prepare_forward(clues: &mut Clues, blocks: &[Block], facts: &Facts<'_>) {
    let backward = facts.phases.iter().filter(|p| p.phase == Phase::Backward);
    clues.backward_starts = backward.map(|p| p.start).collect();
    let kept = |b: &&Block| b.phase == Phase::Forward && b.lasts_beyond(clues.last_use);
    for block in blocks.iter().filter(kept) {
        *clues.made.entry(likeness(block, facts)).or_default() |=
            block.iteration.map_or(0, |i| 1_u32.checked_shl(i.0).unwrap_or(1 << 31));
    }
}

/// Blocks of one operator, size and source line are alike.
fn likeness(block: &Block, facts: &Facts<'_>) -> (Option<Sym>, Bytes, Sym) {
    (block.op.map(|op| facts.program.op_symbol(op)), block.size, block.line)
}

impl Case<'_> {
    /// Whether the block is a number that Python passes where a tensor is expected: it becomes a tensor
    /// outside of any operator and is gone when the operator that takes it ends
    /// (torch/csrc/autograd/utils/wrap_outputs.h, aten/src/ATen/ScalarOps.h).
    pub(super) fn is_wrapped_number(&self) -> bool {
        let (block, program) = (self.block(), self.facts.program);
        if block.op.is_some_and(|op| !program.is_annotation(op)) {
            return false;
        }
        let Some(freed) = block.free_time else { return false };
        let outer = &self.facts.timeline.outer;
        let next = outer.partition_point(|&o| program.op_start(o) < block.alloc_time);
        // Within the next operator, or just after it where the reference is dropped.
        outer.get(next + 1).is_none_or(|&o| freed <= program.op_start(o)) && block.size <= Bytes(16)
    }

    /// Whether the block outlives the optimizer's step around it.
    pub(super) fn outlives_step(&self) -> bool {
        self.block().lasts_beyond(step_end(self.facts, self.block().alloc_time))
    }

    /// Whether the block is an optimizer's counter. Unless they run fused or captured, optimizers keep
    /// their counters on the host, as `torch.zeros(())` (torch/optim/rmsprop.py, `_init_group`).
    pub(super) fn is_counter(&self) -> bool {
        let program = self.facts.program;
        let Some(op) = program.outermost_op(self.block()) else { return false };
        if program.op_name(op) != "aten::zeros" || program.arguments(op).value(0) != Some("[]") {
            return false;
        }
        let steps = &self.clues.fused_steps;
        let after = steps.partition_point(|f| f.0 <= self.block().alloc_time);
        !after.checked_sub(1).is_some_and(|at| steps[at].1)
    }

    /// The start of the next forward.
    pub(super) fn next_forward(&self) -> Option<Nanos> {
        let starts = &self.clues.forward_starts;
        starts.get(starts.partition_point(|s| *s < self.block().alloc_time)).copied()
    }

    /// Whether the block is alive when the next forward begins.
    pub(super) fn is_alive_at_forward(&self) -> bool {
        self.next_forward().is_some_and(|forward| self.block().lasts_beyond(forward))
    }

    /// Whether the block is alive when forward first starts in the second iteration after its own. An
    /// iteration may have several forwards.
    pub(super) fn outlives_two_iterations(&self) -> bool {
        let starts = &self.clues.forward_starts;
        let at = self.block().iteration.map(|i| i.index() + 2);
        let iteration = at.and_then(|at| self.facts.iterations.get(at)).map(|i| i.start);
        let forward = iteration.and_then(|i| starts.get(starts.partition_point(|s| *s < i)));
        forward.is_some_and(|&forward| self.block().lasts_beyond(forward))
    }

    /// Whether the block is freed before the next backward pass.
    pub(super) fn is_freed_in_forward(&self) -> bool {
        let starts = &self.clues.backward_starts;
        let next = starts.partition_point(|s| *s < self.block().alloc_time);
        let end = starts.get(next).copied().unwrap_or(Nanos::MAX);
        self.block().free_time.is_some_and(|freed| freed < end)
    }

    pub(super) fn is_freed_in_backward(&self) -> bool {
        let span = self.block().free_time.and_then(|freed| self.facts.phase_at(freed));
        span.is_some_and(|p| p.phase == Phase::Backward)
    }

    /// Whether only the first of several iterations makes the block, and it is never freed.
    pub(super) fn is_made_once(&self) -> bool {
        self.facts.iterations.len() >= 2
            && self.is_kept()
            && self.clues.made.get(&likeness(self.block(), self.facts)) == Some(&1)
    }

    /// Whether the block is a workspace of cuBLAS. They are made in the first matrix product of a
    /// stream and kept (aten/src/ATen/cuda/CublasHandlePool.cpp, `getCUDABlasLtWorkspace`); a CPU
    /// recording has none.
    pub(super) fn is_library_workspace(&self) -> bool {
        self.facts.device == DeviceKind::Cuda
            && self.block().op.is_some_and(|op| {
                matches!(
                    self.facts.program.op_name(op),
                    "aten::mm" | "aten::addmm" | "aten::bmm" | "aten::baddbmm" | "aten::linear"
                )
            })
    }
}

/// Operators whose result came from Python values: `torch.tensor(value)` allocates with
/// `aten::empty`, converts with `aten::to` and ends with `aten::lift_fresh`
/// (torch/csrc/utils/tensor_new.cpp, `internal_new_from_data`).
fn made_from_numbers(facts: &Facts<'_>) -> FxHashSet<OpId> {
    let program = facts.program;
    let order = program.tree.preorder();
    let mut found = FxHashSet::default();
    for (at, &lift) in order.iter().enumerate() {
        if program.kind(lift) != NameKind::LiftFresh {
            continue;
        }
        for &op in order[at.saturating_sub(8)..at].iter().rev() {
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

/// When the step around `time` is over. One that nothing marks ends with its last operator, and
/// what that one used is freed just after it.
fn step_end(facts: &Facts<'_>, time: Nanos) -> Nanos {
    let Some(span) = facts.phase_at(time) else { return Nanos::MAX };
    if span.mark.is_some() {
        return span.end;
    }
    let outer = &facts.timeline.outer;
    let next = outer.partition_point(|&op| facts.program.op_start(op) < span.end);
    outer.get(next).map_or(Nanos::MAX, |&op| facts.program.op_start(op))
}

/// Starts of the optimizer steps, with whether they run fused.
fn fused_steps(facts: &Facts<'_>) -> Vec<(Nanos, bool)> {
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
fn forward_starts(facts: &Facts<'_>) -> Vec<Nanos> {
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
