//! Jobs without anything but requests and frees: what a replay tells, against what the model saw.

use crate::model::{Model, Outcome, Use};
use crate::programs::{orders, requests, whole_segments};
use crate::side_by_side::Step;
use crate::thorough;
use proptest::prelude::*;
use std::collections::BTreeMap;
use xmem_simulator::{
    AddressOrder, AllocatorConfig, DeviceConfig, Fragmentation, Operation, Replay, min_capacity,
    replay, runs_in,
};
use xmem_types::{BlockId, Bytes, MIB, Request, RequestKind, StreamId};

/// The requests of a program, numbered from 0.
fn job(steps: &[Step]) -> Vec<Request> {
    let mut live: Vec<BlockId> = Vec::new();
    let mut job = Vec::new();
    for step in steps {
        match *step {
            Step::Alloc { size, stream } => {
                let block = BlockId::new(job.iter().filter(|r: &&Request| is_alloc(r)).count());
                let kind = RequestKind::Alloc { size: Bytes(size), stream: StreamId(stream) };
                job.push(Request { block, kind });
                live.push(block);
            }
            Step::Free(i) if !live.is_empty() => {
                let block = live.swap_remove(i as usize % live.len());
                job.push(Request { block, kind: RequestKind::Free });
            }
            Step::FreeNewest => {
                if let Some(block) = live.pop() {
                    job.push(Request { block, kind: RequestKind::Free });
                }
            }
            _ => {}
        }
    }
    job
}

fn is_alloc(request: &Request) -> bool {
    matches!(request.kind, RequestKind::Alloc { .. })
}

/// The job in the model, which goes on without limit where it runs out of memory.
struct Seen {
    /// Allocated and reserved bytes after each request.
    curve: Vec<(u64, u64)>,
    /// The model when both were highest for the first time, and when that was.
    at_allocated: (usize, Model),
    at_reserved: (usize, Model),
    /// The model when it ran out of memory for the first time.
    out: Option<(usize, Model)>,
}

fn watch(job: &[Request], config: &AllocatorConfig, device: &DeviceConfig) -> Seen {
    let mut model = Model::new(config, device);
    let mut seen = Seen {
        curve: Vec::new(),
        at_allocated: (0, model.clone()),
        at_reserved: (0, model.clone()),
        out: None,
    };
    for (i, request) in job.iter().enumerate() {
        let block = request.block;
        match request.kind {
            RequestKind::Free => {
                model.apply(&Operation::Free(block));
            }
            RequestKind::Alloc { size, stream } => {
                let operation = Operation::Alloc { block, size, stream };
                if let Outcome::Full { .. } = model.apply(&operation) {
                    seen.out.get_or_insert((i, model.clone()));
                    model.device.limit = None;
                    model.device.total = None;
                    model.apply(&Operation::Free(block));
                    model.apply(&operation);
                }
            }
        }
        let now = (allocated(&model), model.reserved());
        let before = seen.curve.iter();
        if before.clone().all(|point| point.0 < now.0) && now.0 > 0 {
            seen.at_allocated = (i, model.clone());
        }
        if before.clone().all(|point| point.1 < now.1) && now.1 > 0 {
            seen.at_reserved = (i, model.clone());
        }
        seen.curve.push(now);
    }
    seen
}

fn allocated(model: &Model) -> u64 {
    model.figures.allocated_bytes.all.current
}

