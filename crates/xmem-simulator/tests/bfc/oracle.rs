//! Random jobs: the simulator against a slow model of the same allocator, and laws that hold for
//! every job.

use crate::model::Model;
use crate::regions;
use proptest::prelude::*;
use xmem_simulator::{
    AddressOrder, BfcAllocator, BfcConfig, BlockHandle, Device, DeviceConfig, FrameworkAllocator,
    MemoryLimit, RequestIndex, replay,
};
use xmem_types::{BlockId, Bytes, KIB, MIB, Request, RequestKind, StreamId};

#[derive(Clone, Debug)]
enum Step {
    Alloc {
        size: u64,
        stream: u32,
    },
    /// Frees one of the live chunks.
    Free(prop::sample::Index),
}

fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0),
        1 => prop::sample::select(vec![u64::MAX, 1 << 60, 1 << 45, (1 << 44) + 1]),
        4 => (0..28u32, 0..3u64).prop_map(|(bits, off)| (256u64 << bits >> 8) + off - 1),
        6 => 1..=4096u64,
        6 => 1..=MIB,
        6 => MIB..=24 * MIB,
        3 => 20 * MIB..=300 * MIB,
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (sizes(), 0..2u32).prop_map(|(size, stream)| Step::Alloc { size, stream }),
        4 => any::<prop::sample::Index>().prop_map(Step::Free),
    ];
    prop::collection::vec(step, 1..120)
}

fn devices() -> impl Strategy<Value = DeviceConfig> {
    let capacity = prop_oneof![1 => Just(None), 3 => (1..400u64).prop_map(Some), 1 => (1800..4000u64).prop_map(Some)];
    let order = prop::sample::select(vec![AddressOrder::Ascending, AddressOrder::Descending]);
    (capacity, 0..9u64, order).prop_map(|(mib, taken, address_order)| DeviceConfig {
        capacity: mib.map(Bytes::mib),
        taken: Bytes::mib(taken),
        address_order,
        ..DeviceConfig::default()
    })
}

fn configs() -> impl Strategy<Value = BfcConfig> {
    let limit = prop_oneof![
        (5..10u32).prop_map(|n| MemoryLimit::FreeLessReserve { compute_capability: n }),
        (0.0..1.5f64).prop_map(MemoryLimit::Fraction),
        (0..4 * MIB).prop_map(|n| MemoryLimit::Exactly(Bytes(n))),
        (0..500 * MIB).prop_map(|n| MemoryLimit::Exactly(Bytes(n))),
        (1..500u64).prop_map(|n| MemoryLimit::Exactly(Bytes::mib(n))),
    ];
    let fraction = prop_oneof![2 => Just(None), 1 => (0.0..0.2f64).prop_map(Some)];
    (limit, any::<[bool; 3]>(), fraction).prop_map(|(limit, [grow, collect, join], fraction)| {
        BfcConfig {
            limit,
            allow_growth: grow,
            garbage_collection: collect,
            fragmentation_fraction: fraction,
            coalesce_regions: join,
        }
    })
}

/// Compares everything that both can tell.
fn same(simulator: &BfcAllocator, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(regions(simulator), model.regions());
    let (stats, tf) = (simulator.stats(), simulator.tf_stats());
    prop_assert_eq!(tf.bytes_in_use.get(), model.in_use());
    prop_assert_eq!(tf.peak_bytes_in_use.get(), model.peak_in_use);
    prop_assert_eq!(tf.pool_bytes.get(), model.pool());
    prop_assert_eq!(tf.peak_pool_bytes.get(), model.peak_pool);
    prop_assert_eq!(tf.largest_alloc_size.get(), model.largest);
    prop_assert_eq!(simulator.next_region().get(), model.next_region);
    prop_assert_eq!(simulator.largest_free().get(), model.largest_free());
    let split = (stats.inactive_split.all.current, stats.inactive_split_bytes.all.current.get());
    prop_assert_eq!(split, model.split_free());
    prop_assert_eq!(stats.num_device_free, model.device_frees);
    Ok(())
}

