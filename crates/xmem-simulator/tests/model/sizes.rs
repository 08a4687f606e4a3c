//! Rounding.

use super::MIB;
use xmem_simulator::AllocatorConfig;
use xmem_types::Bytes;

/// `round_size`.
pub(super) fn rounded(n: u64, config: &AllocatorConfig) -> u64 {
    if n < 512 {
        return 512;
    }
    // The last power of two that is not above n, counted up from 1 MiB.
    let mut bucket = 0;
    while bucket < 15 && n >= (2 * MIB) << bucket {
        bucket += 1;
    }
    let divisions = u64::from(config.roundup_power2_divisions.0[bucket]);
    let bypassed = config.roundup_bypass_threshold.is_some_and(|limit| n > limit.get());
    if bypassed || divisions <= 1 || n <= 512 * divisions {
        return n.div_ceil(512) * 512;
    }
    let mut power = 1;
    while power * 2 <= n {
        power *= 2;
    }
    if power == n {
        return n;
    }
    // n > 512 * divisions: the step is not zero.
    let mut size = power;
    let step = power / divisions;
    // Not by counting up one step at a time: there can be 2^31 of them.
    size += (n - size).div_ceil(step) * step;
    size
}

/// `get_allocation_size`.
pub(super) fn segment_size(r: u64, config: &AllocatorConfig) -> u64 {
    if r <= MIB {
        2 * MIB
    } else if r < 10 * MIB {
        config.large_buffer.get()
    } else {
        r.div_ceil(2 * MIB) * 2 * MIB
    }
}

pub(super) fn max_split(config: &AllocatorConfig) -> u64 {
    config.max_split_size.map_or(u64::MAX, Bytes::get)
}
