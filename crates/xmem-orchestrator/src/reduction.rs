//! Global buffers of reductions.

use crate::draft::{Addition, Draft};
use crate::rules::name;
use crate::target::Target;
use xmem_analyzer::{Arguments, DType, Role, TensorArg};
use xmem_types::{Bytes, OpId};

/// Operators that reduce with `gpu_reduce_kernel`, and the bytes of their accumulator per input
/// type.
pub(crate) const REDUCTIONS: &[&str] = &[
    "aten::sum",
    "aten::mean",
    "aten::prod",
    "aten::all",
    "aten::any",
    "aten::amax",
    "aten::amin",
    "aten::max",
    "aten::min",
    "aten::argmax",
    "aten::argmin",
    "aten::var",
    "aten::std",
    "aten::var_mean",
    "aten::norm",
    "aten::linalg_vector_norm",
];

/// The part of a device that reductions are cut to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parallelism {
    pub(crate) sms: u32,
    pub(crate) threads_per_sm: u32,
}

impl Parallelism {
    pub(crate) fn of(target: &Target) -> Self {
        Self { sms: target.device.sms, threads_per_sm: target.device.max_threads_per_sm }
    }
}

/// What a split reduction allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffers {
    pub(crate) partials: Bytes,
    pub(crate) semaphores: Bytes,
}

/// A reduction: its buffers live until it returns.
pub(crate) fn reduce(draft: &mut Draft<'_>, target: &Target, op: OpId) {
    let arguments = draft.profile.arguments(op);
    let Some(input) = arguments.tensor(0) else { return };
    let name = draft.profile.op_name(op);
    let Some(reduced) = reduced_dims(name, arguments, input) else { return };
    let accumulator =
        if with_positions(name, arguments) { 16 } else { accumulator_bytes(name, input.dtype) };
    if input.dtype.is_half() {
        drop_wide_copies(draft, op);
    }
    // Outputs, and a copy of the input in another type, come before the reduction.
    let made = draft.blocks_in(op);
    if !made.iter().any(|&i| draft.escapes(i, op)) {
        return;
    }
    let Some(output) = made.into_iter().rfind(|&i| draft.live(i)) else { return };
    if let Some(buffers) = buffers(input, &reduced, accumulator, Parallelism::of(target)) {
        add(draft, buffers, output, op);
    }
}

/// The CPU sums 16-bit floats in a 32-bit copy; CUDA's kernel widens them as it reads.
fn drop_wide_copies(draft: &mut Draft<'_>, op: OpId) {
    let profile = draft.profile;
    for i in draft.blocks_in(op) {
        let copied = profile.blocks[i].op.is_some_and(|o| {
            profile.tree.path(o).take(3).any(|o| profile.op_name(o) == "aten::_to_copy")
        });
        if copied && !draft.escapes(i, op) {
            draft.drop_block(i, name::REDUCTION);
        }
    }
}

/// The scratch of summing `input` over the `reduced` dimensions into the block `output`.
pub(crate) fn scratch(
    draft: &mut Draft<'_>,
    target: &Target,
    input: &TensorArg,
    reduced: &[bool],
    output: usize,
    op: OpId,
) {
    let accumulator = accumulator_bytes("aten::sum", input.dtype);
    if let Some(buffers) = buffers(input, reduced, accumulator, Parallelism::of(target)) {
        add(draft, buffers, output, op);
    }
}

/// Partial results, then semaphores; both go when the kernel has been launched.
fn add(draft: &mut Draft<'_>, buffers: Buffers, output: usize, op: OpId) {
    let allocs = [draft.after(output), draft.after(output)];
    let frees = [draft.after(output), draft.after(output)];
    for ((size, alloc), free) in
        [buffers.partials, buffers.semaphores].into_iter().zip(allocs).zip(frees)
    {
        let free = Some(free);
        draft.add(Addition { size, alloc, free, role: Role::Workspace, op }, name::REDUCTION);
    }
}

/// Per dimension of the input, whether it is reduced; none where that was not recorded.
fn reduced_dims(name: &str, arguments: &Arguments, input: &TensorArg) -> Option<Vec<bool>> {
    let rank = input.dims.len();
    let position = match name {
        "aten::norm" | "aten::linalg_vector_norm" => 2,
        _ => 1,
    };
    let mut reduced = vec![false; rank];
    match arguments.ints(position) {
        Some(dims) if !dims.is_empty() => {
            for d in dims {
                let d = if d < 0 { d + rank as i64 } else { d };
                *reduced.get_mut(usize::try_from(d).ok()?)? = true;
            }
        }
        _ => reduced.fill(true),
    }
    Some(reduced)
}

/// `max` and `min` of a dimension carry each value's position along.
fn with_positions(name: &str, arguments: &Arguments) -> bool {
    matches!(name, "aten::max" | "aten::min") && arguments.value(1).is_some()
}

/// Bytes of one accumulator: sums of 16- and 32-bit floats accumulate in 32 bits, indices travel
/// with their values, variances keep Welford's four numbers.
fn accumulator_bytes(name: &str, dtype: DType) -> u64 {
    match name {
        "aten::argmax" | "aten::argmin" => 16,
        "aten::var" | "aten::std" | "aten::var_mean" => 16,
        "aten::all" | "aten::any" => 1,
        "aten::max" | "aten::min" | "aten::amax" | "aten::amin" => dtype.size(),
        _ => match dtype {
            DType::F64 | DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::Bool => 8,
            _ => 4,
        },
    }
}

/// One dimension of the iteration, innermost first.
#[derive(Clone, Copy, Debug)]
struct Dim {
    size: u64,
    stride: u64,
    reduced: bool,
}

