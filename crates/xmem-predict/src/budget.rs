//! The memory of a device: what PyTorch's allocator can have, and what others take from it.

mod nccl;

pub use nccl::NcclMemory;

use xmem_analyzer::Profile;
use xmem_analyzer::recording::{Rank, VirtualGpu};
use xmem_devices::Device;
use xmem_types::Bytes;

/// A device with all that its memory holds beside PyTorch's allocator: the context, the buffers of NCCL, and what the program
/// takes from the device itself.
#[derive(Clone, Debug)]
pub struct DeviceBudget {
    device: Device,
    nccl: Option<NcclMemory>,
    outside: Bytes,
    host: HostMemory,
}

/// Memory of the host that a job on a GPU takes, as far as the recording says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostMemory {
    /// The peak of pinned memory, as PyTorch's allocator for it reserves it.
    pub pinned: Option<Bytes>,
    /// The highest pageable memory of tensors, up to the end of the recorded iterations.
    pub allocated: Option<Bytes>,
}

impl DeviceBudget {
    /// The budget of `device` for a job whose process has this place among those of the job.
    #[must_use]
    pub fn new(mut device: Device, profile: &Profile, rank: Option<&Rank>) -> Self {
        let outside = profile.virtual_gpu().map_or(Bytes::ZERO, VirtualGpu::outside);
        device.context += outside;
        let variables = profile.recording().map_or(&[][..], |recording| &recording.environment);
        let collectives = profile.collectives();
        let nccl = rank.and_then(|rank| NcclMemory::of(rank, collectives, variables, &device));
        if let Some(nccl) = nccl {
            nccl.take_from(&mut device);
        }
        let host = HostMemory {
            pinned: profile.virtual_gpu().and_then(VirtualGpu::pinned),
            allocated: profile.gpu.as_ref().and_then(|gpu| gpu.host_allocated),
        };
        Self { device, nccl, outside, host }
    }

    /// The device. Its context includes [`nccl`](Self::nccl) and [`outside`](Self::outside).
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The memory of NCCL; none if the job does not use it.
    #[must_use]
    pub fn nccl(&self) -> Option<NcclMemory> {
        self.nccl
    }

    /// Memory of the host.
    #[must_use]
    pub fn host(&self) -> HostMemory {
        self.host
    }

    /// Memory that the program took from the device outside PyTorch's allocator: symmetric memory, and what libraries
    /// allocate themselves.
    #[must_use]
    pub fn outside(&self) -> Bytes {
        self.outside
    }
}
