//! CUB's radix sort.
//!
//! Sizes of its scratch follow the sort of one pass a digit: the other half of a double buffer,
//! histograms, and the state of each tile (cub/device/dispatch/dispatch_radix_sort.cuh). They were
//! recorded with PyTorch 2.11's CUDA build, kernels stubbed, for sm_86.

use crate::frame::count::Count;

/// The alignment of each part of the scratch, and of the caller's pointer, in bytes.
pub(crate) const ALIGNMENT: u64 = 256;

/// The bits that one pass sorts by.
const DIGIT: u32 = 8;

/// The length of a list of pairs that one block of threads sorts.
const ONE_TILE: u64 = 2048;

/// The scratch of sorting `count` pairs by `bits` of the key, in bytes: [`digit_scratch`], and for more
/// than one pass the other half of the double buffer. `key` and `value` are bytes of one.
pub(crate) fn scratch(count: impl Into<Count>, key: u64, value: u64, bits: u32) -> Count {
    let count = count.into();
    if count.get() <= ONE_TILE {
        return Count(1);
    }
    let digits = digit_scratch(count, key, value, bits);
    // One pass writes straight to the result.
    if bits <= DIGIT {
        return digits;
    }
    let aligned = |bytes: Count| bytes.next_multiple_of(ALIGNMENT);
    aligned(count * key) + aligned(count * value) + digits
}

/// The bits of a key of so many bytes.
pub(crate) const fn bits(bytes: u64) -> u32 {
    (bytes * 8) as u32
}

/// Histograms, the state of each tile for each digit, and a counter.
fn digit_scratch(count: Count, key: u64, value: u64, bits: u32) -> Count {
    const BINS: u64 = 1 << DIGIT;
    // Pairs that a block of threads takes; fewer where both halves are eight bytes apart.
    let tile = if key == value { 3840 } else { 3072 };
    let histograms = u64::from(bits.div_ceil(DIGIT)) * BINS * 8;
    count.div_ceil(tile) * (BINS * 4) + histograms + (ALIGNMENT + ALIGNMENT - 1)
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
            assert_eq!(scratch(count, key, value, bits), Count(recorded), "{count} pairs");
        }
        assert_eq!(scratch(300_000, 8, 8, 6), Count(83_455));
    }
}
