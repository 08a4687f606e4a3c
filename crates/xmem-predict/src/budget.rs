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
        Self { device, nccl, outside }
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

    /// Memory that the program took from the device outside PyTorch's allocator: symmetric memory, and what libraries
    /// allocate themselves.
    #[must_use]
    pub fn outside(&self) -> Bytes {
        self.outside
    }
}
