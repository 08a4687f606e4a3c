//! A check that a job runs in a given capacity, and the smallest capacity in which it does.

use super::UnlimitedPeaks;
use super::driver::ReplayDriver;
use crate::allocator::{Framework, FrameworkAllocator, RequestIndex, Stats};
use crate::config::DeviceConfig;
use crate::device::Device;
use rustc_hash::FxHashMap;
use xmem_types::{Bytes, MIB, RequestKind, Workload};

/// The interval at which capacities are tried: the device's page size.
const CAPACITY_INTERVAL: u64 = 2 * MIB;

/// Capacities below a found boundary that are tried one by one.
const PROBES_BELOW: u64 = 16;

/// The highest multiple of the interval that is tried: 16 TiB, more than any device has.
const MAX_STEPS: u64 = (1 << 44) / CAPACITY_INTERVAL;

/// Returns whether the job runs to its end on the device. Cheaper than [`replay`](super::replay):
/// it stops at the first failure and writes nothing down.
#[must_use]
pub fn runs_in<'a, F: Framework>(
    work: impl Into<Workload<'a>>,
    allocator: &F,
    device: &DeviceConfig,
) -> bool {
    let work = work.into();
    let mut driver = ReplayDriver::new(allocator.over(Device::new(device), ()), work);
    let mut requests = work.requests.iter().enumerate();
    requests.all(|(at, request)| driver.serve(RequestIndex(at), request).is_ok())
}

/// The smallest memory available to the allocator, without what [`DeviceConfig::taken`] holds, in
/// which the job runs; a multiple of 2 MiB. The device's own capacity plays no part.
///
/// It mostly lies between the highest allocated and the highest reserved bytes of the job with
/// unlimited memory, as cached segments are released when there is no space left. It is higher if
/// the allocator keeps a part of the device back, or may take but a part of it, and lower if blocks
/// that were not split for lack of need, or what allocations fall back on, are smaller in a smaller
/// device; never is it below what the program must have. Found by bisection over replays, after
/// which the 16 steps below are tried one by one until none of them runs.
///
/// Running is not monotone in the capacity: releasing memory earlier can leave better gaps, so a
/// job may run in the capacity returned and fail in a slightly larger one. Of 31 training jobs
/// recorded with PyTorch's CUDA build, kernels stubbed, 2 had such failures, in 5 and 6 capacities
/// each; a scan of every capacity found no smaller answer than this search in any of the 31. With
/// PyTorch's allocator and no memory fraction, every capacity is enough from
/// [`Replay::unlimited`](super::Replay::unlimited)'s reserved bytes on.
///
/// If a request is beyond any device, or the allocator has a limit that no device lifts, the peak
/// of reserved bytes with unlimited memory is returned.
#[must_use]
pub fn min_capacity<'a, F: Framework>(
    work: impl Into<Workload<'a>>,
    allocator: &F,
    device: &DeviceConfig,
) -> Bytes {
    let work = work.into();
    let unlimited = unlimited_stats(work, allocator, device);
    let runs = |steps: u64| {
        // A memory fraction is a part of all that the device has, taken or not.
        let capacity = Some(Bytes(steps * CAPACITY_INTERVAL) + device.taken);
        runs_in(work, allocator, &DeviceConfig { capacity, reported_total: None, ..*device })
    };
    let steps = |bytes: Bytes| bytes.get().div_ceil(CAPACITY_INTERVAL);
    let requested = steps(least_requested(work));
    let allocated = steps(unlimited.allocated_bytes.all.peak);
    let reserved = steps(unlimited.reserved_bytes.all.peak);

    let (mut low, mut enough) = (allocated, reserved);
    while !runs(enough) {
        low = enough + 1;
        enough = enough.saturating_mul(2).max(1);
        if enough > MAX_STEPS {
            return Bytes(reserved * CAPACITY_INTERVAL);
        }
    }
    enough = bisect(low, enough, runs);
    if enough == allocated {
        enough = bisect(requested, allocated, runs);
    }
    while let Some(lower) =
        (requested.max(enough.saturating_sub(PROBES_BELOW))..enough).find(|&steps| runs(steps))
    {
        enough = lower;
    }
    Bytes(enough * CAPACITY_INTERVAL)
}

/// The highest sum of the requested bytes if every allocation is as small as it may be.
fn least_requested(work: Workload<'_>) -> Bytes {
    let mut held = vec![Bytes::ZERO; work.requests.len()];
    let (mut sum, mut highest) = (Bytes::ZERO, Bytes::ZERO);
    let mut rows = FxHashMap::default();
    for request in work.requests {
        let next = rows.len();
        let row = *rows.entry(request.block).or_insert(next);
        match request.kind {
            RequestKind::Alloc { size, .. } => {
                let list = work.fallbacks.of(request.block).map(|list| work.fallbacks.sizes(list));
                let least = list.and_then(<[Bytes]>::last).map_or(size, |&least| least.min(size));
                // A block that is allocated twice is counted once; this is a lower bound.
                sum = Bytes(sum.get().saturating_add(least.get()).saturating_sub(held[row].get()));
                held[row] = least;
                highest = highest.max(sum);
            }
            RequestKind::Free => sum = sum.saturating_sub(std::mem::take(&mut held[row])),
        }
    }
    highest
}

/// A boundary between failing and running in `low..=enough`, of which the last runs.
fn bisect(mut low: u64, mut enough: u64, runs: impl Fn(u64) -> bool) -> u64 {
    while low < enough {
        let middle = low + (enough - low) / 2;
        if runs(middle) {
            enough = middle;
        } else {
            low = middle + 1;
        }
    }
    enough
}

/// The peaks of the job where memory is not limited.
pub(super) fn unlimited_peaks<F: Framework>(
    work: Workload<'_>,
    allocator: &F,
    device: &DeviceConfig,
) -> UnlimitedPeaks {
    let stats = unlimited_stats(work, allocator, device);
    UnlimitedPeaks {
        allocated: stats.allocated_bytes.all.peak,
        reserved: stats.reserved_bytes.all.peak,
    }
}

/// The statistics of the job where memory is not limited.
fn unlimited_stats<F: Framework>(
    work: Workload<'_>,
    allocator: &F,
    device: &DeviceConfig,
) -> Stats {
    let device = device.without_limit();
    let mut driver = ReplayDriver::new(allocator.over(Device::new(&device), ()), work);
    for (at, request) in work.requests.iter().enumerate() {
        driver.serve_lifting_limits(RequestIndex(at), request);
    }
    driver.allocator().stats()
}
