//! Whether operators agree with each other and with the memory that they made.

use super::checks::{BACKWARD, NAMES, NESTING, OUTPUTS, THREADS, VOCABULARY};
use super::signatures::output_bytes;
use super::{Integrity, Subject};
use crate::distributed;
use crate::names::NameKind;
use crate::optree::ROUNDING;
use crate::program::Program;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use xmem_types::{Location, Nanos, OpId, Sym, ThreadIdx};

pub(super) fn check(subject: &Subject<'_>, integrity: &mut Integrity) {
    names(subject, integrity);
    // On a GPU, autograd runs backward on a thread of its own (torch/csrc/autograd/engine.cpp).
    if subject.gpu.is_none() {
        threads(subject, integrity);
    }
    nesting(subject, integrity);
    backward(subject, integrity);
    // The last operator of a recording that was stopped may not have allocated yet. Beside a GPU, operators
    // on tensors of the host have their outputs there.
    if subject.complete && subject.gpu.is_none() {
        outputs(subject, integrity);
    }
}

/// Operators of which every program has some.
const COMMON: [&str; 24] = [
    "add",
    "add_",
    "addmm",
    "as_strided",
    "bmm",
    "copy_",
    "detach",
    "div",
    "div_",
    "empty",
    "empty_like",
    "empty_strided",
    "expand",
    "fill_",
    "mm",
    "mul",
    "mul_",
    "reshape",
    "sum",
    "t",
    "to",
    "transpose",
    "view",
    "zero_",
];

fn names(subject: &Subject<'_>, integrity: &mut Integrity) {
    let strings = &subject.program.trace.strings;
    let names = &subject.program.trace.ops.name;
    let of_torch = names.iter().filter_map(|name| strings.resolve(*name).strip_prefix("aten::"));
    let unknown = of_torch.clone().filter(|name| !COMMON.contains(name)).count() as u64;
    integrity.add(&VOCABULARY, (unknown, of_torch.count() as u64), None);
    let mut nameless = (0..names.len()).filter(|&row| names[row] == Sym::EMPTY);
    let count = nameless.clone().count() as u64;
    let first = nameless.next().map(|row| Location::Op(OpId::new(row)));
    integrity.add(&NAMES, (count, names.len() as u64), first);
}

/// The profiler records one thread, and those of communication libraries.
fn threads(subject: &Subject<'_>, integrity: &mut Integrity) {
    let Program { trace, .. } = subject.program;
    let (ops, memory) = (&trace.ops, &trace.memory);
    let of_torch = |row: &usize| trace.strings.resolve(ops.name[*row]).starts_with("aten::");
    let running = (0..ops.len()).filter(of_torch).map(|row| ops.thread[row]);
    let allocating = subject.rows.iter().map(|&row| memory.thread[row as usize]);
    let mut counts: FxHashMap<ThreadIdx, u64> = FxHashMap::default();
    running.chain(allocating).for_each(|thread| *counts.entry(thread).or_default() += 1);
    let communicates = |row: &usize| distributed::is_work(trace.strings.resolve(ops.name[*row]));
    for row in (0..ops.len()).filter(communicates) {
        counts.remove(&ops.thread[row]);
    }
    let (all, most) = (counts.values().sum(), counts.values().max().copied().unwrap_or(0));
    integrity.add(&THREADS, (all - most, all), None);
}

fn nesting(subject: &Subject<'_>, integrity: &mut Integrity) {
    let program = subject.program;
    let outlasts = |&op: &OpId| {
        let parent = program.tree.parent(op);
        parent.is_some_and(|parent| program.tree.end(op) > program.op_end(parent) + ROUNDING)
    };
    let ops = program.tree.preorder();
    let mut found = ops.iter().filter(|op| outlasts(op));
    let count = found.clone().count() as u64;
    integrity.add(&NESTING, (count, ops.len() as u64), found.next().map(|&op| Location::Op(op)));
}

