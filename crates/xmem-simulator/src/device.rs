//! The device level: `cudaMalloc`, `cudaFree` and the driver's virtual memory management, with a
//! capacity.

mod address;
mod free_ranges;
mod recorded;
mod small;

use crate::config::{Completion, DeviceConfig};
use address::AddressSpace;
use recorded::RecordedAddresses;
use small::SmallRanges;
use xmem_types::{Addr, Bytes, MIB};

/// Physical granularity: a `cudaMalloc` takes whole pages of 2 MiB, the granularity that
/// `cuMemGetAllocationGranularity` reports on all current GPUs.
pub(crate) const PAGE: Bytes = Bytes::mib(2);

/// The device has no space for the request: `cudaErrorMemoryAllocation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFull;

/// Device memory: a capacity, and an address space in which new ranges land in a chosen order.
///
/// In ascending and descending order, a released range is free address space, merged with its
/// neighbors. In the driver's order ([`AddressOrder`](crate::AddressOrder)) address space is taken
/// and released in chunks.
#[derive(Clone, Debug)]
pub struct Device {
    limit: Option<Bytes>,
    total: Option<Bytes>,
    address_total: Option<Bytes>,
    used: Bytes,
    space: AddressSpace,
    small: SmallRanges,
    recorded: RecordedAddresses,
    completion: Completion,
}

impl Device {
    /// An empty device.
    #[must_use]
    pub fn new(config: &DeviceConfig) -> Self {
        Self {
            limit: config.available(),
            total: config.total(),
            address_total: config.address_total.or(config.total()),
            used: Bytes::ZERO,
            space: AddressSpace::new(config.address_order),
            small: SmallRanges::default(),
            recorded: RecordedAddresses::default(),
            completion: config.completion,
        }
    }

    /// An empty device that hands out the addresses of a recording: `segments` in the order in
    /// which segments were got, `pages` in the order in which pages were mapped. Where they end,
    /// or do not fit the request, addresses are those of `config`'s order.
    #[must_use]
    pub fn recorded(
        config: &DeviceConfig,
        segments: impl IntoIterator<Item = Addr>,
        pages: impl IntoIterator<Item = Addr>,
    ) -> Self {
        Self { recorded: RecordedAddresses::new(segments, pages), ..Self::new(config) }
    }

    /// `cudaMalloc`: takes `size`, rounded up to whole pages. Requests below 1 MiB share pages, in
    /// steps of 512 bytes.
    ///
    /// # Errors
    /// If the capacity, or the 32 TiB of simulated address space, does not hold it.
    pub fn alloc(&mut self, size: Bytes) -> Result<Addr, DeviceFull> {
        if size < Bytes(MIB) {
            return self.alloc_small(size);
        }
        let size = size.round_up(PAGE);
        if size > self.space() {
            return Err(DeviceFull);
        }
        let addr = match self.recorded.segment() {
            Some(addr) if self.space.take_at(addr, size) => addr,
            _ => self.space.take(size).ok_or(DeviceFull)?,
        };
        self.used += size;
        Ok(addr)
    }

    /// `cudaFree` of a range that [`Device::alloc`] gave for the same size.
    pub fn free(&mut self, addr: Addr, size: Bytes) {
        if size < Bytes(MIB) {
            if let Some(page) = self.small.free(addr) {
                self.space.give(page, PAGE);
                self.used -= PAGE;
            }
            return;
        }
        let size = size.round_up(PAGE);
        self.space.give(addr, size);
        self.used -= size;
    }

    fn alloc_small(&mut self, size: Bytes) -> Result<Addr, DeviceFull> {
        if let Some(addr) = self.small.alloc(size) {
            return Ok(addr);
        }
        if PAGE > self.space() {
            return Err(DeviceFull);
        }
        let page = self.space.take(PAGE).ok_or(DeviceFull)?;
        self.used += PAGE;
        Ok(self.small.open(page, size))
    }

    /// `cuMemAddressReserve`: address space without memory behind it.
    ///
    /// # Errors
    /// If the 32 TiB of simulated address space do not hold it.
    pub fn reserve(&mut self, size: Bytes) -> Result<Addr, DeviceFull> {
        let size = size.round_up(PAGE);
        match self.recorded.reservation() {
            Some(addr) if self.space.take_at(addr, size) => Ok(addr),
            _ => self.space.take(size).ok_or(DeviceFull),
        }
    }

    /// `cuMemAddressFree` of a range that [`Device::reserve`] gave for the same size.
    pub fn unreserve(&mut self, addr: Addr, size: Bytes) {
        self.space.give(addr, size.round_up(PAGE));
    }

    /// `cuMemCreate` and `cuMemMap`: puts memory behind `size` bytes of a reserved range.
    ///
    /// # Errors
    /// If the capacity does not hold it; then nothing is mapped.
    pub fn map(&mut self, size: Bytes) -> Result<(), DeviceFull> {
        if size > self.space() {
            return Err(DeviceFull);
        }
        self.used += size;
        self.recorded.mapped();
        Ok(())
    }

    /// `cuMemUnmap` and `cuMemRelease`: takes memory out of a reserved range.
    pub fn unmap(&mut self, size: Bytes) {
        self.used -= size;
    }

    /// A range that was taken before the simulation began, whatever the capacity.
    ///
    /// # Errors
    /// If some of it is taken already, or lies in the simulated address space.
    pub(crate) fn adopt(&mut self, addr: Addr, size: Bytes) -> Result<(), DeviceFull> {
        self.adopt_reservation(addr, size.round_up(PAGE))?;
        self.adopt_pages(size.round_up(PAGE));
        Ok(())
    }

    /// Address space that was reserved before the simulation began.
    ///
    /// # Errors
    /// As [`Device::adopt`].
    pub(crate) fn adopt_reservation(&mut self, addr: Addr, size: Bytes) -> Result<(), DeviceFull> {
        self.space.take_at(addr, size).then_some(()).ok_or(DeviceFull)
    }

    /// Memory that was behind a reserved range before the simulation began.
    pub(crate) fn adopt_pages(&mut self, size: Bytes) {
        self.used += size;
    }

    /// The memory taken by ranges that were not released yet.
    #[must_use]
    pub fn used(&self) -> Bytes {
        self.used
    }

    /// The free memory; `None` without a limit.
    #[must_use]
    pub fn free_bytes(&self) -> Option<Bytes> {
        self.limit.map(|limit| limit.saturating_sub(self.used))
    }

    fn space(&self) -> Bytes {
        self.free_bytes().unwrap_or(Bytes(u64::MAX))
    }

    /// The total that the device reports; `None` if it has no limit.
    #[must_use]
    pub fn total(&self) -> Option<Bytes> {
        self.total
    }

    /// The total by which expandable segments reserve addresses; `None` if it is not known.
    #[must_use]
    pub fn address_total(&self) -> Option<Bytes> {
        self.address_total
    }

    /// Returns whether work on any stream is taken to be done at once.
    pub(crate) fn finishes_at_once(&self) -> bool {
        self.completion == Completion::Immediate
    }

    /// From here on the device has no limit.
    pub fn lift_limit(&mut self) {
        self.limit = None;
    }

    /// From here on the device has `available` bytes for the allocator, as when other processes
    /// take or give memory. What is taken already stays.
    pub fn set_limit(&mut self, available: Bytes) {
        self.limit = Some(available);
    }
}
