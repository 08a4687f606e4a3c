//! Random programs, options and devices.

use crate::side_by_side::{PoolKeyword, Step};
use proptest::prelude::*;
use xmem_simulator::{
    AddressOrder, AllocatorConfig, Completion, DeviceConfig, OnExcess, PowerOfTwoDivisions, Reserve,
};
use xmem_types::{Bytes, MIB, TorchVersion};

pub(crate) fn sizes() -> impl Strategy<Value = u64> {
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

/// Requests, frees and little else, on few streams.
pub(crate) fn requests() -> impl Strategy<Value = Vec<Step>> {
    let streams = prop_oneof![5 => Just(0u32), 1 => 1..4u32];
    let step = prop_oneof![
        12 => (sizes(), streams).prop_map(|(size, stream)| Step::Alloc { size, stream }),
        7 => any::<u32>().prop_map(Step::Free),
        3 => Just(Step::FreeNewest),
        1 => Just(Step::EmptyCache),
    ];
    prop::collection::vec(step, 1..160)
}

/// Everything that a program can do.
pub(crate) fn everything() -> impl Strategy<Value = Vec<Step>> {
    let stream = || prop_oneof![2 => Just(0u32), 3 => 0..3u32];
    let keywords = prop::sample::select(vec![
        PoolKeyword::None,
        PoolKeyword::None,
        PoolKeyword::NoSplit,
        PoolKeyword::UseOnOom,
        PoolKeyword::Both,
    ]);
    // Shares of a limit, with those that differ between releases.
    let fractions = prop_oneof![1 => Just(1.0), 4 => 0.05..1.0f64];
    let step = prop_oneof![
        24 => (sizes(), stream()).prop_map(|(size, stream)| Step::Alloc { size, stream }),
        14 => any::<u32>().prop_map(Step::Free),
        6 => Just(Step::FreeNewest),
        6 => (any::<u32>(), stream())
            .prop_map(|(block, stream)| Step::RecordStream { block, stream }),
        1 => Just(Step::Synchronize),
        2 => Just(Step::EmptyCache),
        1 => fractions.prop_map(Step::Fraction),
        1 => Just(Step::ResetPeaks),
        1 => (0..400 * MIB).prop_map(Step::Capacity),
        3 => (0..6u32, keywords).prop_map(|(pool, keyword)| Step::EnterPool { pool, keyword }),
        2 => (0..6u32, stream()).prop_map(|(pool, stream)| Step::BeginCapture { pool, stream }),
        3 => Just(Step::LeaveNewest),
        1 => any::<u32>().prop_map(Step::Leave),
        2 => any::<u32>().prop_map(Step::Release),
    ];
    prop::collection::vec(step, 1..200)
}

pub(crate) fn orders() -> impl Strategy<Value = AddressOrder> {
    prop::sample::select(vec![
        AddressOrder::Driver,
        AddressOrder::Ascending,
        AddressOrder::Descending,
    ])
}

pub(crate) fn devices() -> impl Strategy<Value = DeviceConfig> {
    let odd = prop_oneof![3 => Just(0), 1 => 1..MIB];
    let capacity = prop_oneof![
        1 => Just(None),
        4 => (2..400u64, odd).prop_map(|(mib, odd)| Some(mib * MIB + odd)),
    ];
    let completions = prop_oneof![Just(Completion::Immediate), Just(Completion::AtSynchronization)];
    // No less than the capacity: what the device says it has is never less than what it has.
    let more = prop_oneof![2 => Just(None), 1 => (0..200 * MIB).prop_map(Some)];
    (capacity, 0..9u64, more, orders(), completions).prop_map(
        |(capacity, taken, more, address_order, completion)| DeviceConfig {
            capacity: capacity.map(Bytes),
            taken: Bytes::mib(taken),
            reported_total: more.map(|more| Bytes(capacity.unwrap_or(400 * MIB) + more)),
            address_total: None,
            address_order,
            completion,
        },
    )
}

pub(crate) fn configs() -> impl Strategy<Value = AllocatorConfig> {
    let releases =
        prop::sample::select(vec![(1, 13), (2, 9), (2, 10), (2, 11), (2, 12), (2, 13), (2, 15)]);
    // A page, a segment for middle sizes, and the least that may be kept whole.
    let large = prop_oneof![3 => Just(20u64), 1 => 6..30u64].prop_map(|n| 2 * n.max(10));
    let split = prop_oneof![2 => Just(None), 1 => (0..50u64).prop_map(Some)];
    let divisions = prop_oneof![
        3 => Just([0u32; 16]),
        1 => prop::sample::select(vec![1, 2, 4, 8, 16]).prop_map(|n| [n; 16]),
        1 => prop::array::uniform16(prop::sample::select(vec![0, 1, 2, 4, 8, 64])),
    ];
    let reserve = prop_oneof![
        4 => Just(None),
        1 => (0.1..2.0f64).prop_map(|part| Some(Reserve::PartOfTotal(part))),
        1 => (1..300u64).prop_map(|mib| Some(Reserve::Size(Bytes::mib(mib)))),
    ];
    let bypass = prop::option::weighted(0.1, (0..64u64).prop_map(Bytes::mib));
    (
        (releases, large, split, 0..50u64, divisions, bypass),
        (any::<bool>(), reserve, prop::option::weighted(0.4, 0.05..0.99f64)),
        (prop::option::weighted(0.3, 0.05..=1.0f64), prop::bool::weighted(0.1)),
    )
        .prop_map(
            |(
                ((major, minor), large, split, slack, divisions, roundup_bypass_threshold),
                (expandable_segments, expandable_reserve, garbage_collection_threshold),
                (memory_fraction, refuses),
            )| AllocatorConfig {
                release: TorchVersion::new(major, minor),
                large_buffer: Bytes::mib(large),
                max_split_size: split.map(|more| Bytes::mib(large + more)),
                max_non_split_rounding: Bytes::mib(large + slack),
                roundup_power2_divisions: PowerOfTwoDivisions(divisions),
                roundup_bypass_threshold,
                expandable_segments,
                expandable_reserve,
                garbage_collection_threshold,
                memory_fraction,
                on_excess: if refuses { OnExcess::Refuse } else { OnExcess::GiveBack },
                ..AllocatorConfig::default()
            },
        )
}

/// Options for jobs without a memory fraction: segments come in one piece, and are never refused.
pub(crate) fn whole_segments() -> impl Strategy<Value = AllocatorConfig> {
    configs().prop_map(|config| AllocatorConfig {
        expandable_segments: false,
        expandable_reserve: None,
        memory_fraction: None,
        on_excess: OnExcess::GiveBack,
        ..config
    })
}