fn tells_the_same(got: &Replay, seen: &Seen, device: &DeviceConfig) -> Result<(), TestCaseError> {
    let curve: Vec<_> = got.curve.iter().map(|p| (p.allocated.get(), p.reserved.get())).collect();
    prop_assert_eq!(&curve, &seen.curve);

    let ((allocated_at, at_allocated), (reserved_at, at_reserved)) =
        (&seen.at_allocated, &seen.at_reserved);
    prop_assert_eq!(got.peak.allocated.get(), allocated(at_allocated));
    prop_assert_eq!(got.peak.request.0, *allocated_at);
    prop_assert_eq!(got.peak.reserved.get(), at_allocated.reserved());
    prop_assert_eq!(got.reserved_peak.reserved.get(), at_reserved.reserved());
    prop_assert_eq!(got.reserved_peak.request.0, *reserved_at);
    prop_assert_eq!(got.stats.allocated_bytes.all.peak, got.peak.allocated);

    let held = at_allocated.segments.iter().flat_map(|s| &s.blocks);
    let held = held.filter(|b| matches!(b.used, Use::Held { .. })).count();
    prop_assert_eq!(got.live_at_peak.len(), held);
    for block in &got.live_at_peak {
        let place = (block.addr.0, block.size.get(), block.requested.get());
        prop_assert_eq!(Some(place), at_allocated.find(block.block));
    }
    fragmentation_is(&got.fragmentation, at_allocated)?;
    fragmentation_is(&got.fragmentation_at_reserved_peak, at_reserved)?;

    match (&got.oom, &seen.out) {
        (Some(oom), Some((at, model))) => {
            prop_assert_eq!(oom.request.0, *at);
            prop_assert_eq!(oom.allocated.get(), allocated(model));
            prop_assert_eq!(oom.reserved.get(), model.reserved());
            prop_assert_eq!(Some(oom.device_free.get()), model.device.free_bytes());
            prop_assert_eq!(oom.largest_cached.get(), model.largest_free());
            // Of an expandable segment fewer pages may do than a segment would have taken.
            let with_segment = oom.reserved.get() + oom.tried.get();
            prop_assert_eq!(oom.needed.get(), at_reserved.reserved().max(with_segment));
            let whole = model.segments.iter().all(|s| !s.expandable);
            prop_assert!(!whole || with_segment <= at_reserved.reserved());
        }
        (None, None) => {}
        (got, want) => prop_assert!(false, "{:?} but {:?}", got, want.as_ref().map(|(at, _)| at)),
    }
    prop_assert_eq!(got.fits(), seen.out.is_none());
    prop_assert!(device.capacity.is_some() || got.fits());
    prop_assert!(got.diagnostics.is_empty());
    Ok(())
}

fn fragmentation_is(got: &Fragmentation, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(got.reserved.get(), model.reserved());
    prop_assert_eq!(got.allocated.get(), allocated(model));
    prop_assert_eq!(got.largest_free.get(), model.largest_free());
    if model.segments.iter().any(|s| s.expandable) {
        // Pages of a segment that is partly in use can go back too, but do not count here.
        return Ok(());
    }
    let mut flushed = model.clone();
    flushed.apply(&Operation::EmptyCache);
    prop_assert_eq!(got.releasable.get(), model.reserved() - flushed.reserved());
    Ok(())
}

proptest! {
    #![proptest_config(thorough(300))]

    #[test]
    fn a_replay_tells_what_the_model_saw(
        steps in requests(), config in whole_segments(), device in crate::programs::devices()
    ) {
        let job = job(&steps);
        let got = replay(&job, &config, &device);
        let seen = watch(&job, &config, &device);
        tells_the_same(&got, &seen, &device)?;

        let segments: Vec<_> = got
            .segments_at_peak
            .iter()
            .map(|s| (s.addr.0, s.size.get(), s.free_blocks + s.blocks))
            .collect();
        let mut want: Vec<_> =
            seen.at_allocated.1.segments.iter().map(|s| (s.addr, s.size(), s.blocks.len())).collect();
        want.sort_unstable();
        prop_assert_eq!(segments, want);
        prop_assert_eq!(got.fragmentation.segments, seen.at_allocated.1.segments.len());
        if let Some(oom) = got.oom {
            prop_assert!(oom.tried > oom.device_free);
        }

        let roomy = replay(&job, &config, &DeviceConfig { capacity: None, ..device });
        prop_assert_eq!(got.unlimited.allocated, roomy.peak.allocated);
        prop_assert_eq!(got.unlimited.reserved, roomy.reserved_peak.reserved);
        prop_assert_eq!(runs_in(&job, &config, &device), got.fits());
        // The same again gives the same.
        prop_assert_eq!(format!("{got:?}"), format!("{:?}", replay(&job, &config, &device)));
    }

    #[test]
    fn a_replay_with_expandable_segments_tells_what_the_model_saw(
        steps in requests(), config in whole_segments(), device in crate::programs::devices()
    ) {
        let config = AllocatorConfig { expandable_segments: true, ..config };
        let job = job(&steps);
        let got = replay(&job, &config, &device);
        tells_the_same(&got, &watch(&job, &config, &device), &device)?;
        prop_assert_eq!(format!("{got:?}"), format!("{:?}", replay(&job, &config, &device)));
    }

    #[test]
    fn a_job_runs_in_its_smallest_capacity(steps in requests(), order in orders()) {
        smallest_capacity(&job(&steps), order)?;
    }

    #[test]
    fn nonsense_is_counted_and_never_panics(
        list in prop::collection::vec(
            (0..6u32, prop::option::of((0..3 * MIB, 0..2u32)), any::<bool>(), any::<bool>()),
            0..80,
        )
    ) {
        let requests: Vec<_> = list
            .iter()
            .map(|&(id, alloc, huge, far)| Request {
                block: if far { BlockId(u32::MAX - id) } else { BlockId(id) },
                kind: match alloc {
                    Some((size, stream)) => RequestKind::Alloc {
                        size: if huge { Bytes(u64::MAX - size) } else { Bytes(size) },
                        stream: StreamId(stream),
                    },
                    None => RequestKind::Free,
                },
            })
            .collect();
        nonsense_is_counted(&requests)?;
    }
}

