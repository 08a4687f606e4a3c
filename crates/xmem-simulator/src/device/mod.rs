//! The device level: `cudaMalloc` and `cudaFree` with a capacity.

mod address;

use crate::config::DeviceConfig;
use address::AddressSpace;
use xmem_types::{Addr, Bytes};

/// Physical granularity: a `cudaMalloc` takes whole pages of 2 MiB, the granularity that
/// `cuMemGetAllocationGranularity` reports on all current GPUs.
const PAGE: Bytes = Bytes::mib(2);

/// The device has no room for the request: `cudaErrorMemoryAllocation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFull;

/// Device memory: a capacity, and an address space in which new ranges land in a chosen order.
///
/// Ranges given back become holes, merged with free neighbours. A later request takes the lowest
/// hole that fits (the highest, in descending order) before new address space is opened. For the
/// driver's order this rule is an assumption: what the real driver does with freed ranges could
/// not be derived from recordings, and the choice only affects ties between equal-sized blocks.
#[derive(Clone, Debug)]
pub struct Device {
    limit: Option<Bytes>,
    used: Bytes,
    space: AddressSpace,
}

impl Device {
    /// An empty device.
    #[must_use]
    pub fn new(config: &DeviceConfig) -> Self {
        Self {
            limit: config.available(),
            used: Bytes::ZERO,
            space: AddressSpace::new(config.address_order),
        }
    }

    /// `cudaMalloc`: takes `size`, rounded up to whole pages.
    ///
    /// # Errors
    /// If the capacity, or the 32 TiB of simulated address space, does not hold it.
    pub fn alloc(&mut self, size: Bytes) -> Result<Addr, DeviceFull> {
        let size = size.round_up(PAGE);
        if self.limit.is_some_and(|limit| size > limit.saturating_sub(self.used)) {
            return Err(DeviceFull);
        }
        let addr = self.space.take(size).ok_or(DeviceFull)?;
        self.used += size;
        Ok(addr)
    }

    /// `cudaFree` of a range that [`Device::alloc`] gave for the same size.
    pub fn free(&mut self, addr: Addr, size: Bytes) {
        let size = size.round_up(PAGE);
        self.space.give(addr, size);
        self.used -= size;
    }

    /// What is taken by ranges not given back yet.
    #[must_use]
    pub fn used(&self) -> Bytes {
        self.used
    }

    /// What is left; `None` without a limit.
    #[must_use]
    pub fn free_bytes(&self) -> Option<Bytes> {
        self.limit.map(|limit| limit.saturating_sub(self.used))
    }

    /// From here on the device has no limit.
    pub fn lift_limit(&mut self) {
        self.limit = None;
    }
}
