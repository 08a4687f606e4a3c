//! Memory that a job holds and whose allocation its trace does not show.
//!
//! A scheduled profiler starts after the first iteration: parameters, optimizer state and buffers
//! are then no blocks, but operators still show their sizes.

mod averages;

use crate::block::{Block, Evidence, Residency, Role};
use crate::names::NameKind;
use crate::roles::{self, Facts, FrozenWeights, Learned};
use crate::timeline::MarkKind;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use xmem_types::{Bytes, Diagnostics, Severity};

/// Tensors of one role and size that were there before the trace began.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preexisting {
    /// Their role.
    pub role: Role,
    /// Their place if the job ran on a GPU.
    pub residency: Residency,
    /// Bytes of each.
    pub size: Bytes,
    /// Their number.
    pub count: u32,
    /// The reason to believe that they exist.
    pub evidence: Evidence,
}

impl Preexisting {
    /// Bytes of all of them.
    #[must_use]
    pub fn total(&self) -> Bytes {
        self.size * u64::from(self.count)
    }
}

/// Lists what the trace lacks.
pub(crate) fn find(
    blocks: &[Block],
    facts: &Facts<'_>,
    learned: &Learned,
    notes: &mut Diagnostics,
) -> Vec<Preexisting> {
    let held = |role: Role| {
        let mut counts: FxHashMap<Bytes, u32> = FxHashMap::default();
        for b in blocks.iter().filter(|b| b.role == role) {
            *counts.entry(b.size).or_default() += 1;
        }
        counts
    };
    let mut found = Vec::new();
    let mut add = |role, residency, size, count, evidence| {
        if count > 0 {
            let evidence = Evidence(evidence);
            found.push(Preexisting { role, residency, size, count, evidence });
        }
    };
    let lists = facts.recorder.lists;
    let mut absent: BTreeMap<(Role, Bytes), u32> = BTreeMap::new();
    for &key in &facts.recorder.absent {
        *absent.entry(key).or_default() += 1;
    }
    for ((role, size), count) in absent {
        let residency =
            if role == Role::OptimizerState { Residency::Device } else { Residency::Model };
        add(role, residency, size, count, "listed by the recording, but no block of the trace");
    }
    let warm = !lists.tensors && held(Role::Parameter).is_empty();
    let inputs = held(Role::Input);
    let leaves = if lists.tensors { Vec::new() } else { learned.inventory.left() };
    for (size, count) in leaves {
        // Where the trace saw the model being made, a leaf that is left is batch data that wants a
        // gradient.
        let count = if warm || !inputs.contains_key(&size) { count } else { 0 };
        let text =
            "a gradient of this size is accumulated, but no block of the trace is its parameter";
        add(Role::Parameter, Residency::Model, size, count, text);
    }
    if warm {
        for (size, count) in FrozenWeights::of_first_forward(facts).left() {
            let text = "a forward operator takes a weight of this size that gets no gradient";
            add(Role::Parameter, Residency::Model, size, count, text);
        }
        let buffers = held(Role::Buffer);
        for (size, count) in roles::statistics_of_first_forward(facts) {
            let count = count.saturating_sub(buffers.get(&size).copied().unwrap_or(0));
            let text = "a normalization takes running statistics of this size";
            add(Role::Buffer, Residency::Model, size, count, text);
        }
    }
    if warm {
        let buffers = held(Role::Buffer);
        for (size, count) in averages::of_round(facts, learned) {
            let count = count.saturating_sub(buffers.get(&size).copied().unwrap_or(0));
            let text = "an average of a weight of this size is updated after the step";
            add(Role::Buffer, Residency::Model, size, count, text);
        }
    }
    if warm && !lists.state {
        let state = held(Role::OptimizerState);
        for (size, count) in state_of_last_step(facts, learned) {
            let count = count.saturating_sub(state.get(&size).copied().unwrap_or(0));
            let text =
                "the optimizer's step updates state of this size that it did not make in the trace";
            add(Role::OptimizerState, Residency::Device, size, count, text);
        }
    }
    let mut gradients: FxHashMap<Bytes, u32> = FxHashMap::default();
    for &size in &learned.gradients.before_trace {
        *gradients.entry(size).or_default() += 1;
    }
    for (size, count) in gradients {
        let text = "the first backward pass adds to a gradient of this size that no pass of the trace made";
        add(Role::Gradient, Residency::Device, size, count, text);
    }
    found.sort_by_key(|p| (p.role, std::cmp::Reverse(p.size), p.evidence.0));
    let total: Bytes = found.iter().map(Preexisting::total).sum();
    let count = found.iter().map(|p| u64::from(p.count)).sum();
    notes.report_many("made-before-trace", Severity::Warning, None, count, || {
        format!(
            "the recording began after the model was created: {total} of parameters, buffers, \
             gradients and optimizer state are inferred from the operators that use them, and the iterations \
             before are taken to be like the first recorded one; what else was cached then is not known, so \
             that peak reserved may be higher"
        )
    });
    found
}

