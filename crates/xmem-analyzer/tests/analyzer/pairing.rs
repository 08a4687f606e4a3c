//! Allocations and frees into blocks: conservation, and every oddity counted.

use crate::support::{Detail, Recorder};
use proptest::prelude::*;
use std::collections::BTreeMap;
use xmem_analyzer::{Profile, analyze, analyze_device};
use xmem_trace::DeviceKind;
use xmem_types::{Addr, Diagnostics, Nanos, Severity};

/// Events as (address, signed bytes).
fn paired(events: &[(u64, i64)]) -> (Profile, Diagnostics) {
    let mut r = Recorder::new(Detail::Everything);
    for &(address, bytes) in events {
        r.memory(address, bytes);
    }
    analyze(r.trace)
}

fn lives(profile: &Profile) -> Vec<(u64, u32, Option<u32>)> {
    profile.blocks.iter().map(|b| (b.size.get(), b.alloc.0, b.free.map(|f| f.0))).collect()
}

#[test]
fn every_oddity_is_handled_and_counted() {
    type Case = (&'static str, &'static [(u64, i64)], &'static [(u64, u32, Option<u32>)]);
    let cases: [Case; 7] = [
        ("", &[(1, 8), (1, -8), (1, 16), (1, -16)], &[(8, 0, Some(1)), (16, 2, Some(3))]),
        ("never-freed", &[(1, 8)], &[(8, 0, None)]),
        ("free-without-allocation", &[(1, -8), (2, 8), (2, -8)], &[(8, 1, Some(2))]),
        ("zero-byte-event", &[(1, 0), (1, 8), (1, -8)], &[(8, 1, Some(2))]),
        (
            "allocation-at-live-address",
            &[(1, 8), (1, 16), (1, -16)],
            &[(8, 0, Some(1)), (16, 1, Some(2))],
        ),
        ("free-size-differs", &[(1, 8), (1, -4)], &[(8, 0, Some(1))]),
        // Without addresses a free ends the latest allocation of its size.
        (
            "no-addresses",
            &[(0, 8), (0, 16), (0, 8), (0, -8), (0, -16), (0, -8)],
            &[(8, 0, Some(5)), (16, 1, Some(4)), (8, 2, Some(3))],
        ),
    ];
    for (code, events, expected) in cases {
        let (profile, notes) = paired(events);
        assert_eq!(lives(&profile), expected, "{code}");
        if !code.is_empty() {
            assert_eq!(notes.get(code).map(|d| d.count), Some(1), "{code}: {notes:?}");
        }
    }
}

#[test]
fn mapped_files_are_not_part_of_the_running_total() {
    let mut r = Recorder::new(Detail::Everything);
    r.memory(1, 8);
    // A file of weights: mapped after the first allocation, and unmapped before the last free.
    r.memory(2, 1 << 30);
    r.memory(3, 8);
    r.memory(2, -(1 << 30));
    r.memory(1, -8);
    r.trace.memory.total_allocated = vec![8, 0, 16, 0, 8];
    let (profile, notes) = analyze(r.trace);
    assert!(notes.get("running-total-differs").is_none(), "{notes:?}");
    assert_eq!(lives(&profile), [(8, 0, Some(4)), (1 << 30, 1, Some(3)), (8, 2, None)]);
}

#[test]
fn a_gap_in_the_running_total_is_reported() {
    let mut r = Recorder::new(Detail::Everything);
    r.memory(1, 8);
    r.memory(2, 8);
    r.trace.memory.total_allocated[1] = 100;
    let (_, notes) = analyze(r.trace);
    assert_eq!(notes.get("running-total-differs").map(|d| d.count), Some(1));
}

#[test]
fn the_running_total_of_a_second_profiler_begins_where_metadata_say() {
    let with = |before: Option<&str>| {
        let mut r = Recorder::new(Detail::Everything);
        r.memory(1, 8);
        r.memory(2, 8);
        r.trace.memory.total_allocated = vec![108, 116];
        let before = before.map(|bytes| ("xmem_total_before".to_owned(), bytes.to_owned()));
        r.trace.header.extra.extend(before);
        analyze(r.trace).1.get("running-total-differs").map(|note| note.count)
    };
    assert_eq!(with(Some("100")), None);
    assert_eq!(with(Some("92")), Some(1));
    assert_eq!(with(None), Some(1));
}

#[test]
fn devices_are_kept_apart() {
    let mut r = Recorder::new(Detail::Everything);
    for (address, bytes, device, index) in [
        (1, 8, DeviceKind::Cpu, -1),
        (1, 512, DeviceKind::Cuda, 0),
        (1, 1024, DeviceKind::Cuda, 1),
        (1, -512, DeviceKind::Cuda, 0),
    ] {
        r.memory(address, bytes);
        *r.trace.memory.device.last_mut().expect("pushed") = device;
        *r.trace.memory.device_index.last_mut().expect("pushed") = index;
    }
    let (host, notes) = analyze_device(r.trace.clone(), DeviceKind::Cpu);
    assert_eq!(lives(&host), [(8, 0, None)]);
    assert_eq!(notes.get("gpu-trace").map(|d| d.count), Some(3));
    // Of several GPUs, the one with most memory.
    let (gpu, notes) = analyze(r.trace);
    assert_eq!(gpu.gpu.as_ref().map(|gpu| (gpu.index, gpu.devices)), Some((1, 2)));
    assert!(notes.get("several-gpus").is_some() && notes.get("gpu-trace").is_none());
    assert!(lives(&gpu).contains(&(1024, 1, None)));
}

#[test]
fn a_trace_without_memory_or_operators_is_serious_and_no_panic() {
    for code in ["no-memory-events", "no-operators"] {
        let (profile, notes) = analyze(xmem_trace::Trace::default());
        assert_eq!(notes.get(code).map(|d| d.severity), Some(Severity::Serious));
        assert!(profile.blocks.is_empty() && profile.iterations.is_empty());
    }
}

/// Plausible event lists: few addresses, so that they are reused, freed twice and left open.
fn events() -> impl Strategy<Value = Vec<(u64, i64, i64)>> {
    prop::collection::vec((0_u64..6, -40_i64..60, 0_i64..2), 0..80)
}

proptest! {
    #[test]
    fn live_bytes_equal_the_running_total(list in events()) {
        // Only frees of live addresses, with their size: what a sound reporter writes.
        let mut r = Recorder::new(Detail::Everything);
        let mut live: BTreeMap<u64, i64> = BTreeMap::new();
        for (address, bytes, _) in list {
            if let Some(size) = live.remove(&address) {
                r.memory(address + 1, -size);
            } else if bytes > 0 {
                live.insert(address, bytes);
                r.memory(address + 1, bytes);
            }
        }
        let memory = r.trace.memory.clone();
        let (profile, notes) = analyze(r.trace);
        for code in ["free-without-allocation", "allocation-at-live-address", "running-total-differs"] {
            prop_assert!(notes.get(code).is_none(), "{}", code);
        }
        for (tick, &total) in memory.total_allocated.iter().enumerate() {
            let tick = tick as u32;
            let alive: u64 = profile
                .blocks
                .iter()
                .filter(|b| b.alloc.0 <= tick && b.free.is_none_or(|f| f.0 > tick))
                .map(|b| b.size.get())
                .sum();
            prop_assert_eq!(alive as i64, total);
        }
    }

    #[test]
    fn ties_in_time_keep_the_order_of_the_file(list in events()) {
        // The same events, once with distinct times, once with ties and in two interleaved runs.
        let build = |tied: bool| {
            let mut r = Recorder::new(Detail::Everything);
            let mut time = 0;
            for &(address, bytes, gap) in &list {
                r.memory(address, bytes);
                time += if tied { gap } else { 1 };
                *r.trace.memory.time.last_mut().expect("pushed") = Nanos(time);
            }
            analyze(r.trace).0
        };
        prop_assert_eq!(lives(&build(false)), lives(&build(true)));
    }

    #[test]
    fn rows_out_of_time_order_make_no_difference(list in events(), seed in any::<u64>()) {
        let mut r = Recorder::new(Detail::Everything);
        for &(address, bytes, _) in &list {
            r.memory(address + 1, bytes);
        }
        let mut order: Vec<usize> = (0..list.len()).collect();
        order.sort_by_key(|&i| (i as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut shuffled = r.trace.clone();
        let (from, to) = (&r.trace.memory, &mut shuffled.memory);
        to.time = order.iter().map(|&i| from.time[i]).collect();
        to.address = order.iter().map(|&i| Addr(from.address[i].0)).collect();
        to.bytes = order.iter().map(|&i| from.bytes[i]).collect();
        to.total_allocated = order.iter().map(|&i| from.total_allocated[i]).collect();
        prop_assert_eq!(lives(&analyze(r.trace).0), lives(&analyze(shuffled).0));
    }
}
