//! Recordings of a GPU: which device, what was there before, and damage.

use crate::support::{Detail, Recorder};
use xmem_analyzer::integrity::Condition;
use xmem_analyzer::{Profile, Residency, Role, ScriptPart, Tick, analyze};
use xmem_trace::{DeviceKind, Trace};
use xmem_types::{BlockId, Bytes, Diagnostics, PrivatePoolId};

/// An event: address, signed bytes, `Total Allocated` and `Total Reserved` after it.
type Event = (u64, i64, i64, i64);

fn trace(events: &[Event]) -> Trace {
    let mut r = Recorder::new(Detail::Everything);
    r.op("aten::empty", &[], |r| {
        for &(address, bytes, total, reserved) in events {
            r.memory(address, bytes);
            let memory = &mut r.trace.memory;
            *memory.device.last_mut().expect("pushed") = DeviceKind::Cuda;
            *memory.device_index.last_mut().expect("pushed") = 0;
            *memory.total_allocated.last_mut().expect("pushed") = total;
            *memory.total_reserved.last_mut().expect("pushed") = reserved;
        }
    });
    r.trace
}

fn analyzed(events: &[Event]) -> (Profile, Diagnostics) {
    analyze(trace(events))
}

fn lives(profile: &Profile) -> Vec<(u64, u32, Option<u32>)> {
    profile.blocks.iter().map(|b| (b.size.get(), b.alloc.0, b.free.map(|f| f.0))).collect()
}

#[test]
fn memory_of_before_the_recording_counts_from_its_start() {
    // (events, blocks, blocks of before, whether one of them stands for a rest)
    type Case = (&'static [Event], &'static [(u64, u32, Option<u32>)], usize, Option<BlockId>);
    let cases: [Case; 4] = [
        (&[(1, 512, 512, 2 << 20), (1, -512, 0, 2 << 20)], &[(512, 0, Some(1))], 0, None),
        // A free without an allocation is of a block that was there.
        (
            &[(1, -512, 0, 2 << 20), (2, 1024, 1024, 2 << 20)],
            &[(512, 0, Some(1)), (1024, 2, None)],
            1,
            None,
        ),
        // The first total is 4096 before the first event.
        (&[(1, 512, 4608, 8 << 20)], &[(4096, 0, None), (512, 1, None)], 1, Some(BlockId(0))),
        (
            &[(1, 512, 4608, 8 << 20), (2, -1024, 3584, 8 << 20)],
            &[(3072, 0, None), (1024, 1, Some(3)), (512, 2, None)],
            2,
            Some(BlockId(0)),
        ),
    ];
    for (events, blocks, earlier, remainder) in cases {
        let (profile, notes) = analyzed(events);
        assert_eq!(lives(&profile), blocks, "{events:?}");
        let gpu = profile.gpu.as_ref().expect("of a GPU");
        assert_eq!((gpu.earlier, gpu.remainder), (earlier, remainder), "{events:?}");
        assert_eq!(profile.integrity.condition(), Condition::Intact, "{events:?} {notes:?}");
        assert!(profile.blocks.iter().all(|block| block.residency == Residency::Device));
        assert!(profile.blocks[..earlier].iter().all(|block| block.role == Role::Unknown));
        assert_eq!(notes.get("allocated-before").is_some(), earlier > 0, "{events:?}");
    }
}

#[test]
fn peaks_and_releases_of_cached_memory_are_those_of_the_totals() {
    let events = [
        (1, 512, 512, 2 << 20),
        (2, 1024, 1536, 4 << 20),
        (2, -1024, 512, 4 << 20),
        // Cached memory was released before this one.
        (3, 512, 1024, 2 << 20),
    ];
    let gpu = analyzed(&events).0.gpu.expect("of a GPU");
    assert_eq!(gpu.peak_allocated, Some(Bytes(1536)));
    assert_eq!(gpu.peak_reserved, Some(Bytes(4 << 20)));
    assert_eq!(gpu.cache_releases, [Tick(3)]);
}

