//! Random jobs: the simulator against a slow model of the same allocator, and laws that hold for
//! every job.

mod model;

use model::{Block, Model};
use proptest::prelude::*;
use std::collections::BTreeMap;
use xmem_simulator::{
    AddressOrder, AllocatorConfig, BlockHandle, BlockUse, CachingAllocator, Device, DeviceConfig,
    FrameworkAllocator, PowerOfTwoDivisions, RequestIndex, min_capacity, replay, runs_in,
};
use xmem_types::{BlockId, Bytes, MIB, Request, RequestKind, StreamId};

/// One step of a job, before block numbers are given.
#[derive(Clone, Debug)]
enum Step {
    Alloc {
        size: u64,
        stream: u32,
    },
    /// Frees one of the live blocks.
    Free(prop::sample::Index),
    Release,
}

fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0),
        4 => prop::sample::select(vec![1, 511, 512, 513, MIB - 1, MIB, MIB + 1, 10 * MIB - 512,
            10 * MIB - 511, 10 * MIB, 20 * MIB]),
        6 => 1..=4096u64,
        6 => 1..=2 * MIB,
        6 => MIB..=24 * MIB,
        3 => 20 * MIB..=90 * MIB,
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (sizes(), prop_oneof![5 => Just(0u32), 1 => 1..4u32])
            .prop_map(|(size, stream)| Step::Alloc { size, stream }),
        10 => any::<prop::sample::Index>().prop_map(Step::Free),
        1 => Just(Step::Release),
    ];
    prop::collection::vec(step, 1..160)
}

fn orders() -> impl Strategy<Value = AddressOrder> {
    prop::sample::select(vec![
        AddressOrder::Driver,
        AddressOrder::Ascending,
        AddressOrder::Descending,
    ])
}

fn devices() -> impl Strategy<Value = DeviceConfig> {
    (prop_oneof![1 => Just(None), 3 => (2..400u64).prop_map(Some)], 0..9u64, orders()).prop_map(
        |(mib, taken, address_order)| DeviceConfig {
            capacity: mib.map(Bytes::mib),
            taken: Bytes::mib(taken),
            address_order,
            ..DeviceConfig::default()
        },
    )
}

fn configs() -> impl Strategy<Value = AllocatorConfig> {
    let split = prop_oneof![3 => Just(None), 1 => (21..70u64).prop_map(|n| Some(Bytes::mib(n)))];
    let divisions = prop_oneof![3 => Just(0u32), 1 => prop::sample::select(vec![1, 2, 4, 8])];
    (split, 21..70u64, divisions).prop_map(|(max_split_size, slack, divisions)| AllocatorConfig {
        max_split_size,
        max_non_split_rounding: Bytes::mib(slack),
        roundup_power2_divisions: PowerOfTwoDivisions([divisions; 16]),
        ..AllocatorConfig::default()
    })
}

/// Requests without releases: what a schedule consists of.
fn requests(steps: &[Step]) -> Vec<Request> {
    let mut live = Vec::new();
    let mut next = 0;
    let mut list = Vec::new();
    for step in steps {
        match step {
            Step::Alloc { size, stream } => {
                let block = BlockId(next);
                let kind = RequestKind::Alloc { size: Bytes(*size), stream: StreamId(*stream) };
                list.push(Request { block, kind });
                live.push(block);
                next += 1;
            }
            Step::Free(index) if !live.is_empty() => {
                let block = live.swap_remove(index.index(live.len()));
                list.push(Request { block, kind: RequestKind::Free });
            }
            Step::Free(_) | Step::Release => {}
        }
    }
    list
}

/// Compares everything that both can tell.
fn same(simulator: &CachingAllocator, model: &Model) -> Result<(), TestCaseError> {
    let stats = simulator.stats();
    prop_assert_eq!(stats.allocated_bytes.all.current.get(), model.allocated());
    prop_assert_eq!(stats.reserved_bytes.all.current.get(), model.reserved());
    prop_assert_eq!(stats.requested_bytes.all.current.get(), model.requested());
    prop_assert_eq!(stats.allocation.all.current, model.allocations());
    prop_assert_eq!(stats.segment.all.current, model.segments.len() as u64);
    let split = (stats.inactive_split.all.current, stats.inactive_split_bytes.all.current.get());
    prop_assert_eq!(split, model.inactive_split());
    prop_assert_eq!(stats.num_alloc_retries, model.retries);
    prop_assert_eq!(stats.num_ooms, model.ooms);
    prop_assert_eq!(simulator.largest_free().get(), model.largest_free());
    prop_assert_eq!(simulator.device().used().get(), model.reserved());

    let got: Vec<_> = simulator
        .state()
        .iter()
        .flat_map(|segment| &segment.blocks)
        .map(|b| {
            let held = b.used == BlockUse::Allocated;
            (b.addr.0, b.size.get(), held.then_some(b.requested.get()))
        })
        .collect();
    let mut want = Vec::new();
    for segment in model.by_address() {
        let mut addr = segment.addr;
        for Block { size, owner } in segment.blocks {
            want.push((addr, size, owner.map(|(_, requested)| requested)));
            addr += size;
        }
    }
    prop_assert_eq!(got, want);
    Ok(())
}

