//! `roundup_power2_divisions`.

use xmem_types::Bytes;

/// `roundup_power2_divisions`: into how many parts the span between two powers of two is divided
/// for rounding, one entry for each power of two from 1 MiB (which also serves everything below)
/// to 32 GiB (and everything above). 0 and 1 mean plain rounding.
///
/// `AcceleratorAllocatorConfig::roundup_power2_divisions` in `c10/core/AllocatorConfig.cpp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerOfTwoDivisions(pub [u32; 16]);

impl PowerOfTwoDivisions {
    /// Plain rounding for every size.
    pub const OFF: Self = Self([0; 16]);

    /// The divisions for a request of `size`.
    #[must_use]
    pub fn of(&self, size: Bytes) -> u32 {
        let log2 = size.get().max(1).ilog2();
        self.0[(log2.saturating_sub(20) as usize).min(15)]
    }
}
