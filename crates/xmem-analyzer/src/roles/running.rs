//! Blocks made while the loop runs: batch data, forward results, optimizer state.

use super::{Facts, Inventory};
use crate::block::{Block, Phase, Residency, Role};
use crate::names::NameKind;
use crate::timeline::MarkKind;
use rustc_hash::{FxHashMap, FxHashSet};
use xmem_trace::DeviceKind;
use xmem_types::{Bytes, Nanos, OpId, Sym};

pub(super) const WRAPPED_NUMBER: &str = "a Python number wrapped for an operator";

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

/// A number that Python passes where a tensor is expected becomes a tensor outside of any operator
/// and is gone when the operator that takes it ends (torch/csrc/autograd/utils/wrap_outputs.h,
/// aten/src/ATen/ScalarOps.h).
pub(super) fn is_wrapped_number(block: &Block, facts: &Facts<'_>) -> bool {
    let program = facts.program;
    if block.op.is_some_and(|op| !program.is_annotation(op)) {
        return false;
    }
    let Some(freed) = block.free_time else { return false };
    let outer = &facts.timeline.outer;
    let next = outer.partition_point(|&o| program.op_start(o) < block.alloc_time);
    // Within the next operator, or just after it where the reference is dropped.
    outer.get(next + 1).is_none_or(|&o| freed <= program.op_start(o)) && block.size <= Bytes(16)
}

