//! Whether the recorded shapes are there and possible.

use super::checks::{
    ARGUMENTS, EMPTY_SHAPES, IMPOSSIBLE_SHAPES, INCOMPATIBLE, LOST_SHAPES, SHAPES,
};
use super::signatures::inputs_agree;
use super::{Integrity, Subject};
use rustc_hash::FxHashMap;
use xmem_trace::SignatureId;
use xmem_types::{Location, OpId, Sym};

/// No tensor is larger: 2^48 bytes are the address space of x86-64 and of arm64.
const LARGEST: u64 = 1 << 48;

pub(super) fn check(subject: &Subject<'_>, integrity: &mut Integrity) {
    missing(subject, integrity);
    contradictory(subject, integrity);
    incompatible(subject, integrity);
    let program = subject.program;
    let (mut tensors, mut empty, mut impossible, mut first) = (0, 0, 0, None);
    for &op in program.tree.preorder() {
        for tensor in program.arguments(op).tensors() {
            tensors += 1;
            empty += u64::from(tensor.dims.contains(&0) && !starts_empty(program.op_name(op)));
            if tensor.bytes() > LARGEST {
                impossible += 1;
                first = first.or(Some(Location::Op(op)));
            }
        }
    }
    integrity.add(&IMPOSSIBLE_SHAPES, (impossible, tensors), first);
    integrity.add(&EMPTY_SHAPES, (empty, tensors), None);
}

/// Whether the operator gives an empty tensor its storage or passes a new one on, as where weights are loaded:
/// `torch.UntypedStorage` becomes a tensor by `torch.tensor([])` and `Tensor.set_`.
fn starts_empty(name: &str) -> bool {
    matches!(
        name,
        "aten::set_"
            | "aten::resize_"
            | "aten::lift_fresh"
            | "aten::detach_"
            | "detach_"
            | "aten::to"
    )
}

/// Operators without shapes whose name has them elsewhere.
fn missing(subject: &Subject<'_>, integrity: &mut Integrity) {
    let program = subject.program;
    let ops = &program.trace.ops;
    let mut counts: FxHashMap<Sym, (u64, u64, OpId)> = FxHashMap::default();
    for row in 0..ops.len() {
        if program.is_annotation(OpId::new(row)) {
            continue;
        }
        let entry = counts.entry(ops.name[row]).or_insert((0, 0, OpId::new(row)));
        if ops.signature[row] == SignatureId(0) {
            if entry.1 == 0 {
                entry.2 = OpId::new(row);
            }
            entry.1 += 1;
        } else {
            entry.0 += 1;
        }
    }
    let mixed = counts.values().filter(|(with, without, _)| *with > 0 && *without > 0);
    let affected = mixed.clone().map(|(_, without, _)| without).sum();
    let checked = counts.values().filter(|(with, ..)| *with > 0);
    let checked = checked.map(|(with, without, _)| with + without).sum();
    let first = mixed.map(|(.., op)| *op).min().map(Location::Op);
    integrity.add(&SHAPES, (affected, checked), first);
}

/// Operators whose first argument is a tensor, of which every program has some.
const ON_TENSORS: [&str; 15] = [
    "add",
    "addmm",
    "bmm",
    "copy_",
    "detach",
    "div",
    "expand",
    "mm",
    "mul",
    "mul_",
    "sub",
    "sum",
    "t",
    "transpose",
    "view",
];

/// Operators on tensors without shapes, where the head of the trace says that the profiler recorded shapes
/// (torch/profiler/profiler.py, `record_shapes`), as `xmem profile` always does.
pub(super) fn lost(subject: &Subject<'_>, integrity: &mut Integrity) {
    if !subject.records_shapes {
        return;
    }
    let program = subject.program;
    let ops = &program.trace.ops;
    let takes_tensors = |name: &str| {
        let name = name.strip_prefix("aten::");
        name.is_some_and(|name| ON_TENSORS.contains(&name))
    };
    let is_one: Vec<bool> =
        program.trace.strings.iter().map(|(_, text)| takes_tensors(text)).collect();
    let rows = (0..ops.len()).filter(|&row| is_one[ops.name[row].index()]);
    let mut without = rows.clone().filter(|&row| ops.signature[row] == SignatureId(0));
    let count = without.clone().count() as u64;
    let first = without.next().map(|row| Location::Op(OpId::new(row)));
    integrity.add(&LOST_SHAPES, (count, rows.count() as u64), first);
}

/// Operators whose argument fields contradict each other, or lack a field that others have.
fn contradictory(subject: &Subject<'_>, integrity: &mut Integrity) {
    let program = subject.program;
    let (ops, signatures) = (&program.trace.ops, &program.trace.signatures);
    let recorded = |row: &usize| {
        ops.signature[*row] != SignatureId(0) && !program.is_annotation(OpId::new(*row))
    };
    let fields = |id: SignatureId| {
        let signature = &signatures[id.0 as usize];
        [signature.dims, signature.types, signature.strides, signature.concrete]
            .map(|field| field != Sym::EMPTY)
    };
    let rows = (0..ops.len()).filter(recorded);
    let used = rows.clone().fold([false; 4], |used, row| {
        let present = fields(ops.signature[row]);
        std::array::from_fn(|i| used[i] | present[i])
    });
    // Releases that record strides (2.4) record values (2.1).
    let [.., strides, values] = used;
    let odd = |row: &usize| {
        let id = ops.signature[*row];
        strides && !values || fields(id) != used || program.arguments.is_contradictory(id)
    };
    let mut found = rows.clone().filter(odd);
    let count = found.clone().count() as u64;
    let first = found.next().map(|row| Location::Op(OpId::new(row)));
    integrity.add(&ARGUMENTS, (count, rows.count() as u64), first);
}

/// Operators whose inputs cannot stand together.
fn incompatible(subject: &Subject<'_>, integrity: &mut Integrity) {
    let program = subject.program;
    let judged =
        program.tree.preorder().iter().filter_map(|&op| {
            Some((op, inputs_agree(program.op_name(op), program.arguments(op))?))
        });
    let mut found = judged.clone().filter(|(_, agree)| !agree);
    let count = found.clone().count() as u64;
    let first = found.next().map(|(op, _)| Location::Op(op));
    integrity.add(&INCOMPATIBLE, (count, judged.count() as u64), first);
}