#[test]
fn events_that_are_missing_or_changed_are_damage() {
    let intact = [
        (1, 512, 512, 2 << 20),
        (2, 1024, 1536, 2 << 20),
        (3, 512, 2048, 2 << 20),
        (2, -1024, 1024, 2 << 20),
        (1, -512, 512, 2 << 20),
    ];
    assert_eq!(analyzed(&intact).0.integrity.condition(), Condition::Intact);
    // The first and the last may be missing: then the recording is shorter.
    for missing in 1..intact.len() - 1 {
        let mut events = intact.to_vec();
        events.remove(missing);
        let (profile, notes) = analyzed(&events);
        assert_eq!(profile.integrity.condition(), Condition::Damaged, "{missing}");
        assert!(notes.get("running-total-differs").is_some(), "{missing}");
    }
    for changed in 0..intact.len() {
        let mut events = intact.to_vec();
        events[changed].1 += 512;
        let (profile, _) = analyzed(&events);
        assert_eq!(profile.integrity.condition(), Condition::Damaged, "{changed}");
    }
}

#[test]
fn the_memory_of_the_host_beside_a_gpu_is_left_out() {
    let mut trace = trace(&[(1, 512, 512, 2 << 20), (1, -512, 0, 2 << 20)]);
    trace.memory.device[1] = DeviceKind::Cpu;
    let (profile, notes) = analyze(trace);
    assert_eq!(profile.device, DeviceKind::Cuda);
    assert_eq!(lives(&profile), [(512, 0, None)]);
    assert!(notes.withheld_reasons().is_empty(), "{notes:?}");
}

/// The events of a recording with a history, and the trace of both.
fn with_history(events: &[Event], history: &str) -> (Profile, Diagnostics) {
    let mut trace = trace(events);
    let notes = format!(r#"{{"schema":"xmem.recording.1","allocator_history":{history}}}"#);
    trace.header.extra.push(("xmem_recording".to_owned(), notes));
    analyze(trace)
}

/// Two streams, a private pool that is deleted, a free that waits for the other stream, `empty_cache`.
/// Addresses count 512 bytes: 8, 16, 8 again, 32.
const EVENTS: [Event; 6] = [
    (0x1000, 512, 512, 2 << 20),
    (0x2000, 1024, 1536, 4 << 20),
    (0x1000, -512, 1024, 4 << 20),
    (0x2000, -1024, 0, 4 << 20),
    (0x1000, 512, 512, 2 << 20),
    (0x4000, 1024, 1536, 4 << 20),
];
const HISTORY: &str = r#"{"complete":true,"devices":[{"index":0,
    "actions":"sasafFrcasa","addresses":[8,0,8,0,-8,8,0,-8,0,24,0],
    "sizes":[2048,300,2048,1000,2048,512,2048,700],
    "streams":[["0x0",1],["0x5f00",1],["0x0",2]],"pools":[[4,16,2048,[0,1]]]}]}"#;

#[test]
fn a_history_gives_streams_pools_sizes_and_completions() {
    let (profile, notes) = with_history(&EVENTS, HISTORY);
    assert!(notes.get("allocator-history-unused").is_none(), "{notes:?}");
    let blocks: Vec<_> = profile
        .blocks
        .iter()
        .map(|b| (b.size.get(), b.stream.0, b.pool.map(|p| p.0), b.completed.map(|t| t.0)))
        .collect();
    assert_eq!(
        blocks,
        [
            (300, 0, None, Some(4)),
            (1000, 1, Some(0), None),
            (512, 0, None, None),
            (700, 0, None, None)
        ]
    );
    let gpu = profile.gpu.as_ref().expect("of a GPU");
    assert!(gpu.has_history);
    assert_eq!(gpu.pool_releases, [(Tick(4), PrivatePoolId(0))]);
    assert_eq!(gpu.cache_releases, []);
}

