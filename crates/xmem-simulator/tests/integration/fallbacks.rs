//! Allocations that may be smaller if they must: workspaces of convolutions.

use proptest::prelude::*;
use xmem_simulator::{
    AllocatorConfig, DeviceConfig, Replay, RequestIndex, min_capacity, outline, replay, runs_in,
};
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

/// 100 MiB of tensors, of which 40 are freed, then a trial of four plans and a call with 8 MiB.
fn trial(largest: u64) -> (Vec<Request>, Fallbacks) {
    let requests = vec![
        alloc(0, Bytes::mib(60)),
        alloc(1, Bytes::mib(40)),
        free(1),
        alloc(2, Bytes::mib(largest)),
        free(2),
        alloc(3, Bytes::mib(8)),
    ];
    let mut fallbacks = Fallbacks::default();
    let list = fallbacks.add([largest, 90, 30, 0].map(Bytes::mib));
    fallbacks.assign_trial(BlockId(2), list);
    (requests, fallbacks)
}

/// `generate_and_filter_plans` leaves out the plans that neither free memory nor a cached block has room
/// for, and `run_single_conv` empties the cache afterwards.
#[test]
fn a_trial_takes_the_largest_plan_that_fits_and_empties_the_cache() {
    // capacity, largest plan, peak allocated, peak reserved, calls with less
    for (capacity, largest, allocated, reserved, smaller) in [
        (1000, 300, 360, 400, 0),
        (360, 300, 150, 190, 1),
        (191, 300, 150, 190, 1),
        (189, 300, 100, 100, 1),
        (100, 300, 100, 100, 1),
        (100, 35, 100, 100, 0),
        (1000, 0, 100, 100, 0),
    ] {
        let (requests, fallbacks) = trial(largest);
        let run = on(capacity, Workload::new(&requests, &fallbacks));
        let figures = (run.peak.allocated, run.reserved_peak.reserved, run.smaller);
        assert_eq!(figures, (Bytes::mib(allocated), Bytes::mib(reserved), smaller), "{capacity}");
        assert!(run.fits(), "{capacity} MiB");
        let last = run.curve.iter().last().expect("a curve");
        assert_eq!(
            last.reserved,
            Bytes::mib(60 + 20),
            "{capacity} MiB: only what is in use is left"
        );
    }
}

/// Blocks of so many 64 KiB, each freed after so many more; every third with sizes to fall back on.
fn job(steps: &[(u64, usize)]) -> (Vec<Request>, Fallbacks) {
    let mut events: Vec<(usize, u32, Request)> = Vec::new();
    let mut fallbacks = Fallbacks::default();
    let lists = [fallbacks.add([40, 9].map(|n| Bytes(n << 16))), fallbacks.add([Bytes::ZERO])];
    for (row, &(size, life)) in steps.iter().enumerate() {
        let id = u32::try_from(row).expect("few steps");
        events.push((row, 0, alloc(id, Bytes(size << 16))));
        events.push((row + life, 1, free(id)));
        if row % 3 == 0 {
            fallbacks.assign(BlockId(id), lists[row % 2]);
        }
    }
    events.sort_by_key(|&(at, kind, _)| (at, kind));
    (events.into_iter().map(|(_, _, request)| request).collect(), fallbacks)
}

proptest! {
    #[test]
    fn an_outline_has_the_peaks_of_the_replay(
        steps in prop::collection::vec((1_u64..500, 0_usize..12), 0..60),
        capacity in prop_oneof![Just(None), (8_u64..300).prop_map(|n| Some(Bytes::mib(n)))],
    ) {
        let (requests, fallbacks) = job(&steps);
        let work = Workload::new(&requests, &fallbacks);
        let device = DeviceConfig { capacity, ..DeviceConfig::default() };
        let allocator = AllocatorConfig::default();
        let (whole, short) = (
            replay(work, &allocator, &device),
            outline(work, &allocator, &device, RequestIndex(0)),
        );
        prop_assert_eq!(short.fits, whole.fits());
        let (allocated, reserved) = if whole.fits() {
            (whole.peak.allocated, whole.reserved_peak.reserved)
        } else {
            (whole.unlimited.allocated, whole.unlimited.reserved)
        };
        prop_assert_eq!((short.allocated, short.reserved), (allocated, reserved));
        let half = RequestIndex(requests.len() / 2);
        let later = outline(work, &allocator, &device, half);
        prop_assert!(later.allocated <= short.allocated && later.reserved <= short.reserved);
        if let Some(point) = whole.curve.iter().last().filter(|_| whole.fits()) {
            prop_assert!(later.allocated >= point.allocated && later.reserved >= point.reserved);
        }
    }

    /// Whatever an allocation can make do with, it is never worse off for it.
    #[test]
    fn with_fallbacks_a_job_runs_where_it_ran_without(
        steps in prop::collection::vec((1_u64..500, 0_usize..12), 0..60),
        capacity in 8_u64..300,
    ) {
        let (requests, fallbacks) = job(&steps);
        let (allocator, device) = (AllocatorConfig::default(), DeviceConfig {
            capacity: Some(Bytes::mib(capacity)),
            ..DeviceConfig::default()
        });
        if runs_in(&requests, &allocator, &device) {
            let work = Workload::new(&requests, &fallbacks);
            prop_assert!(runs_in(work, &allocator, &device));
            prop_assert_eq!(replay(work, &allocator, &device).smaller, 0);
        }
    }
}