/// State tensors that the last round of steps updates, by size.
///
/// Read from the in-place operators of torch/optim's single-tensor loops: `addcmul_` updates a
/// second moment (adam.py, rmsprop.py, adagrad.py, adadelta.py), `lerp_` a first one (adam.py),
/// `maximum` into one of its arguments the largest second moment (adam.py, amsgrad), `clamp_` a step
/// size (rprop.py), and `mul_` followed by `add_` or `addcdiv_` a momentum buffer (sgd.py, rmsprop.py).
/// Operators over whole lists (`_foreach_…`, `_fused_…`) name no sizes beyond 30 tensors; they update
/// one tensor for each trained parameter.
fn state_of_last_step(facts: &Facts<'_>, learned: &Learned) -> Vec<(Bytes, u32)> {
    let program = facts.program;
    let steps: Vec<_> = facts.timeline.marks.iter().filter(|m| m.kind == MarkKind::Step).collect();
    let mut state: FxHashMap<Bytes, u32> = FxHashMap::default();
    for mark in steps.iter().rev().take(facts.step_period.max(1)) {
        let is_of = |class| mark.op.is_some_and(|op| program.op_name(op).contains(class));
        let (factored, muon, adamax) = (is_of("Adafactor"), is_of("Muon"), is_of("Adamax"));
        let mut scaled: Option<Bytes> = None;
        let mut twice = false;
        let mut lists = 0;
        let ops = facts.timeline.ops(mark).iter();
        for op in ops.flat_map(|&op| std::iter::once(op).chain(program.tree.children(op))) {
            let name = program.op_name(op);
            lists += per_parameter(name);
            // The norm in Adamax, which is counted by its scaling.
            let largest =
                name == "aten::maximum" && !adamax && facts.program.tensor_bytes(op, 2).is_some();
            if program.kind(op) != NameKind::InPlace && !largest {
                continue;
            }
            let Some(size) = facts.program.tensor_bytes(op, 0) else { continue };
            let before = scaled.take();
            let again = std::mem::take(&mut twice);
            match name {
                "aten::addcmul_" | "aten::lerp_" | "aten::maximum" => {
                    *state.entry(size).or_default() += 1;
                }
                // Adafactor clamps its update.
                "aten::clamp_" if !factored => *state.entry(size).or_default() += 1,
                "aten::mul_" => {
                    twice = before == Some(size);
                    scaled = Some(size);
                }
                // Muon scales the parameter before it applies the update; Adafactor the update, which
                // has the parameter's form, and the first moment after that, if it has one.
                "aten::add_" | "aten::addcdiv_"
                    if before == Some(size)
                        && !muon
                        && (!factored
                            || again
                            || program
                                .arguments(op)
                                .tensor(0)
                                .is_some_and(|t| t.dims.len() <= 1)) =>
                {
                    *state.entry(size).or_default() += 1;
                }
                _ => {}
            }
        }
        for (size, count) in learned.inventory.all().into_iter().filter(|_| lists > 0) {
            *state.entry(size).or_default() += count.saturating_mul(lists);
        }
    }
    state.into_iter().collect()
}

/// The number of state tensors of each parameter that an operator over whole lists updates.
fn per_parameter(name: &str) -> u32 {
    match name {
        "aten::_foreach_addcmul_" | "aten::_foreach_lerp_" | "aten::_fused_adagrad_" => 1,
        "aten::_fused_adam_" | "aten::_fused_adamw_" => 2,
        _ => 0,
    }
}