/// Buffers of a reduction, if it is split over thread blocks
/// (aten/src/ATen/native/cuda/Reduce.cuh, `setReduceConfig`).
pub(crate) fn buffers(
    input: &TensorArg,
    reduced: &[bool],
    accumulator: u64,
    device: Parallelism,
) -> Option<Buffers> {
    let dims = iteration(input, reduced);
    let product = |r: bool| dims.iter().filter(|d| d.reduced == r).map(|d| d.size).product::<u64>();
    let (inputs, outputs) = (product(true), product(false));
    let reduced_count = dims.iter().filter(|d| d.reduced).count();
    if inputs <= 1 || outputs == 0 || reduced_count == 0 {
        return None;
    }
    let kept = dims.get(reduced_count);
    let fast = kept.is_none_or(|k| dims[0].stride < k.stride);
    let (mut dim0, dim1) = if fast { (inputs, outputs) } else { (outputs, inputs) };
    let fastest = if fast { dims[0].stride } else { kept.map_or(1, |k| k.stride) };
    let mut vector = 1;
    if fastest == 1 {
        if fast && dim0 > 128 && reduced_count == 1 {
            dim0 /= 4;
        } else if let (false, Some(kept)) = (fast, kept) {
            let fits = |v: u64| {
                kept.size % v == 0
                    && dims.iter().enumerate().all(|(i, d)| i == reduced_count || d.stride % v == 0)
            };
            vector = [4, 2].into_iter().find(|&v| fits(v)).unwrap_or(1);
            dim0 /= vector;
        }
    }
    let limit = 512 / vector;
    let power = |n: u64| if n < limit { 1 << n.max(1).ilog2() } else { limit };
    let (p0, p1) = (power(dim0), power(dim1));
    let mut width = p0.min(32);
    let height = p1.min(limit / width);
    width = p0.min(limit / height);
    let threads = width * height;
    let (mut step_in, mut step_out) = (1, 1);
    if fast {
        step_in *= width;
    } else {
        step_out *= width;
    }
    let mut per_thread = inputs.div_ceil(step_in);
    let y_reduce = per_thread >= (height * 16).min(256);
    if y_reduce {
        step_in *= height;
        per_thread = inputs.div_ceil(step_in);
    } else {
        step_out *= height;
    }
    let grid = (outputs / vector).div_ceil(step_out);
    let resident = u64::from(device.sms) * (u64::from(device.threads_per_sm) / threads).max(1);
    if !(y_reduce && per_thread >= 256 && grid <= resident) {
        return None;
    }
    let ctas = resident.div_ceil(grid).min(per_thread.div_ceil(16)).max(per_thread.div_ceil(256));
    if ctas <= 1 {
        return None;
    }
    // Without a reduction across the warp every lane of a block keeps a partial result.
    let lanes = if fast { 1 } else { width * vector };
    Some(Buffers {
        partials: Bytes(accumulator * outputs * ctas * lanes),
        semaphores: Bytes(4 * grid),
    })
}

/// The dimensions as TensorIterator orders and coalesces them: reduced ones first, each group by
/// stride (aten/src/ATen/TensorIterator.cpp, `reorder_dimensions`, `coalesce_dimensions`).
fn iteration(input: &TensorArg, reduced: &[bool]) -> Vec<Dim> {
    let contiguous: Vec<u64> = input
        .dims
        .iter()
        .rev()
        .scan(1, |next, &size| {
            let stride = *next;
            *next *= size.max(1);
            Some(stride)
        })
        .collect();
    let rank = input.dims.len();
    let mut dims: Vec<Dim> = (0..rank)
        .map(|i| Dim {
            size: input.dims[i],
            stride: input.strides.get(i).map_or(contiguous[rank - 1 - i], |s| s.unsigned_abs()),
            reduced: reduced[i],
        })
        .filter(|d| d.size != 1)
        .collect();
    dims.sort_by_key(|d| (!d.reduced, d.stride));
    dims.dedup_by(|outer, inner| {
        let joins = outer.reduced == inner.reduced && inner.size * inner.stride == outer.stride;
        if joins {
            inner.size *= outer.size;
        }
        joins
    });
    dims
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTX3060: Parallelism = Parallelism { sms: 28, threads_per_sm: 1536 };
    const A100: Parallelism = Parallelism { sms: 108, threads_per_sm: 2048 };

    fn tensor(dims: &[u64]) -> TensorArg {
        TensorArg { dims: dims.to_vec(), strides: Vec::new(), dtype: DType::F32 }
    }

    #[test]
    fn column_sums_of_a_tall_matrix_take_a_global_buffer() {
        // Recorded with PyTorch 2.11's CUDA build, kernels stubbed: sum(0) of [4096, 1024].
        let sum = |device| buffers(&tensor(&[4096, 1024]), &[true, false], 4, device);
        let expected = |partials, semaphores| {
            Some(Buffers { partials: Bytes(partials), semaphores: Bytes(semaphores) })
        };
        assert_eq!(sum(RTX3060), expected(22_020_096, 32));
        assert_eq!(sum(A100), expected(33_554_432, 32));
    }

    #[test]
    fn full_sum_takes_one_partial_per_block() {
        let full = buffers(&tensor(&[1_000_000]), &[true], 4, RTX3060);
        assert_eq!(full, Some(Buffers { partials: Bytes(336), semaphores: Bytes(4) }));
    }

    #[test]
    fn small_reductions_take_nothing() {
        assert_eq!(buffers(&tensor(&[512, 256]), &[true, false], 4, RTX3060), None);
        assert_eq!(buffers(&tensor(&[64, 1]), &[false, true], 4, RTX3060), None);
    }
}