/// At least 1 000 cases; `PROPTEST_CASES` asks for more.
fn thorough() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.max(1000), ..usual }
}

proptest! {
    #![proptest_config(thorough())]

    #[test]
    fn every_step_matches_the_model(steps in steps(), config in configs(), device in devices()) {
        let mut simulator = CachingAllocator::new(&config, Device::new(&device), ());
        let mut model = Model::new(&config, &device);
        let mut live: Vec<(u32, Option<BlockHandle>)> = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            let at = RequestIndex(i);
            match step {
                Step::Alloc { size, stream } => {
                    let id = i as u32;
                    let got = simulator.allocate(at, Bytes(*size), StreamId(*stream));
                    let want = model.alloc(id, *size, *stream);
                    match got {
                        Ok(handle) => {
                            let addr = handle.map(|h| simulator.block(h).addr.0);
                            prop_assert_eq!(Ok(addr), want);
                            live.push((id, handle));
                        }
                        Err(_) => prop_assert_eq!(Err(()), want),
                    }
                }
                Step::Free(index) if !live.is_empty() => {
                    let (id, handle) = live.swap_remove(index.index(live.len()));
                    if let Some(handle) = handle {
                        simulator.free(at, handle);
                    }
                    model.free(id);
                }
                Step::Free(_) => {}
                Step::Release => {
                    simulator.release_cached(at);
                    model.flush();
                }
            }
            same(&simulator, &model)?;
        }
        // Everything freed and released leaves nothing, and sums of ups and downs agree.
        for (_, handle) in live {
            if let Some(handle) = handle {
                simulator.free(RequestIndex(steps.len()), handle);
            }
        }
        simulator.release_cached(RequestIndex(steps.len()));
        let stats = simulator.stats();
        prop_assert_eq!(stats.allocated_bytes.all.current, Bytes::ZERO);
        prop_assert_eq!(stats.reserved_bytes.all.current, Bytes::ZERO);
        prop_assert_eq!(stats.inactive_split.all.current, 0);
        prop_assert_eq!(stats.inactive_split_bytes.all.freed, stats.inactive_split_bytes.all.allocated);
        prop_assert_eq!(stats.num_device_alloc, stats.num_device_free);
        prop_assert!(simulator.state().is_empty());
    }

    #[test]
    fn a_replay_tells_what_the_model_saw(
        steps in steps(), config in configs(), device in devices()
    ) {
        let requests = requests(&steps);
        let got = replay(&requests, &config, &device);
        let mut model = Model::new(&config, &device);
        let mut oom = None;
        let mut peaks = [(0, 0, 0, model.clone()), (0, 0, 0, model.clone())];
        prop_assert_eq!(got.curve.len(), requests.len());
        for ((i, request), point) in requests.iter().enumerate().zip(got.curve.iter()) {
            match request.kind {
                RequestKind::Alloc { size, stream } => {
                    if model.alloc(request.block.0, size.get(), stream.0).is_err() {
                        oom.get_or_insert((i, model.clone()));
                        model.limit = None;
                        prop_assert!(model.alloc(request.block.0, size.get(), stream.0).is_ok());
                    }
                }
                RequestKind::Free => model.free(request.block.0),
            }
            let (allocated, reserved) = (model.allocated(), model.reserved());
            prop_assert_eq!((point.allocated.get(), point.reserved.get()), (allocated, reserved));
            prop_assert!(reserved >= allocated && allocated >= model.requested());
            for (peak, value) in peaks.iter_mut().zip([allocated, reserved]) {
                if value > peak.0 {
                    *peak = (value, i, reserved, model.clone());
                }
            }
        }
        let [at_allocated, at_reserved] = peaks;
        prop_assert_eq!(got.peak.allocated.get(), at_allocated.0);
        prop_assert_eq!(got.peak.request.0, at_allocated.1);
        prop_assert_eq!(got.peak.reserved.get(), at_allocated.2);
        prop_assert_eq!(got.reserved_peak.reserved.get(), at_reserved.0);
        prop_assert_eq!(got.reserved_peak.request.0, at_reserved.1);
        prop_assert_eq!(got.stats.allocated_bytes.all.peak, got.peak.allocated);
        prop_assert_eq!(got.stats.reserved_bytes.all.peak, got.reserved_peak.reserved);

        let live: BTreeMap<_, _> = got
            .live_at_peak
            .iter()
            .map(|b| (b.block.0, (b.addr.0, b.size.get(), b.requested.get())))
            .collect();
        prop_assert_eq!(live.len() as u64, at_allocated.3.allocations());
        for (id, place) in live {
            prop_assert_eq!(Some(place), at_allocated.3.find(id));
        }
        for (fragmentation, model) in [
            (got.fragmentation, &at_allocated.3),
            (got.fragmentation_at_reserved_peak, &at_reserved.3),
        ] {
            prop_assert_eq!(fragmentation.reserved.get(), model.reserved());
            prop_assert_eq!(fragmentation.allocated.get(), model.allocated());
            prop_assert_eq!(fragmentation.largest_free.get(), model.largest_free());
            prop_assert_eq!(fragmentation.segments, model.segments.len());
            let mut flushed = model.clone();
            flushed.flush();
            prop_assert_eq!(fragmentation.releasable.get(), model.reserved() - flushed.reserved());
        }
        let segments: Vec<_> = got
            .segments_at_peak
            .iter()
            .map(|s| (s.addr.0, s.size.get(), s.free_blocks + s.blocks))
            .collect();
        let want: Vec<_> = at_allocated
            .3
            .by_address()
            .iter()
            .map(|s| (s.addr, s.size, s.blocks.len()))
            .collect();
        prop_assert_eq!(segments, want);

        match (got.oom, oom) {
            (Some(got), Some((at, model))) => {
                prop_assert_eq!(got.request.0, at);
                prop_assert_eq!(got.allocated.get(), model.allocated());
                prop_assert_eq!(got.reserved.get(), model.reserved());
                prop_assert_eq!(got.device_free.get(), model.limit.unwrap_or(0) - model.reserved());
                prop_assert_eq!(got.largest_cached.get(), model.largest_free());
                prop_assert!(got.tried > got.device_free);
                prop_assert_eq!(got.needed.get(), at_reserved.0);
            }
            (None, None) => {}
            (got, want) => prop_assert!(false, "{:?} but {:?}", got, want.map(|(at, _)| at)),
        }
        prop_assert_eq!(runs_in(&requests, &config, &device), got.fits());
        prop_assert!(got.diagnostics.is_empty());

        let roomy = replay(&requests, &config, &DeviceConfig { capacity: None, ..device });
        prop_assert_eq!(got.unlimited.allocated, roomy.peak.allocated);
        prop_assert_eq!(got.unlimited.reserved, roomy.reserved_peak.reserved);
        // The same again gives the same.
        prop_assert_eq!(format!("{got:?}"), format!("{:?}", replay(&requests, &config, &device)));
    }

    #[test]
    fn a_job_runs_in_its_smallest_capacity(steps in steps(), order in orders()) {
        let config = AllocatorConfig::default();
        let device = DeviceConfig {
            capacity: Some(Bytes::mib(1)),
            taken: Bytes::mib(7),
            address_order: order,
            ..DeviceConfig::default()
        };
        let requests = requests(&steps);
        let smallest = min_capacity(&requests, &config, &device);
        let with = |capacity: Bytes| DeviceConfig {
            capacity: Some(capacity + device.taken),
            ..device
        };
        let roomy = replay(&requests, &config, &DeviceConfig { capacity: None, ..device });
        prop_assert!(runs_in(&requests, &config, &with(smallest)));
        prop_assert!(smallest >= roomy.peak.allocated);
        prop_assert!(smallest <= roomy.reserved_peak.reserved);
        prop_assert_eq!(smallest.get() % (2 * MIB), 0);
        let steps_below = 16.min(smallest.get() / (2 * MIB));
        for below in 1..=steps_below {
            let less = Bytes(smallest.get() - below * 2 * MIB);
            prop_assert!(!runs_in(&requests, &config, &with(less)), "runs in {} too", less);
        }
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
        let got = replay(&requests, &AllocatorConfig::default(), &DeviceConfig::default());
        // What each number stands for: `None` if it was freed, else whether memory is behind it.
        let mut known: BTreeMap<BlockId, Option<bool>> = BTreeMap::new();
        let (mut unknown, mut again, mut twice, mut absurd) = (0, 0, 0, 0);
        for request in &requests {
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
    }
}