/// Decides the blocks made in optimizer steps.
pub(super) fn steps(blocks: &mut [Block], facts: &Facts<'_>, numbers: &FxHashSet<OpId>) {
    let fused = fused_steps(facts);
    for block in blocks.iter_mut().filter(|b| b.phase == Phase::OptimizerStep) {
        if !block.lasts_beyond(step_end(facts, block.alloc_time)) {
            block.decide(
                Role::Temporary,
                Residency::Device,
                "made and freed within the optimizer's step",
            );
        } else if block.op.is_some_and(|op| numbers.contains(&op)) {
            block.decide(
                Role::OptimizerState,
                Residency::HostOnly,
                "a counter: made from a Python number in the optimizer's step and kept beyond it",
            );
        } else if is_counter(block, facts, &fused) {
            block.decide(
                Role::OptimizerState,
                Residency::HostOnly,
                "a counter: a 0-dimensional tensor made in the optimizer's step and kept beyond it",
            );
        } else {
            block.decide(
                Role::OptimizerState,
                Residency::Device,
                "made in the optimizer's step and kept beyond it",
            );
        }
    }
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

/// Unless they run fused or captured, optimizers keep their counters on the host, as
/// `torch.zeros(())` (torch/optim/rmsprop.py, `_init_group`).
fn is_counter(block: &Block, facts: &Facts<'_>, fused: &[(Nanos, bool)]) -> bool {
    let program = facts.program;
    let Some(op) = program.outermost_op(block) else { return false };
    if program.op_name(op) != "aten::zeros" || program.arguments(op).value(0) != Some("[]") {
        return false;
    }
    let step = fused.partition_point(|f| f.0 <= block.alloc_time);
    !step.checked_sub(1).is_some_and(|at| fused[at].1)
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

/// Decides the blocks made where batches are loaded or gradients are cleared.
pub(super) fn data(blocks: &mut [Block], facts: &Facts<'_>) {
    let starts: Vec<Nanos> = forward_starts(facts);
    for block in blocks.iter_mut() {
        if block.phase == Phase::ZeroGrad {
            block.decide(Role::Temporary, Residency::Device, "made while gradients are cleared");
            continue;
        }
        if block.phase != Phase::Data {
            continue;
        }
        let next = starts.partition_point(|s| *s < block.alloc_time);
        match starts.get(next) {
            Some(&forward) if block.lasts_beyond(forward) => {
                let survives =
                    after_next(facts, block, &starts).is_some_and(|s| block.lasts_beyond(s));
                if survives {
                    block.decide(
                        Role::Input,
                        Residency::HostOnly,
                        "made while data is loaded, outlives the two iterations after it",
                    );
                } else {
                    block.decide(
                        Role::Input,
                        Residency::Batch,
                        "made while data is loaded, alive when forward begins",
                    );
                }
            }
            Some(_) => block.decide(
                Role::Temporary,
                Residency::HostOnly,
                "made while data is loaded, freed before forward",
            ),
            None if block.free_time.is_some() => block.decide(
                Role::Temporary,
                Residency::HostOnly,
                "made and freed after the last forward",
            ),
            None => {
                block.decide(Role::Unknown, Residency::HostOnly, "made after the last forward");
            }
        }
    }
}

/// Where forward first starts in the second iteration after a block's. An iteration may have several
/// forwards.
fn after_next(facts: &Facts<'_>, block: &Block, starts: &[Nanos]) -> Option<Nanos> {
    let at = block.iteration?.index() + 2;
    let iteration = facts.iterations.get(at)?.start;
    starts.get(starts.partition_point(|s| *s < iteration)).copied()
}

/// Starts of forward phases that a data phase or the start of an iteration precedes.
fn forward_starts(facts: &Facts<'_>) -> Vec<Nanos> {
    let mut starts = Vec::new();
    let mut course = Phase::Init;
    for span in facts.phases {
        // Clearing gradients may split a forward in two.
        if span.phase == Phase::Forward && course != Phase::Forward {
            starts.push(span.start);
        }
        if span.phase != Phase::ZeroGrad {
            course = span.phase;
        }
    }
    starts
}

/// Decides the blocks made in forward.
pub(super) fn forwards(blocks: &mut [Block], facts: &Facts<'_>, unmatched: &mut Inventory) {
    let backward: Vec<Nanos> =
        facts.phases.iter().filter(|p| p.phase == Phase::Backward).map(|p| p.start).collect();
    let last_use = facts.last_use();
    let mut made: FxHashMap<(Option<Sym>, Bytes, Sym), u32> = FxHashMap::default();
    let key = |b: &Block| (b.op.map(|op| facts.program.op_symbol(op)), b.size, b.line);
    let is_kept = |b: &Block| b.phase == Phase::Forward && b.lasts_beyond(last_use);
    for block in blocks.iter().filter(|b| is_kept(b)) {
        *made.entry(key(block)).or_default() |=
            block.iteration.map_or(0, |i| 1_u32.checked_shl(i.0).unwrap_or(1 << 31));
    }
    let one_iteration = facts.iterations.len() < 2;
    for block in blocks.iter_mut().filter(|b| b.phase == Phase::Forward) {
        let next = backward.partition_point(|s| *s < block.alloc_time);
        let end = backward.get(next).copied().unwrap_or(Nanos::MAX);
        let freed = block.free_time.filter(|f| *f < end);
        let in_backward = block
            .free_time
            .and_then(|f| facts.phase_at(f))
            .is_some_and(|p| p.phase == Phase::Backward);
        // Only the first iteration makes it, and it is never given back.
        let once = !one_iteration && is_kept(block) && made.get(&key(block)) == Some(&1);
        let (role, residency, evidence) = if freed.is_some() {
            if is_wrapped_number(block, facts) {
                (Role::Temporary, Residency::HostOnly, WRAPPED_NUMBER)
            } else {
                (Role::Temporary, Residency::Device, "made and freed within forward")
            }
        } else if in_backward {
            (Role::Activation, Residency::Device, "made in forward and freed in backward")
        } else if once && block.op.is_some() && unmatched.take(block.size) {
            let text =
                "made in the first forward, never freed, and a gradient of its size is accumulated";
            (Role::Parameter, Residency::Model, text)
        } else if once && is_library_scratch(block, facts) {
            (Role::Workspace, Residency::Device, "made in a matrix product and never freed")
        } else if once {
            (Role::Buffer, Residency::Device, "made in the first forward only and never freed")
        } else {
            (Role::Activation, Residency::Device, "made in forward and alive at its end")
        };
        block.decide(role, residency, evidence);
    }
}

/// cuBLAS workspaces are made in the first matrix product of a stream and kept
/// (aten/src/ATen/cuda/CublasHandlePool.cpp, `getCUDABlasLtWorkspace`); a CPU recording has none.
fn is_library_scratch(block: &Block, facts: &Facts<'_>) -> bool {
    facts.device == DeviceKind::Cuda
        && block.op.is_some_and(|op| {
            matches!(
                facts.program.op_name(op),
                "aten::mm" | "aten::addmm" | "aten::bmm" | "aten::baddbmm" | "aten::linear"
            )
        })
}