/// Expandable segments have address space for the device's total and an eighth more: once the limit
/// is lifted, that must not keep a request out.
#[test]
fn a_request_beyond_the_address_space_counts_after_the_job_ran_out_of_memory() {
    let gib = |n: u64| Bytes::mib(n << 10);
    let alloc = |id, size| Request {
        block: BlockId(id),
        kind: RequestKind::Alloc { size, stream: StreamId(0) },
    };
    let job = [alloc(0, gib(1)), alloc(1, gib(14)), alloc(2, gib(1))];
    let config = AllocatorConfig { expandable_segments: true, ..AllocatorConfig::default() };
    let device = DeviceConfig { capacity: Some(gib(12)), ..DeviceConfig::default() };
    let got = replay(&job, &config, &device);
    assert_eq!(got.oom.expect("14 GiB do not fit into 12").request.0, 1);
    assert_eq!(got.peak.allocated, gib(16));
    assert!(got.diagnostics.is_empty());
}

fn smallest_capacity(job: &[Request], order: AddressOrder) -> Result<(), TestCaseError> {
    let config = AllocatorConfig::default();
    let device = DeviceConfig {
        capacity: Some(Bytes::mib(1)),
        taken: Bytes::mib(7),
        address_order: order,
        ..DeviceConfig::default()
    };
    let smallest = min_capacity(job, &config, &device);
    let with = |capacity: Bytes| DeviceConfig { capacity: Some(capacity + device.taken), ..device };
    let roomy = replay(job, &config, &DeviceConfig { capacity: None, ..device });
    prop_assert!(runs_in(job, &config, &with(smallest)));
    prop_assert!(smallest >= roomy.peak.allocated);
    prop_assert!(smallest <= roomy.reserved_peak.reserved);
    prop_assert_eq!(smallest.get() % (2 * MIB), 0);
    for below in 1..=16.min(smallest.get() / (2 * MIB)) {
        let less = Bytes(smallest.get() - below * 2 * MIB);
        prop_assert!(!runs_in(job, &config, &with(less)), "runs in {} too", less);
    }
    Ok(())
}

fn nonsense_is_counted(requests: &[Request]) -> Result<(), TestCaseError> {
    let got = replay(requests, &AllocatorConfig::default(), &DeviceConfig::default());
    // What each number stands for: `None` if it was freed, else whether memory is behind it.
    let mut known: BTreeMap<BlockId, Option<bool>> = BTreeMap::new();
    let (mut unknown, mut again, mut twice, mut absurd) = (0, 0, 0, 0);
    for request in requests {
        match request.kind {
            RequestKind::Alloc { size, .. } => {
                let beyond = size.get() >= 1 << 60;
                absurd += u64::from(beyond);
                let real = !beyond && size > Bytes::ZERO;
                let before = known.insert(request.block, Some(real));
                twice += u64::from(real && before == Some(Some(true)));
            }
            RequestKind::Free => match known.get_mut(&request.block) {
                None => unknown += 1,
                Some(None) => again += 1,
                Some(state) => *state = None,
            },
        }
    }
    let count = |code: &str| got.diagnostics.get(code).map_or(0, |d| d.count);
    prop_assert_eq!(count("free-without-allocation"), unknown);
    prop_assert_eq!(count("double-free"), again);
    prop_assert_eq!(count("double-allocation"), twice);
    prop_assert_eq!(count("request-beyond-any-device"), absurd);
    prop_assert_eq!(got.fits(), absurd == 0);
    let live: u64 = got.live_at_peak.iter().map(|b| b.size.get()).sum();
    prop_assert_eq!(live, got.peak.allocated.get());
    Ok(())
}
