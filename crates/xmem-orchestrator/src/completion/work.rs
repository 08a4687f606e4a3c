//! The work that operators of a trace issue, with its durations.

use std::collections::BTreeMap;
use xmem_analyzer::{Argument, Arguments, DType, Profile};
use xmem_timing::{Precision, Tensor, TimeModel, Work, has_formula, starts_no_kernel};
use xmem_types::{Bytes, Nanos, OpId, saturating_product};

/// Work of one operator.
pub(super) struct Issued {
    /// The start of the operator, at which its first kernel is issued.
    pub(super) time: Nanos,
    /// The system's number of the thread.
    pub(super) thread: u32,
    pub(super) duration: Nanos,
}

/// Calls that only call others, or that are modeled from the log of the streams.
const NAMESPACES: [&str; 6] = ["autograd", "c10d", "c10d_functional", "nccl", "profiler", "xmem"];

/// The work of all operators.
pub(super) fn issued(profile: &Profile, model: &TimeModel) -> Vec<Issued> {
    let outputs = outputs(profile);
    let order = profile.tree.preorder();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&op) = order.get(at) {
        at += 1;
        let name = profile.op_name(op);
        if profile.is_annotation(op) || !is_operator(name) {
            continue;
        }
        let inside = profile.tree.descendants(op);
        let counts_whole =
            has_formula(name) || !inside.iter().any(|op| starts_kernel(profile, *op));
        if !counts_whole {
            continue;
        }
        at += inside.len();
        if starts_no_kernel(name) {
            continue;
        }
        let Some(thread) = profile.system_thread(profile.op_thread(op)) else { continue };
        let written = outputs.get(&op).copied().unwrap_or(Bytes::ZERO);
        let work = work(name, profile.arguments(op), written);
        let duration = model.operator_duration(name, &work);
        found.push(Issued { time: profile.op_start(op), thread, duration });
    }
    found
}

fn is_operator(name: &str) -> bool {
    name.split_once("::").is_some_and(|(namespace, rest)| {
        !rest.contains("::")
            && !NAMESPACES.contains(&namespace)
            && namespace.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

fn starts_kernel(profile: &Profile, op: OpId) -> bool {
    let name = profile.op_name(op);
    !profile.is_annotation(op) && is_operator(name) && !starts_no_kernel(name)
}

/// Bytes that are allocated within each operator.
fn outputs(profile: &Profile) -> BTreeMap<OpId, Bytes> {
    let mut outputs = BTreeMap::new();
    for block in &profile.blocks {
        for op in block.op.into_iter().flat_map(|op| profile.tree.path(op)) {
            let sum = outputs.entry(op).or_insert(Bytes::ZERO);
            *sum += block.size;
        }
    }
    outputs
}

/// The work of an operator. What allocates nothing writes over its largest argument.
fn work(name: &str, arguments: &Arguments, written: Bytes) -> Work {
    let is_convolution = name.contains("conv");
    let mut tensors = Vec::new();
    for argument in &arguments.list {
        match argument {
            Argument::Tensor(tensor) => tensors.push(Tensor {
                extents: &tensor.dims,
                precision: match tensor.dtype {
                    DType::F64 => Precision::Float64,
                    DType::F32 if is_convolution => Precision::TensorFloat32,
                    DType::F32 => Precision::Float32,
                    DType::F16 => Precision::Float16,
                    DType::BF16 => Precision::BFloat16,
                    other => Precision::Other(other.size() as u8),
                },
            }),
            // Their type is not recorded.
            Argument::TensorList(list) => tensors.extend(
                list.iter().map(|extents| Tensor { extents, precision: Precision::Float32 }),
            ),
            Argument::Value(_) | Argument::Absent => {}
        }
    }
    let largest = tensors.iter().map(|tensor| {
        saturating_product(tensor.extents).saturating_mul(tensor.precision.element())
    });
    let written = if written == Bytes::ZERO { Bytes(largest.max().unwrap_or(0)) } else { written };
    Work::of_operator(name, &tensors, written)
}