#[test]
fn a_history_that_does_not_fit_the_events_is_not_used() {
    let rows = [
        ("complete\":true", "complete\":false"),
        // Another address, a missing action, a size beyond the block, an unknown action, another device.
        ("[8,0,8,0", "[9,0,8,0"),
        ("sasafFrcasa", "sasafFrcas"),
        ("2048,300,", "2048,600,"),
        ("sasafFrcasa", "sasafFrczsa"),
        ("\"index\":0", "\"index\":1"),
        ("[\"0x5f00\",1]", "[\"0x5f00\",2]"),
        ("[\"0x5f00\",1]", "[\"here\",1]"),
        ("[[4,16,", "[[40,16,"),
        ("-8,8,0,-8", "-8,9000000000000000000,0,-8"),
        // A free where the trace has none.
        ("sasafFrcasa", "sasafFrcfsa"),
    ];
    for (from, to) in rows {
        let history = HISTORY.replacen(from, to, 1);
        assert_ne!(history, HISTORY, "{from}");
        let (profile, notes) = with_history(&EVENTS, &history);
        let codes = ["allocator-history-unused", "recording-field"];
        assert!(codes.iter().any(|code| notes.get(code).is_some()), "{from} {to}");
        assert!(profile.blocks.iter().all(|block| block.stream.0 == 0), "{from} {to}");
        assert_eq!(profile.blocks[0].size, Bytes(512), "{from} {to}");
    }
}

/// The free of the second block is that of a thread without a profiler.
#[test]
fn a_free_that_only_the_history_has_ends_its_block() {
    let mut events = EVENTS.to_vec();
    events.remove(3);
    let (profile, notes) = with_history(&events, HISTORY);
    for code in ["allocator-history-unused", "running-total-differs"] {
        assert!(notes.get(code).is_none(), "{code}: {notes:?}");
    }
    assert!(notes.get("unseen-frees").is_some(), "{notes:?}");
    let (whole, _) = with_history(&EVENTS, HISTORY);
    let lifetimes = |profile: &Profile| -> Vec<_> {
        profile.blocks.iter().map(|b| (b.address, b.size, b.alloc, b.free, b.completed)).collect()
    };
    assert_eq!(lifetimes(&profile), lifetimes(&whole));
    assert!(profile.gpu.as_ref().expect("of a GPU").has_history);
}

/// Events at the same time keep their order, also around one that is added.
#[test]
fn a_free_that_only_the_history_has_comes_before_what_reuses_its_address() {
    let events =
        [(0x1000, 512, 512, 2 << 20), (0x1000, 512, 512, 2 << 20), (0x1000, -512, 0, 2 << 20)];
    let history = r#"{"complete":true,"devices":[{"index":0,"actions":"safaf","addresses":[8,0,0,0,0],
        "sizes":[2048,300,500],"streams":[["0x0",2]],"pools":[]}]}"#;
    let mut trace = trace(&events);
    let notes = format!(r#"{{"schema":"xmem.recording.1","allocator_history":{history}}}"#);
    trace.header.extra.push(("xmem_recording".to_owned(), notes));
    let first = trace.memory.time[0];
    trace.memory.time.fill(first);
    let (profile, notes) = analyze(trace);
    assert!(notes.get("allocator-history-unused").is_none(), "{notes:?}");
    let blocks: Vec<_> = profile.blocks.iter().map(|b| (b.size.get(), b.alloc, b.free)).collect();
    assert_eq!(blocks, [(300, Tick(0), Some(Tick(1))), (500, Tick(2), Some(Tick(3)))]);
}

/// What follows the recorded events: the third block is freed, one is made on the second stream, one in a new private pool,
/// which waits for another stream; `empty_cache`; a block at an address that is used again.
const REST: &str = r#"{"schema":"xmem.rest.1","ended":{"reason":"end"},"seconds":1.5,"steps":9,"reduced":4,"settled":2,
    "peaks":{"allocated":4096,"reserved":8388608},"outside":0,"places":["train.py(7): evaluate"],
    "devices":[{"index":0,"actions":"FaafrcaF","addresses":[8,8,84,0,0,0,-92,0],"sizes":[900,1024,2048,400],
    "streams":[["0x5f00",1],["0x6000",1],["0x0",1]],"pools":[[2,100,8,[0,2]]],"places":[[1,1],[0,2]],
    "parts":[["training",0,0],["evaluation",5,1]]}]}"#;

