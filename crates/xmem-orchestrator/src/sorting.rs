//! Sorting and selection.
//!
//! Sizes of CUB's scratch follow its radix sort of one pass a digit: the other half of a double
//! buffer, histograms, and the state of each tile (cub/device/dispatch/dispatch_radix_sort.cuh). They
//! were recorded with PyTorch 2.11's CUDA build, kernels stubbed, for sm_86.

use crate::draft::Draft;
use crate::requests::{Ask, brief, is_contiguous, lay_out};
use crate::rules::name;
use crate::target::Target;
use xmem_types::{Bytes, OpId};

/// Bytes of a position.
const INDEX: u64 = 8;

/// Up to this size of the sorted dimension a block of threads sorts a row by itself
/// (aten/src/ATen/native/cuda/Sort.cpp, `should_use_small_sort`).
const SMALL: u64 = 4096;

/// From here on rows are sorted one after another (aten/src/ATen/native/cuda/SortStable.cu,
/// `launch_stable_sort_kernel`).
const LONG: u64 = 1_000_000;

/// Fewer rows than this are sorted as one list, twice (SortStable.cu,
/// `segmented_sort_pairs_by_full_sort`).
const FEW_ROWS: u64 = 128;

/// `sort(self, dim, descending)` or `sort(self, stable, dim, descending)`, in a dimension that is
/// too long for one block of threads. Shorter ones ask for what the CPU asks for.
pub(crate) fn sort(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    let arguments = draft.profile.arguments(op);
    let Some(input) = arguments.tensor(0) else { return };
    let dim = if arguments.list.len() > 3 { 2 } else { 1 };
    let dim = arguments.ints(dim).and_then(|d| d.first().copied()).unwrap_or(-1);
    let rank = input.dims.len() as i64;
    let dim = usize::try_from(if dim < 0 { dim + rank } else { dim }).unwrap_or(usize::MAX);
    let Some(&length) = input.dims.get(dim).filter(|&&d| d > SMALL) else { return };
    let (count, element) = (input.numel(), input.dtype.size());
    let mut asks = vec![Ask::Output(Bytes(input.bytes())), Ask::Output(Bytes(count * INDEX))];
    let rows = count / length;
    if rows == 1 || length >= LONG {
        asks.push(Ask::Hold(Bytes(length * INDEX)));
        for _ in 0..rows {
            asks.extend(brief(radix_scratch(length, element, INDEX, bits(element))));
        }
    } else if rows < FEW_ROWS {
        // Row and position of each element, twice; the sorted keys; then back by row.
        asks.extend([Ask::Hold(Bytes(count * INDEX)); 2]);
        asks.push(Ask::Hold(Bytes(input.bytes())));
        asks.extend(brief(radix_scratch(count, element, INDEX, bits(element))));
        asks.push(Ask::Free);
        let digits = u32::BITS - u32::try_from(rows).unwrap_or(u32::MAX).leading_zeros();
        asks.extend(brief(radix_scratch(count, INDEX, INDEX, digits)));
    } else {
        asks.push(Ask::Hold(Bytes(count * INDEX)));
        asks.extend(brief(count * (element + INDEX) + (ALIGNMENT - 1)));
    }
    lay_out(draft, op, &asks, name::SORT);
}

/// `median(self)` without a dimension: CUDA sorts all of it
/// (aten/src/ATen/native/cuda/Sorting.cpp, `median_impl`). With a dimension it selects, as
/// [`selection`] does.
pub(crate) fn median(draft: &mut Draft<'_>, target: &Target, op: OpId) {
    let arguments = draft.profile.arguments(op);
    let Some(input) = arguments.tensor(0) else { return };
    if arguments.value(1).is_some() {
        selection(draft, target, op);
        return;
    }
    let (count, element) = (input.numel(), input.dtype.size());
    let mut asks = vec![Ask::Hold(Bytes(input.bytes()))];
    asks.extend([Ask::Hold(Bytes(count * INDEX)); 2]);
    asks.extend(brief(radix_scratch(count, element, INDEX, bits(element))));
    asks.extend([Ask::Free, Ask::Free, Ask::Output(Bytes(element))]);
    lay_out(draft, op, &asks, name::SORT);
}

/// `kthvalue`, `median` of a dimension: value and position, found in place, where the CPU works on a
/// copy (aten/src/ATen/native/cuda/Sorting.cu, `launch_kthvalue_kernel`, `launch_median_kernel`).
pub(crate) fn selection(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    lay_out(draft, op, &[], name::SORT);
}