/// Every backward node was made by a forward operator, whose sequence number it has. Those in which a hook of FSDP runs
/// have none (torch/distributed/fsdp/_fully_shard/_fsdp_state.py, `_pre_backward`). A node runs again where the graph is
/// kept, as in schedules that split the backward pass (torch/distributed/pipelining/_backward.py, `stage_backward_weight`).
fn backward(subject: &Subject<'_>, integrity: &mut Integrity) {
    let program = subject.program;
    let nodes = program.tree.preorder().iter().copied();
    let nodes = nodes.filter(|&op| program.kind(op) == NameKind::Node);
    let mut used: FxHashMap<OpId, (Sym, Nanos)> = FxHashMap::default();
    let mut runs_again = |forward, node| {
        let this = (program.op_symbol(node), program.op_end(node));
        let first = *used.entry(forward).or_insert(this);
        first == this || first.0 == this.0 && first.1 <= program.op_start(node)
    };
    let has_hook = |node| {
        let mut inside = program.tree.children(node);
        inside.any(|op| program.kind(op).is_of_fsdp())
    };
    let mut orphans = nodes.clone().filter(|&node| match program.autograd.forward_of(node) {
        None => !has_hook(node),
        Some(forward) => !runs_again(forward, node),
    });
    let first = orphans.next();
    let count = first.iter().count() + orphans.count();
    let (count, first) = (count as u64, first.map(Location::Op));
    integrity.add(&BACKWARD, (count, nodes.count() as u64), first);
}

/// An operator that returns a new tensor allocates it, at the size that the shapes of its inputs give.
fn outputs(subject: &Subject<'_>, integrity: &mut Integrity) {
    let program = subject.program;
    let bytes = |op| output_bytes(program.op_name(op), program.arguments(op));
    let mut missing = expected_outputs(subject, |_| false, bytes);
    let checked = missing.len() as u64;
    let slack = if subject.coarse { ROUNDING } else { Nanos::ZERO };
    missing.retain(|&op, bytes| !allocates(subject, op, *bytes, slack));
    let first = missing.keys().next().map(|&op| Location::Op(op));
    integrity.add(&OUTPUTS, (missing.len() as u64, checked), first);
}

/// The operators that make an output of a size that is known, with the size. What comes before the second iteration is
/// left out, unless it is `always` in memory: there, models are made on the meta device, and compilers trace programs
/// without memory.
pub(super) fn expected_outputs(
    subject: &Subject<'_>,
    always: impl Fn(OpId) -> bool,
    bytes: impl Fn(OpId) -> Option<u64>,
) -> BTreeMap<OpId, u64> {
    let program = subject.program;
    let mut expected: BTreeMap<OpId, u64> = BTreeMap::new();
    let from = subject.iterations.get(1).or(subject.iterations.first()).map(|i| i.start);
    for &op in program.tree.preorder() {
        if from.is_some_and(|from| program.op_start(op) < from) && !always(op) {
            continue;
        }
        // A checkpoint ends its recomputation with an exception, before the last operator runs
        // (torch/utils/checkpoint.py, `_StopRecomputationError`).
        let records = program.trace.ops.sequence[op.index()] >= 0;
        if records && program.autograd.node_of(op).is_some() {
            continue;
        }
        if let Some(bytes) = bytes(op).filter(|&bytes| bytes > 0 && computes(&program, op)) {
            expected.insert(op, bytes);
        }
    }
    expected
}

/// An operator that is handed to a mode or a subclass of tensors written in Python (aten/src/ATen/core/
/// PythonFallbackKernel.cpp), which decide what it returns: that on a DTensor runs on the part of one process.
const HANDED_ON: [&str; 2] = ["PythonDispatchMode", "PythonSubclass"];

/// Returns whether an operator makes its output itself, in memory. Tensors of a mode may have none: DTensor asks fake
/// ones for shapes (torch/distributed/tensor/_sharding_prop.py, `propagate_tensor_meta`).
fn computes(program: &Program<'_>, op: OpId) -> bool {
    // Autocast calls the same operator again with converted inputs. The shape of a sparse tensor says nothing of its memory.
    let is_passed_on = |inner: OpId| {
        program.op_symbol(inner) == program.op_symbol(op)
            || HANDED_ON.contains(&program.op_name(inner))
            || program.op_name(inner) == "aten::_indices"
    };
    let mut outside = std::iter::successors(program.tree.parent(op), |&op| program.tree.parent(op));
    !program.tree.children(op).any(is_passed_on)
        && !outside.any(|op| program.op_name(op) == HANDED_ON[0])
}

/// Returns whether an operator allocates a block of this size; its times may be off by `slack`.
fn allocates(subject: &Subject<'_>, op: OpId, bytes: u64, slack: Nanos) -> bool {
    let (start, end) = (subject.program.op_start(op) - slack, subject.program.op_end(op) + slack);
    let lifetimes = subject.lifetimes;
    let from = lifetimes.partition_point(|lifetime| lifetime.alloc_time < start);
    let inside = lifetimes[from..].iter().take_while(|lifetime| lifetime.alloc_time <= end);
    { inside }.any(|lifetime| lifetime.size.get() == bytes)
}