fn with_rest(rest: &str) -> (Profile, Diagnostics) {
    let mut trace = trace(&EVENTS);
    let notes = format!(r#"{{"schema":"xmem.recording.1","allocator_history":{HISTORY}}}"#);
    trace.header.extra.push(("xmem_recording".to_owned(), notes));
    trace.header.extra.push(("xmem_rest".to_owned(), rest.to_owned()));
    analyze(trace)
}

#[test]
fn the_rest_of_a_script_follows_the_recorded_blocks() {
    let (profile, notes) = with_rest(REST);
    for code in ["rest-unused", "recording-rest"] {
        assert!(notes.get(code).is_none(), "{notes:?}");
    }
    let blocks: Vec<_> = profile
        .blocks
        .iter()
        .skip(2)
        .map(|b| {
            let (alloc, free, done) = (b.alloc.0, b.free.map(|t| t.0), b.completed.map(|t| t.0));
            (b.size.get(), b.stream.0, b.pool.map(|p| p.0), alloc, free, done)
        })
        .collect();
    assert_eq!(
        blocks,
        [
            (512, 0, None, 4, Some(6), None),
            (700, 0, None, 5, None, None),
            (900, 1, None, 7, None, None),
            (1024, 2, Some(1), 8, Some(9), Some(10)),
            (400, 0, None, 10, Some(11), None),
        ]
    );
    let gpu = profile.gpu.as_ref().expect("of a GPU");
    assert_eq!(gpu.pool_releases, [(Tick(4), PrivatePoolId(0)), (Tick(10), PrivatePoolId(1))]);
    assert_eq!((gpu.peak_allocated, gpu.peak_reserved), (Some(Bytes(4096)), Some(Bytes(8 << 20))));
    let rest = profile.rest.expect("a rest");
    assert_eq!(rest.tick, Tick(6));
    let last = profile.blocks.last().expect("a block");
    assert_eq!(profile.part_in_rest(last.alloc_time), Some(ScriptPart::Evaluation));
    assert_eq!(profile.part_in_rest(profile.blocks[3].alloc_time), None);
    assert_eq!(profile.text(profile.blocks[4].line), "train.py(7): evaluate");
}

#[test]
fn a_rest_that_contradicts_the_recorded_blocks_is_not_used() {
    let (before, _) = with_history(&EVENTS, HISTORY);
    for (from, to) in [
        // Another address is freed; one is allocated twice; columns of other lengths; an unknown action and part.
        ("[8,8,84,", "[9,8,84,"),
        ("[8,8,84,", "[8,0,24,"),
        ("FaafrcaF", "FaafrcaFF"),
        ("FaafrcaF", "FaafrcaX"),
        ("evaluation", "lunch"),
        ("[\"evaluation\",5,1]", "[\"evaluation\",5,100]"),
        ("[\"evaluation\",5,1]", "[\"evaluation\",-5,1]"),
        ("rest.1", "rest.2"),
        ("8388608", "-1"),
    ] {
        let rest = REST.replacen(from, to, 1);
        assert_ne!(rest, REST, "{from}");
        let (profile, notes) = with_rest(&rest);
        let codes = ["rest-unused", "recording-rest"];
        assert!(codes.iter().any(|code| notes.get(code).is_some()), "{from} {to}");
        assert_eq!(profile.blocks.len(), before.blocks.len(), "{from} {to}");
        assert_eq!(profile.blocks[2].free, None, "{from} {to}");
        assert!(profile.rest.is_none(), "{from} {to}");
        assert_eq!(profile.integrity.condition(), Condition::Damaged, "{from} {to}");
        let (gpu, known) = (profile.gpu.as_ref(), before.gpu.as_ref());
        assert_eq!(gpu.map(|gpu| gpu.peak_reserved), known.map(|gpu| gpu.peak_reserved));
    }
}