/// `topk(self, k, dim, …)`: on a contiguous copy; few long rows are searched digit by digit by many
/// blocks of threads each, which keep counts (aten/src/ATen/native/cuda/TensorTopK.cu,
/// `mbtopk::launch`, `get_items_per_thread`, `should_use_multiblock`).
pub(crate) fn topk(draft: &mut Draft<'_>, target: &Target, op: OpId) {
    const THREADS: u64 = 256;
    const BINS: u64 = 256;
    const RESIDENT: u64 = 6;
    let arguments = draft.profile.arguments(op);
    let Some(input) = arguments.tensor(0) else { return };
    let number = |i: usize| arguments.ints(i).and_then(|v| v.first().copied());
    let Some(wanted) = number(1).and_then(|k| u64::try_from(k).ok()) else { return };
    let dim = number(2).unwrap_or(-1);
    let rank = input.dims.len() as i64;
    let dim = usize::try_from(if dim < 0 { dim + rank } else { dim }).unwrap_or(usize::MAX);
    let Some(&length) = input.dims.get(dim) else { return };
    let rows = input.numel() / length.max(1);
    let found = rows * wanted;
    let mut asks = Vec::new();
    if !is_contiguous(input) {
        asks.push(Ask::Hold(Bytes(input.bytes())));
    }
    asks.push(Ask::Output(Bytes(found * input.dtype.size())));
    asks.push(Ask::Output(Bytes(found * INDEX)));
    if many_blocks(rows, length) {
        let at_once = u64::from(target.device.sms) * RESIDENT * THREADS;
        let each = (rows * length).div_ceil(at_once).clamp(4, 64) * THREADS;
        let blocks = rows * length.div_ceil(each);
        for size in [
            rows * input.dtype.size(), // the values searched for
            rows * 8,
            rows * 8,
            blocks * BINS * 2, // counts of each digit, and their sums
            rows * BINS * 4,
            blocks * 4,
            blocks * 4,
        ] {
            asks.push(Ask::Hold(Bytes(size)));
        }
    }
    lay_out(draft, op, &asks, name::SORT);
}

/// Whether a row is shared by blocks of threads: the fewer rows, the shorter they may be.
fn many_blocks(rows: u64, length: u64) -> bool {
    let shortest = match rows {
        0..=20 => 20_000,
        21..=40 => 10_000,
        41..=80 => 8000,
        81..=199 => 5000,
        200..=799 => 3000,
        800..=4000 => 800,
        _ => 400,
    };
    length >= shortest
}

const fn bits(element: u64) -> u32 {
    (element * 8) as u32
}

/// Scratch of sorting `count` pairs by `bits` of the key: [`digit_scratch`], and for more than one pass
/// the other half of the double buffer.
pub(crate) fn radix_scratch(count: u64, key: u64, value: u64, bits: u32) -> u64 {
    if count <= ONE_TILE {
        return 1;
    }
    let aligned = |bytes: u64| bytes.next_multiple_of(ALIGNMENT);
    let digits = digit_scratch(count, key, value, bits);
    // One pass goes straight to the result.
    if bits <= DIGIT { digits } else { aligned(count * key) + aligned(count * value) + digits }
}

/// CUB aligns each part of its scratch, and the caller's pointer.
const ALIGNMENT: u64 = 256;

/// Bits that one pass sorts by.
const DIGIT: u32 = 8;

/// A list of pairs that one block of threads sorts.
const ONE_TILE: u64 = 2048;

/// Histograms, the state of each tile for each digit, and a counter.
fn digit_scratch(count: u64, key: u64, value: u64, bits: u32) -> u64 {
    const BINS: u64 = 1 << DIGIT;
    // Pairs that a block of threads takes; fewer where both halves are eight bytes apart.
    let tile = if key == value { 3840 } else { 3072 };
    let histograms = u64::from(bits.div_ceil(DIGIT)) * BINS * 8;
    histograms + count.div_ceil(tile) * BINS * 4 + ALIGNMENT + (ALIGNMENT - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded with PyTorch 2.11's CUDA build, kernels stubbed, as an RTX 3060.
    #[test]
    fn scratch_of_the_radix_sort_is_that_of_cub() {
        for (count, key, value, bits, recorded) in [
            (800, 8, 8, 64, 1),
            (3200, 8, 8, 64, 69_119),
            (4000, 8, 8, 64, 82_943),
            (6400, 8, 8, 64, 121_343),
            (2401, 8, 8, 8, 3583),
            (3000, 8, 8, 15, 53_759),
            (200_000, 4, 8, 32, 2_476_287),
            (300_000, 4, 8, 32, 3_709_183),
            (1_048_576, 4, 8, 32, 12_941_823),
        ] {
            assert_eq!(radix_scratch(count, key, value, bits), recorded, "{count} pairs");
        }
        assert_eq!(radix_scratch(300_000, 8, 8, 6), 83_455);
    }
}
