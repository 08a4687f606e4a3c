//! The peaks of a job and whether it runs: all that is needed to compare many variants of it.

use super::OutOfMemory;
use super::drive::{Reaction, Watch, drive};
use crate::allocator::{BlockHandle, Framework, FrameworkAllocator, RequestIndex};
use crate::config::DeviceConfig;
use crate::device::Device;
use xmem_types::{BlockId, Bytes, Workload};

/// The peaks of a job, and whether it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The highest allocated bytes.
    pub allocated: Bytes,
    /// The highest reserved bytes.
    pub reserved: Bytes,
    /// Whether the job runs to its end.
    pub fits: bool,
}

/// Runs a job and keeps only its peaks from request `from` on. Cheaper than
/// [`replay`](super::replay). Where the job runs out of memory, the peaks are those with unlimited
/// memory.
#[must_use]
pub fn outline<'a, F: Framework>(
    work: impl Into<Workload<'a>>,
    allocator: &F,
    device: &DeviceConfig,
    from: RequestIndex,
) -> Outline {
    let work = work.into();
    let limited = peaks(work, allocator, device, from, Reaction::Stop);
    if limited.fits {
        return limited;
    }
    let ample = DeviceConfig { capacity: None, ..*device };
    let peaks = peaks(work, allocator, &ample, from, Reaction::LiftLimit);
    Outline { fits: false, ..peaks }
}

fn peaks<F: Framework>(
    work: Workload<'_>,
    allocator: &F,
    device: &DeviceConfig,
    from: RequestIndex,
    at_failure: Reaction,
) -> Outline {
    let mut framework = allocator.over(Device::new(device), ());
    let outline = Outline { allocated: Bytes::ZERO, reserved: Bytes::ZERO, fits: true };
    let mut tracer = Tracer { outline, from, at_failure };
    drive(&mut framework, work, &mut tracer);
    tracer.outline
}

struct Tracer {
    outline: Outline,
    from: RequestIndex,
    at_failure: Reaction,
}

impl Watch for Tracer {
    fn before_free<A: FrameworkAllocator>(&mut self, _: BlockId, _: &A, _: BlockHandle) {}

    fn after(&mut self, at: RequestIndex, allocated: Bytes, reserved: Bytes) {
        if at >= self.from {
            self.outline.allocated = self.outline.allocated.max(allocated);
            self.outline.reserved = self.outline.reserved.max(reserved);
        }
    }

    fn out_of_memory(&mut self, _: OutOfMemory) -> Reaction {
        self.outline.fits = false;
        self.at_failure
    }
}
