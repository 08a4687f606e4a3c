//! The peaks of a job and whether it runs: all that is needed to compare many variants of it.

use super::driver::ReplayDriver;
use crate::allocator::{Framework, FrameworkAllocator, RequestIndex};
use crate::config::DeviceConfig;
use crate::device::Device;
use xmem_types::{Bytes, Workload};

/// The peaks of a job, and whether it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The highest allocated bytes.
    pub allocated: Bytes,
    /// The highest reserved bytes.
    pub reserved: Bytes,
    /// True if the job runs to its end.
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
    let over =
        |device: &DeviceConfig| ReplayDriver::new(allocator.over(Device::new(device), ()), work);
    let mut limited = over(device);
    let mut outline = Outline { allocated: Bytes::ZERO, reserved: Bytes::ZERO, fits: true };
    for (at, request) in work.requests.iter().enumerate() {
        let at = RequestIndex(at);
        if limited.serve(at, request).is_err() {
            let mut ample = over(&device.without_limit());
            return ample_outline(&mut ample, work, from);
        }
        outline.include(at, from, limited.allocator());
    }
    outline
}

/// The peaks of a job that runs out of memory: those with unlimited memory.
fn ample_outline<A: FrameworkAllocator>(
    driver: &mut ReplayDriver<'_, A>,
    work: Workload<'_>,
    from: RequestIndex,
) -> Outline {
    let mut outline = Outline { allocated: Bytes::ZERO, reserved: Bytes::ZERO, fits: false };
    for (at, request) in work.requests.iter().enumerate() {
        driver.serve_lifting_limits(RequestIndex(at), request);
        outline.include(RequestIndex(at), from, driver.allocator());
    }
    outline
}

impl Outline {
    fn include<A: FrameworkAllocator>(&mut self, at: RequestIndex, from: RequestIndex, now: &A) {
        if at >= from {
            self.allocated = self.allocated.max(now.allocated());
            self.reserved = self.reserved.max(now.reserved());
        }
    }
}