/// Checks properties that hold whatever the allocator did.
fn laws(simulator: &BfcAllocator, device: &DeviceConfig) -> Result<(), TestCaseError> {
    let stats = simulator.stats();
    let mut end = 0;
    let mut in_use = 0;
    let mut pool = 0;
    for (addr, chunks) in regions(simulator) {
        prop_assert!(addr >= end, "regions overlap");
        end = addr;
        for pair in chunks.windows(2) {
            prop_assert!(pair.iter().any(|(_, asked)| asked.is_some()), "free neighbors");
        }
        for (size, asked) in chunks {
            prop_assert!(size > 0 && size % 256 == 0 && end % 256 == 0);
            prop_assert!(asked.is_none_or(|asked| asked <= size));
            in_use += if asked.is_some() { size } else { 0 };
            end += size;
        }
        pool += end - addr;
    }
    prop_assert_eq!(stats.allocated_bytes.all.current.get(), in_use);
    prop_assert_eq!(stats.reserved_bytes.all.current.get(), pool);
    prop_assert!(stats.requested_bytes.all.current.get() <= in_use);
    if let Some(limit) = simulator.tf_stats().bytes_limit {
        prop_assert!(pool <= limit.get());
    }
    if let Some(available) = device.available() {
        prop_assert!(simulator.device().used() <= available);
    }
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
        let mut simulator = BfcAllocator::new(&config, Device::new(&device), ());
        let mut model = Model::new(&config, &device);
        let mut live: Vec<(u32, Option<BlockHandle>)> = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            let at = RequestIndex(i);
            match step {
                Step::Alloc { size, stream } => {
                    let id = i as u32;
                    let got = simulator.allocate(at, Bytes(*size), StreamId(*stream));
                    let want = model.alloc(id, *size);
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
            }
            same(&simulator, &model)?;
            laws(&simulator, &device)?;
        }
        // When all is freed, each region is one free chunk.
        for handle in live.into_iter().filter_map(|(_, handle)| handle) {
            simulator.free(RequestIndex(steps.len()), handle);
        }
        prop_assert!(regions(&simulator).iter().all(|(_, c)| matches!(c[..], [(_, None)])));
        prop_assert_eq!(simulator.allocated(), Bytes::ZERO);
        prop_assert_eq!(simulator.stats().inactive_split.all.current, 0);
    }

    #[test]
    fn a_replay_goes_on_where_the_limit_ends(
        steps in steps(), config in configs(), device in devices()
    ) {
        let mut requests = Vec::new();
        let mut live = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            match step {
                Step::Alloc { size, stream } if *size < 64 * KIB * MIB => {
                    let kind = RequestKind::Alloc { size: Bytes(*size), stream: StreamId(*stream) };
                    requests.push(Request { block: BlockId(i as u32), kind });
                    live.push(BlockId(i as u32));
                }
                Step::Free(index) if !live.is_empty() => {
                    let block = live.swap_remove(index.index(live.len()));
                    requests.push(Request { block, kind: RequestKind::Free });
                }
                _ => {}
            }
        }
        let got = replay(&requests, &config, &device);
        let mut model = Model::new(&config, &device);
        let mut oom = None;
        for ((i, request), point) in requests.iter().enumerate().zip(got.curve.iter()) {
            match request.kind {
                RequestKind::Alloc { size, .. } => {
                    if model.alloc(request.block.0, size.get()).is_err() {
                        oom.get_or_insert(i);
                        model.lift();
                        prop_assert!(model.alloc(request.block.0, size.get()).is_ok());
                    }
                }
                RequestKind::Free => model.free(request.block.0),
            }
            prop_assert_eq!(point.allocated.get(), model.in_use());
            prop_assert_eq!(point.reserved.get(), model.pool());
        }
        prop_assert_eq!(got.oom.map(|oom| oom.request.0), oom);
        prop_assert_eq!(got.peak.allocated.get(), model.peak_in_use);
        prop_assert_eq!(got.reserved_peak.reserved.get(), model.peak_pool);
        prop_assert!(got.diagnostics.is_empty());
    }
}
