//! The device below the allocator.

use xmem_types::Bytes;

/// The order in which new segments get their addresses. It matters because the allocator's best
/// fit breaks ties between equal sizes by the lowest address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressOrder {
    /// As CUDA's driver was seen to do in public memory snapshots of real jobs (`docs/results/published.md`
    /// has the figures). A segment takes a chunk of whole granules of 32 MiB, at the top of the
    /// highest free address space, and sits at its start. The rest of a chunk serves later
    /// segments that fit, lowest address first, before another chunk is opened; so does what is
    /// released inside of it. A chunk with no segment left is free address space again.
    #[default]
    Driver,
    /// The lowest free range that fits, from the bottom up.
    Ascending,
    /// The highest free range that fits, from the top down.
    Descending,
    /// The addresses of a recording, as far as it goes (see [`Device::recorded`](crate::Device)).
    Recorded,
}

impl AddressOrder {
    /// The name in machine-readable output (`ascending`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Ascending => "ascending",
            Self::Descending => "descending",
            Self::Recorded => "recorded",
        }
    }
}

/// When the device is done with work that uses memory on another stream than its own
/// (`record_stream`), so that a block freed meanwhile can be reused.
///
/// When that happens on a real device depends on what its kernels take: a simulation has to assume
/// something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completion {
    /// At once: blocks become free with the next allocation, which is when the allocator looks.
    #[default]
    Immediate,
    /// Only when the program waits for the device.
    AtSynchronization,
}

/// The device as the allocator sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Device memory; `None` means unlimited.
    pub capacity: Option<Bytes>,
    /// The memory that the CUDA context and other processes hold; taken off the capacity.
    pub taken: Bytes,
    /// The total that the device reports (`cudaDeviceProp::totalGlobalMem`), of which a memory
    /// fraction is a part; the capacity if it is not given.
    pub reported_total: Option<Bytes>,
    /// The total by which expandable segments reserve addresses, if it is not the reported one: of a recording on a device
    /// whose limit was lifted.
    pub address_total: Option<Bytes>,
    /// The addresses of new segments.
    pub address_order: AddressOrder,
    /// When work on other streams is done.
    pub completion: Completion,
}

impl DeviceConfig {
    /// The memory left for the allocator: capacity less what is taken. `None` means unlimited.
    #[must_use]
    pub fn available(&self) -> Option<Bytes> {
        self.capacity.map(|capacity| capacity.saturating_sub(self.taken))
    }

    /// The same device with memory and addresses for everything.
    #[must_use]
    pub fn without_limit(&self) -> Self {
        Self { capacity: None, ..*self }
    }

    /// The total that the device reports; `None` if it has no limit.
    #[must_use]
    pub fn total(&self) -> Option<Bytes> {
        self.reported_total.or(self.capacity)
    }
}
