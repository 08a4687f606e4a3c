//! The options of TensorFlow's allocator, and the memory that it may take.

use crate::device::Device;
use xmem_types::Bytes;

/// TensorFlow's GPU allocator: the options of `GPUBFCAllocator` and of `GPUOptions` that are
/// simulated.
///
/// `Default` is TensorFlow's default on an Ampere or Ada GPU: all memory but a reserve is taken in
/// one region by the first request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BfcConfig {
    /// The memory that the allocator may take of the device.
    pub limit: MemoryLimit,
    /// `allow_growth`, `TF_FORCE_GPU_ALLOW_GROWTH`,
    /// `tf.config.experimental.set_memory_growth`: regions start at 2 MiB and double, instead of
    /// one region of the whole limit.
    pub allow_growth: bool,
    /// `garbage_collection`, `TF_ENABLE_GPU_GARBAGE_COLLECTION`: before a request fails, regions
    /// without a chunk in use go back to the device. On by default on GPUs
    /// (`GPUBFCAllocator::GPUBFCAllocator`), off in `BFCAllocator` itself.
    pub garbage_collection: bool,
    /// `internal_fragmentation_fraction`: a chunk is split if the rest is at least this part of
    /// the limit, however small next to the request. `None`, or a fraction that is not above
    /// zero, stands for 128 MiB.
    pub fragmentation_fraction: Option<f64>,
    /// True if a region that begins where another one ends is joined to it
    /// (`SubAllocator::SupportsCoalescing`). Off on GPUs: `DeviceMemAllocator` says no.
    pub coalesce_regions: bool,
}

impl Default for BfcConfig {
    fn default() -> Self {
        Self {
            limit: MemoryLimit::FreeLessReserve { compute_capability: 8 },
            allow_growth: false,
            garbage_collection: true,
            fragmentation_fraction: None,
            coalesce_regions: false,
        }
    }
}

/// The part of the device that TensorFlow's allocator may take, decided when it is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryLimit {
    /// The free memory of the device, less a reserve for everything else on it; the default.
    /// `MinSystemMemory` and `SingleVirtualDeviceMemoryLimit` in `gpu_device.cc`: 225 MiB if less
    /// than 2 GiB are free; else by the major compute capability 500 MiB (up to 6), 1050 MiB (7),
    /// 1536 MiB (8), 1800 MiB (from 9 on). So just below 2 GiB leave more than just above. Nothing
    /// is held back where the reserve is all there is.
    FreeLessReserve {
        /// The major number of the GPU's compute capability.
        compute_capability: u32,
    },
    /// This part of what the device reports as its total, whatever is free
    /// (`per_process_gpu_memory_fraction`). Above 1, which stands for unified memory, is not
    /// simulated: the device then refuses what it does not have.
    Fraction(f64),
    /// A figure that has nothing to do with the device: `LogicalDeviceConfiguration(memory_limit)`.
    Exactly(Bytes),
}

impl MemoryLimit {
    /// The limit on this device; `None` if neither has one.
    pub(super) fn on(self, device: &Device) -> Option<Bytes> {
        match self {
            Self::FreeLessReserve { compute_capability } => {
                device.free_bytes().map(|free| less_reserve(free, compute_capability))
            }
            Self::Fraction(fraction) => {
                device.total().map(|total| Bytes((total.get() as f64 * fraction) as u64))
            }
            Self::Exactly(limit) => Some(limit),
        }
    }
}

/// `free` without the reserve (`MinSystemMemory`), or all of it where nothing would be left.
fn less_reserve(free: Bytes, compute_capability: u32) -> Bytes {
    let reserve = match compute_capability {
        _ if free < Bytes::gib(2) => Bytes::mib(225),
        ..=6 => Bytes::mib(500),
        7 => Bytes::mib(1050),
        8 => Bytes::mib(1536),
        9.. => Bytes::mib(1800),
    };
    if reserve < free { free - reserve } else { free }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DeviceConfig;

    fn device(capacity: Option<u64>, taken: u64) -> Device {
        Device::new(&DeviceConfig {
            capacity: capacity.map(Bytes::mib),
            taken: Bytes::mib(taken),
            ..DeviceConfig::default()
        })
    }

    #[test]
    fn the_reserve_depends_on_what_is_free_and_on_the_gpu() {
        for (free, compute_capability, limit) in [
            (100, 8, 100),
            (225, 8, 225),
            (226, 8, 1),
            (2047, 8, 1822),
            (2048, 8, 512),
            (12_000, 6, 11_500),
            (12_000, 7, 10_950),
            (12_000, 8, 10_464),
            (80_000, 9, 78_200),
            (80_000, 12, 78_200),
        ] {
            let config = MemoryLimit::FreeLessReserve { compute_capability };
            let device = device(Some(free + 300), 300);
            assert_eq!(config.on(&device), Some(Bytes::mib(limit)), "{free} MiB");
        }
    }

    #[test]
    fn other_limits_do_not_depend_on_what_is_free() {
        let half = MemoryLimit::Fraction(0.5);
        assert_eq!(half.on(&device(Some(1000), 700)), Some(Bytes::mib(500)));
        let exact = MemoryLimit::Exactly(Bytes::mib(300));
        assert_eq!(exact.on(&device(Some(1), 0)), Some(Bytes::mib(300)));
        assert_eq!(exact.on(&device(None, 0)), Some(Bytes::mib(300)));
    }

    #[test]
    fn without_a_device_limit_there_is_nothing_to_take_a_part_of() {
        for limit in
            [MemoryLimit::FreeLessReserve { compute_capability: 8 }, MemoryLimit::Fraction(0.5)]
        {
            assert_eq!(limit.on(&device(None, 0)), None);
        }
    }
}
