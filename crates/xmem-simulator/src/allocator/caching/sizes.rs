//! Size rules: `round_size`, `get_allocation_size`, `get_pool` and `should_split` of
//! `c10/cuda/CUDACachingAllocator.cpp`.

use crate::allocator::PoolKind;
use crate::config::{AllocatorConfig, PowerOfTwoDivisions};
use xmem_types::Bytes;

/// Sizes from 2^60 on are refused at once (`one_exa_bytes`).
pub(super) const TOO_LARGE: u64 = 1 << 60;

/// The constants of an [`AllocatorConfig`], ready for use.
#[derive(Clone, Debug)]
pub(super) struct SizeRules {
    min_block: u64,
    small_size: u64,
    small_buffer: u64,
    large_buffer: u64,
    min_large_alloc: u64,
    round_large: u64,
    pub(super) max_split: u64,
    pub(super) max_non_split_rounding: u64,
    divisions: Option<PowerOfTwoDivisions>,
    divided_up_to: u64,
    pub(super) expandable: bool,
}

impl SizeRules {
    pub(super) fn new(config: &AllocatorConfig) -> Self {
        let divisions = config.roundup_power2_divisions;
        Self {
            min_block: config.min_block_size.get().max(1),
            small_size: config.small_size.get(),
            small_buffer: config.small_buffer.get(),
            large_buffer: config.large_buffer.get(),
            min_large_alloc: config.min_large_alloc.get(),
            round_large: config.round_large.get().max(1),
            max_split: config.max_split_size.map_or(u64::MAX, Bytes::get),
            max_non_split_rounding: config.max_non_split_rounding.get(),
            divisions: (divisions != PowerOfTwoDivisions::OFF).then_some(divisions),
            divided_up_to: config.roundup_bypass_threshold.map_or(u64::MAX, Bytes::get),
            expandable: config.expandable_segments,
        }
    }

    /// `round_size`.
    pub(super) fn round(&self, size: u64) -> u64 {
        if size < self.min_block {
            return self.min_block;
        }
        if let Some(table) = self.divisions
            && size <= self.divided_up_to
        {
            let divisions = u64::from(table.of(Bytes(size)));
            if divisions > 1 && size > self.min_block * divisions {
                return round_up_power2_next_division(size, divisions);
            }
        }
        size.next_multiple_of(self.min_block)
    }

    /// `get_pool`, outside private pools.
    pub(super) fn pool(&self, rounded: u64) -> PoolKind {
        if rounded <= self.small_size { PoolKind::Small } else { PoolKind::Large }
    }

    /// `get_allocation_size`.
    pub(super) fn segment(&self, rounded: u64) -> u64 {
        if rounded <= self.small_size {
            self.small_buffer.max(rounded)
        } else if rounded < self.min_large_alloc {
            self.large_buffer.max(rounded)
        } else {
            rounded.next_multiple_of(self.round_large)
        }
    }

    /// Page size of an expandable segment (`ExpandableSegment::segment_size_`).
    pub(super) fn page(&self, pool: PoolKind) -> u64 {
        match pool {
            PoolKind::Small => self.small_buffer,
            PoolKind::Large => self.large_buffer,
        }
    }

    /// `should_split`.
    pub(super) fn splits(&self, pool: PoolKind, block: u64, rounded: u64) -> bool {
        let rest = block - rounded;
        if pool == PoolKind::Small || self.expandable {
            rest >= self.min_block
        } else {
            rounded < self.max_split && rest > self.small_size
        }
    }

    /// The part of `get_free_block` that refuses its one candidate because of `max_split_size`.
    pub(super) fn refuses(&self, candidate: u64, rounded: u64) -> bool {
        if rounded < self.max_split {
            candidate >= self.max_split
        } else {
            candidate >= rounded.saturating_add(self.max_non_split_rounding)
        }
    }
}

/// `roundup_power2_next_division`.
fn round_up_power2_next_division(size: u64, divisions: u64) -> u64 {
    if size.is_power_of_two() {
        return size;
    }
    let floor = 1u64 << size.ilog2();
    let step = floor >> divisions.ilog2();
    if step == 0 { floor << 1 } else { size.next_multiple_of(step) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_types::{KIB, MIB};

    #[test]
    fn sizes_round_to_512_and_pick_their_pool_and_segment() {
        let rules = SizeRules::new(&AllocatorConfig::default());
        for (size, rounded, pool, segment) in [
            (1, 512, PoolKind::Small, 2 * MIB),
            (512, 512, PoolKind::Small, 2 * MIB),
            (513, 1024, PoolKind::Small, 2 * MIB),
            (MIB, MIB, PoolKind::Small, 2 * MIB),
            (MIB + 1, MIB + 512, PoolKind::Large, 20 * MIB),
            (10 * MIB - 512, 10 * MIB - 512, PoolKind::Large, 20 * MIB),
            (10 * MIB - 511, 10 * MIB, PoolKind::Large, 10 * MIB),
            (10 * MIB, 10 * MIB, PoolKind::Large, 10 * MIB),
            (11 * MIB + 1, 11 * MIB + 512, PoolKind::Large, 12 * MIB),
        ] {
            assert_eq!(rules.round(size), rounded, "{size}");
            assert_eq!(rules.pool(rounded), pool, "{size}");
            assert_eq!(rules.segment(rounded), segment, "{size}");
        }
    }

    #[test]
    fn a_rest_is_split_off_by_the_rule_of_its_pool() {
        let rules = SizeRules::new(&AllocatorConfig::default());
        assert!(rules.splits(PoolKind::Small, 1024, 512));
        assert!(!rules.splits(PoolKind::Small, 1000, 512));
        assert!(!rules.splits(PoolKind::Large, 15 * MIB, 14 * MIB), "exactly 1 MiB stays");
        assert!(rules.splits(PoolKind::Large, 15 * MIB, 14 * MIB - 512));
    }

    #[test]
    fn power_of_two_divisions_round_as_pytorch_does() {
        for (size, divisions, rounded) in [
            (2049, 4, 2560),
            (1200, 4, 1536),
            (4096, 8, 4096),
            (4097, 8, 4608),
            (1300 * KIB, 8, 1_441_792),
            (5 * MIB + 1, 2, 6 * MIB),
            (3000, 4, 3072),
            (3000, 1, 3072),
        ] {
            let config = AllocatorConfig {
                roundup_power2_divisions: PowerOfTwoDivisions([divisions; 16]),
                ..AllocatorConfig::default()
            };
            assert_eq!(SizeRules::new(&config).round(size), rounded, "{size} in {divisions}");
        }
    }
}
