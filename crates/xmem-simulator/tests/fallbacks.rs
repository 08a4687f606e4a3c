//! Allocations that may be smaller if they must: workspaces of convolutions.

use xmem_simulator::{AllocatorConfig, DeviceConfig, Replay, min_capacity, replay, runs_in};
use xmem_types::{BlockId, Bytes, Fallbacks, Request, RequestKind, StreamId, Workload};

const fn alloc(id: u32, size: Bytes) -> Request {
    Request { block: BlockId(id), kind: RequestKind::Alloc { size, stream: StreamId(0) } }
}

const fn free(id: u32) -> Request {
    Request { block: BlockId(id), kind: RequestKind::Free }
}

/// 100 MiB of tensors, then three calls with workspaces: twice the same convolution, once another.
fn calls() -> (Vec<Request>, Fallbacks) {
    let mut requests = vec![alloc(0, Bytes::mib(100))];
    for call in 1..4 {
        requests.extend([alloc(call, Bytes::mib(80)), free(call)]);
    }
    let mut fallbacks = Fallbacks::default();
    let first = fallbacks.add([200, 40, 0].map(Bytes::mib));
    let other = fallbacks.add([24].map(Bytes::mib));
    for (call, list) in [(1, first), (2, first), (3, other)] {
        fallbacks.assign(BlockId(call), list);
    }
    (requests, fallbacks)
}

fn on(capacity: u64, work: Workload<'_>) -> Replay {
    let device = DeviceConfig { capacity: Some(Bytes::mib(capacity)), ..DeviceConfig::default() };
    replay(work, &AllocatorConfig::default(), &device)
}

#[test]
fn the_first_size_that_can_be_had_is_taken() {
    let (requests, fallbacks) = calls();
    let work = Workload::new(&requests, &fallbacks);
    // capacity, peak allocated, peak reserved, smaller calls, whether it runs
    for (capacity, allocated, reserved, smaller, runs) in [
        (180, 180, 180, 0, true),
        (178, 140, 140, 3, true),
        (139, 124, 124, 3, true),
        (124, 124, 124, 3, true),
        (123, 180, 180, 2, false),
        (99, 180, 180, 0, false),
    ] {
        let run = on(capacity, work);
        let figures = (run.peak.allocated, run.reserved_peak.reserved, run.smaller, run.fits());
        let expected = (Bytes::mib(allocated), Bytes::mib(reserved), smaller, runs);
        assert_eq!(figures, expected, "{capacity} MiB");
        assert_eq!(run.unlimited.reserved, Bytes::mib(180), "{capacity} MiB");
    }
    let plain = on(178, Workload::from(&requests));
    assert!(!plain.fits(), "without anything to fall back on it does not run");
}

/// `run_single_conv` begins with the plan that worked last time, even when there is room again.
#[test]
fn what_was_got_is_asked_for_next_time() {
    let (mut requests, fallbacks) = calls();
    requests.truncate(3);
    requests.extend([free(0), alloc(2, Bytes::mib(80)), free(2)]);
    let run = on(150, Workload::new(&requests, &fallbacks));
    assert!(run.fits());
    assert_eq!((run.smaller, run.peak.allocated), (2, Bytes::mib(140)));
}

#[test]
fn the_smallest_capacity_is_that_of_the_smallest_sizes() {
    let (requests, fallbacks) = calls();
    let (allocator, device) = (AllocatorConfig::default(), DeviceConfig::default());
    let work = Workload::new(&requests, &fallbacks);
    let least = min_capacity(work, &allocator, &device);
    assert_eq!(least, Bytes::mib(124));
    assert_eq!(min_capacity(&requests, &allocator, &device), Bytes::mib(180));
    let with = |capacity| DeviceConfig { capacity: Some(capacity), ..device };
    assert!(runs_in(work, &allocator, &with(least)));
    assert!(!runs_in(work, &allocator, &with(least - Bytes::mib(2))));
}
