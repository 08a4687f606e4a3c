//! Global buffers of reductions.

use crate::frame::count::Count;
use crate::target::Target;
use xmem_analyzer::TensorArg;

/// The size of a device that reductions are cut to.
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

/// The buffers of a reduction that is split over thread blocks, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffers {
    pub(crate) partials: Count,
    pub(crate) semaphores: Count,
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
    let product = |reduced: bool| -> u64 {
        let sizes = dims.iter().filter(|d| d.reduced == reduced).map(|d| Count(d.size));
        sizes.product::<Count>().get()
    };
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
        partials: Count(accumulator) * outputs * ctas * lanes,
        semaphores: Count(grid) * 4,
    })
}

/// The dimensions as TensorIterator orders and coalesces them: reduced ones first, each group by
/// stride (aten/src/ATen/TensorIterator.cpp, `reorder_dimensions`, `coalesce_dimensions`).
fn iteration(input: &TensorArg, reduced: &[bool]) -> Vec<Dim> {
    let contiguous: Vec<u64> = input
        .dims
        .iter()
        .rev()
        .scan(1_u64, |next, &size| {
            let stride = *next;
            *next = size.max(1).saturating_mul(*next);
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
        let joins = outer.reduced == inner.reduced
            && inner.size.checked_mul(inner.stride) == Some(outer.stride);
        if joins {
            inner.size = inner.size.saturating_mul(outer.size);
        }
        joins
    });
    dims
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_analyzer::DType;

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
            Some(Buffers { partials: Count(partials), semaphores: Count(semaphores) })
        };
        assert_eq!(sum(RTX3060), expected(22_020_096, 32));
        assert_eq!(sum(A100), expected(33_554_432, 32));
    }

    #[test]
    fn full_sum_takes_one_partial_per_block() {
        let full = buffers(&tensor(&[1_000_000]), &[true], 4, RTX3060);
        assert_eq!(full, Some(Buffers { partials: Count(336), semaphores: Count(4) }));
    }

    #[test]
    fn small_reductions_take_nothing() {
        assert_eq!(buffers(&tensor(&[512, 256]), &[true, false], 4, RTX3060), None);
        assert_eq!(buffers(&tensor(&[64, 1]), &[false, true], 4, RTX3060), None);
    }
}
