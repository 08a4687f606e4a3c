//! The keys of each version, and what is said about keys and values that do not fit.

use crate::support::{Py, block, dict, entry, frame, read_py, segment, snapshot};
use expect_test::{Expect, expect};
use xmem_snapshot::{
    Action, AnnotationStage, BlockState, DeviceIndex, Limits, PoolId, SegmentKind, Setting,
    SnapshotError, StackId, StreamHandle, TraceEntry, read,
};
use xmem_types::{Addr, Bytes, Location, Nanos, StreamId, Sym};

const BASE: i64 = 0x7f00_0000_0000;

#[test]
fn a_line_that_is_no_line_does_not_refuse_the_file() {
    let odd = [Py::Natural(u64::MAX), Py::Int(-1), Py::Natural(1 << 32), Py::None];
    let frames = odd.map(|line| frame("step", 7).with("line", line)).to_vec();
    let file = snapshot(vec![], vec![entry("alloc", BASE, 1).with("frames", Py::List(frames))]);
    let (snapshot, _) = read_py(&file).unwrap();
    let stack = snapshot.frames.stack(snapshot.trace(DeviceIndex(0))[0].stack);
    let lines: Vec<u32> = stack.iter().map(|&id| snapshot.frames.frame(id).line).collect();
    assert_eq!(lines, [0, 0, 0, 0]);
}

#[test]
fn a_snapshot_of_today_is_read_in_full() {
    let trace = vec![
        entry("segment_alloc", BASE, 2_097_152)
            .with("time_us", 1_795_238_135_683_524)
            .with("compile_context", "N/A")
            .with("user_metadata", ""),
        entry("alloc", BASE, 1000)
            .with("frames", Py::List(vec![frame("step", 7)]))
            .with("compile_context", "0/0")
            .with("user_metadata", "embedding"),
        entry("oom", 0, 4096).without("addr").with("device_free", 512),
        entry("segment_map", BASE, 20).with("stream", 0x5000),
        entry("snapshot", 0, 1000),
        entry("annotate", BASE, 0),
        entry("defragment", BASE, 1),
    ];
    let mut other = segment(BASE + 0x20_0000).without("segment_pool_id").without("segment_type");
    other = other
        .with("segment_pool_id", Py::Tuple(vec![3.into(), 1.into()]))
        .with("segment_type", "large");
    let file = snapshot(vec![segment(BASE), other], trace)
        .with(
            "allocator_settings",
            dict([
                ("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64".into()),
                ("max_split_size", (64 << 20).into()),
                ("garbage_collection_threshold", Py::Float(0.8)),
                ("expandable_segments", true.into()),
                ("pinned_num_register_threads", 1.into()),
                ("roundup_power2_divisions", dict([("1", 4.into()), ("32768", 0.into())])),
                ("novelty", Py::None),
                ("nested", Py::List(vec![])),
            ]),
        )
        .with(
            "external_annotations",
            Py::List(vec![dict([
                ("stage", "START".into()),
                ("name", "forward".into()),
                ("device", 0.into()),
                ("time_us", 5.into()),
            ])]),
        )
        .with("host_segments", Py::List(vec![]));
    let (snapshot, diagnostics) = read_py(&file).unwrap();

    let [first, second] = &snapshot.segments[..] else { panic!("two segments") };
    assert_eq!((first.address, first.total), (Addr(BASE as u64), Bytes::mib(2)));
    assert_eq!((first.kind, first.pool), (SegmentKind::Small, PoolId(0, 0)));
    assert_eq!((second.kind, second.pool), (SegmentKind::Large, PoolId(3, 1)));
    assert_eq!(first.requested, Some(Bytes(1000)));
    let [used, free] = &first.blocks[..] else { panic!("two blocks") };
    assert_eq!((used.state, used.size), (BlockState::ActiveAllocated, Bytes(1024)));
    assert_eq!((free.state, free.address), (BlockState::Inactive, Addr(BASE as u64 + 1024)));

    let trace = snapshot.trace(DeviceIndex(0));
    assert_eq!(trace[0].time, Some(Nanos(1_795_238_135_683_524_000)));
    assert_eq!((trace[0].compile_context, trace[0].stack), (Sym::EMPTY, StackId::EMPTY));
    assert_eq!(snapshot.strings.resolve(trace[1].compile_context), "0/0");
    assert_eq!(snapshot.strings.resolve(trace[1].user_metadata), "embedding");
    // The same frames as those of the blocks, by content.
    assert_eq!(trace[1].stack, used.stack);
    assert_eq!(snapshot.frames.stack_count(), 2);
    let step = snapshot.frames.frame(snapshot.frames.stack(used.stack)[0]);
    assert_eq!((snapshot.strings.resolve(step.name), step.line), ("step", 7));
    assert_eq!(trace[2].action, Action::OutOfMemory { device_free: Bytes(512) });
    assert_eq!(trace[3].stream, StreamId(1));
    assert_eq!(snapshot.streams, [StreamHandle(0), StreamHandle(0x5000)]);
    assert_eq!(
        [trace[3].action, trace[4].action, trace[5].action],
        [Action::SegmentMap, Action::Snapshot, Action::Annotate]
    );
    assert!(
        matches!(trace[6].action, Action::Other(name) if snapshot.strings.resolve(name) == "defragment")
    );

    let settings = snapshot.allocator_settings.unwrap();
    assert_eq!(settings.text.as_deref(), Some("max_split_size_mb:64"));
    assert_eq!(settings.max_split_size, Some(Bytes::mib(64)));
    assert_eq!(settings.garbage_collection_threshold, 0.8);
    assert!(settings.expandable_segments);
    assert_eq!(settings.roundup_power2_divisions[&Bytes::mib(1)], 4);
    assert_eq!(settings.roundup_power2_divisions[&Bytes::gib(32)], 0);
    assert_eq!(settings.other["pinned_num_register_threads"], Setting::Int(1));
    assert_eq!(settings.other["novelty"], Setting::None);

    assert_eq!(snapshot.annotations[0].stage, AnnotationStage::Start);
    assert_eq!(snapshot.annotations[0].time, Some(Nanos(5000)));
    let codes: Vec<_> = diagnostics.iter().map(|d| (d.code, d.count)).collect();
    assert_eq!(codes, [("unknown-action", 1), ("unknown-setting", 1)]);
}

#[test]
fn what_older_versions_leave_out_is_no_error() {
    // 1.12 to 2.0: a list of segments, blocks with a history and without addresses.
    let history = dict([
        ("addr", BASE.into()),
        ("real_size", 900.into()),
        ("frames", Py::List(vec![frame("old", 1)])),
    ]);
    let used = dict([
        ("size", 1024.into()),
        ("state", "active_allocated".into()),
        ("history", Py::List(vec![history])),
    ]);
    let free = dict([("size", 1024.into()), ("state", "inactive".into())]);
    let file = Py::List(vec![dict([
        ("device", 1.into()),
        ("address", BASE.into()),
        ("total_size", 2048.into()),
        ("allocated_size", 1024.into()),
        ("active_size", 1024.into()),
        ("stream", 0.into()),
        ("segment_type", "small".into()),
        ("blocks", Py::List(vec![used, free])),
    ])]);
    let (snapshot, diagnostics) = read_py(&file).unwrap();
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let segment = &snapshot.segments[0];
    assert_eq!((segment.device, segment.requested), (DeviceIndex(1), None));
    assert!(!segment.expandable);
    assert_eq!(segment.blocks[0].requested, Some(Bytes(900)));
    assert_eq!(snapshot.frames.stack(segment.blocks[0].stack).len(), 1);
    assert_eq!(segment.blocks[1].address, Addr(BASE as u64 + 1024));
    assert_eq!((snapshot.device_traces.len(), &snapshot.allocator_settings), (0, &None));
    assert!(snapshot.trace(DeviceIndex(1)).is_empty());

    // 2.0: no time, no metadata; unlimited split size.
    let file = crate::support::snapshot(vec![], vec![entry("alloc", BASE, 7)])
        .with("allocator_settings", dict([("max_split_size", (-1).into())]));
    let (snapshot, _) = read_py(&file).unwrap();
    assert_eq!(snapshot.device_traces[0][0].time, None);
    assert_eq!(snapshot.allocator_settings.unwrap().max_split_size, None);
}

#[test]
fn unknown_keys_are_counted_and_the_first_is_named() {
    let file = snapshot(
        vec![segment(BASE).with("color", "red")],
        vec![entry("alloc", BASE, 1).with("mood", 1), entry("alloc", BASE, 1).with("mood", 2)],
    )
    .with("weather", Py::None);
    let (_, diagnostics) = read_py(&file).unwrap();
    let unknown = diagnostics.get("unknown-key").unwrap();
    assert_eq!(unknown.count, 4);
    assert_eq!(unknown.message, "key `color` of a segment is unknown; ignored");
    assert!(matches!(unknown.first, Some(Location::ByteOffset(at)) if at > 0));
}

#[test]
fn pinned_memory_and_bytes_after_the_end_are_told() {
    let file = snapshot(vec![], vec![]).with("host_traces", Py::List(vec![Py::List(vec![])]));
    let bytes = [file.pickle(), b"??".to_vec()].concat();
    let (_, diagnostics) = read(&bytes, &Limits::default()).unwrap();
    assert_eq!(diagnostics.get("host-memory").unwrap().count, 1);
    assert!(diagnostics.get("trailing-bytes").is_some());
}

#[test]
fn segments_that_contradict_themselves_are_told() {
    let blocks = |first, second, state| {
        Py::List(vec![block(BASE, 1024, 1000, "active_allocated"), block(first, second, 0, state)])
    };
    for (blocks, code) in [
        (blocks(BASE + 1024, 2_096_128, "inactive"), None),
        (blocks(BASE + 1024, 512, "inactive"), Some("blocks-do-not-fill-segment")),
        (blocks(BASE + 512, 2_096_640, "inactive"), Some("blocks-do-not-fill-segment")),
        (blocks(BASE + 1024, i64::MAX, "inactive"), Some("blocks-do-not-fill-segment")),
        (blocks(BASE + 1024, 2_096_128, "active_pending_free"), Some("segment-sums-differ")),
    ] {
        let file = snapshot(vec![segment(BASE).without("blocks").with("blocks", blocks)], vec![]);
        let (_, diagnostics) = read_py(&file).unwrap();
        assert_eq!(diagnostics.iter().map(|d| d.code).next(), code);
    }
}

#[test]
fn of_a_repeated_key_the_last_counts_and_odd_texts_are_kept() {
    let file = snapshot(vec![], vec![entry("alloc", BASE, 1).with("size", 2)]);
    assert_eq!(read_py(&file).unwrap().0.device_traces[0][0].size, Bytes(2));

    // An unpaired surrogate, as Python writes file names that are not Unicode.
    let frames = Py::List(vec![frame("SURROGATE", 1)]);
    let file = snapshot(vec![], vec![entry("alloc", BASE, 1).with("frames", frames)]);
    let mut bytes = file.pickle();
    let at = bytes.windows(9).position(|w| w == b"SURROGATE").unwrap();
    bytes[at..at + 3].copy_from_slice(b"\xed\xb2\x80");
    let (snapshot, diagnostics) = read(&bytes, &Limits::default()).unwrap();
    assert_eq!(diagnostics.get("text-not-unicode").unwrap().count, 1);
    let stack = snapshot.frames.stack(snapshot.device_traces[0][0].stack);
    let name = snapshot.strings.resolve(snapshot.frames.frame(stack[0]).name);
    assert!(name.ends_with("ROGATE"), "{name}");
}

fn check_errors(files: impl IntoIterator<Item = Py>, expected: &Expect) {
    let told: String = files
        .into_iter()
        .map(|file| match read_py(&file) {
            Ok(_) => "no error\n".to_owned(),
            Err(error) => format!("{error}\n"),
        })
        .collect();
    expected.assert_eq(&told);
}

#[test]
fn what_is_no_snapshot_is_told_with_its_place() {
    let broken_block = |block: Py| {
        snapshot(
            vec![segment(BASE).without("blocks").with("blocks", Py::List(vec![block]))],
            vec![],
        )
    };
    let trace = |entry: Py| snapshot(vec![], vec![crate::support::entry("alloc", 0, 1), entry]);
    let alloc = || entry("alloc", BASE, 1);
    check_errors(
        [
            Py::Int(1),
            dict([("traceEvents", Py::List(vec![]))]),
            dict([("segments", Py::None)]),
            dict([("segments", Py::List(vec![7.into()]))]),
            snapshot(vec![segment(BASE).without("address")], vec![]),
            snapshot(vec![segment(BASE), segment(BASE).with("total_size", -1)], vec![]),
            snapshot(vec![segment(BASE).with("segment_type", "medium")], vec![]),
            snapshot(vec![segment(BASE).with("segment_pool_id", Py::Tuple(vec![]))], vec![]),
            broken_block(block(BASE, 1, 1, "lost")),
            broken_block(block(BASE, 1, 1, "inactive").without("size")),
            broken_block(block(BASE, 1, 1, "inactive").with("history", Py::List(vec![Py::None]))),
            trace(alloc().without("action")),
            trace(alloc().without("addr")),
            trace(alloc().with("action", "oom")),
            trace(alloc().with("time_us", i64::MAX)),
            trace(alloc().with("size", Py::Float(1.0))),
            trace(alloc().with("frames", Py::List(vec![frame("f", 1), Py::Int(3)]))),
            trace(alloc().with("frames", Py::List(vec![frame("f", 1).with("name", 1)]))),
            snapshot(vec![], vec![]).with(
                "allocator_settings",
                dict([("roundup_power2_divisions", dict([("many", 1.into())]))]),
            ),
            snapshot(vec![], vec![])
                .with("external_annotations", Py::List(vec![dict([("stage", "MIDDLE".into())])])),
        ],
        &expect![[r#"
            the file (byte 0): holds an integer, not a snapshot
            the file (byte 2): has no key `segments`: is it a memory snapshot?
            segments (byte 2): is None, expected a list
            segments[0] (byte 17): is an integer, expected a dict
            segments[0] (byte 19): has no key `address`
            segments[1].total_size (byte 671): is -1, expected no negative number
            segments[0].segment_type (byte 19): is `medium`, expected small or large
            segments[0].segment_pool_id (byte 19): has 0 elements, expected 2
            segments[0].blocks[0].state (byte 309): is `lost`, expected active_allocated, active_pending_free or inactive
            segments[0].blocks[0] (byte 309): has no key `size`
            segments[0].blocks[0].history[0] (byte 309): is None, expected a dict
            device_traces[0][1] (byte 125): has no key `action`
            device_traces[0][1] (byte 125): has no key `addr`
            device_traces[0][1] (byte 125): has no key `device_free`
            device_traces[0][1].time_us (byte 125): 9223372036854775807 µs is not a valid time
            device_traces[0][1].size (byte 125): is a float, expected an integer
            device_traces[0][1].frames[1] (byte 218): is an integer, expected a dict
            device_traces[0][1].frames[0].name (byte 220): is an integer, expected text
            allocator_settings.roundup_power2_divisions.many (byte 98): is not a size in MiB
            external_annotations[0].stage (byte 71): is `MIDDLE`, expected START or END
        "#]],
    );
}

#[test]
fn files_that_multiply_themselves_are_refused() {
    // One entry, mentioned 5,000 times in a trace, which is mentioned 5,000 times.
    let entry = entry("alloc", BASE, 1).pickle();
    let entry = &entry[2..entry.len() - 1];
    let bytes = [
        b"\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces](](".as_slice(),
        entry,
        b"\x94",
        &b"h\x00".repeat(5000),
        b"e\x94",
        &b"h\x01".repeat(5000),
        b"eu.",
    ]
    .concat();
    match read(&bytes, &Limits::default()) {
        Err(SnapshotError::Layout { path, problem, .. }) => {
            assert!(path.starts_with("device_traces["), "{path}");
            assert!(problem.contains("too often"), "{problem}");
        }
        other => panic!("{:?}", other.map(|_| ())),
    }
}

#[test]
fn a_large_dict_mentioned_often_is_refused() {
    let keys: Vec<_> = (0..2000).map(|i| (Py::Int(i), Py::None)).collect();
    let file = Py::Dict(keys).with("stage", "END").pickle();
    let bytes = [
        b"\x80\x04}(\x8c\x08segments]\x8c\x14external_annotations](".as_slice(),
        &file[2..file.len() - 1],
        b"\x94",
        &b"h\x00".repeat(2000),
        b"eu.",
    ]
    .concat();
    match read(&bytes, &Limits::default()) {
        Err(SnapshotError::Layout { problem, .. }) => {
            assert!(problem.contains("too often"), "{problem}");
        }
        other => panic!("{:?}", other.map(|_| ())),
    }
}

/// A thousand entries with a hundred frames each, given as instructions.
fn check_shared(frames: &[u8]) {
    let entry = [
        b"}(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x01\x8c\x04sizeK\x01\x8c\x06frames".as_slice(),
        frames,
        b"u",
    ]
    .concat();
    let bytes = [
        // Memo 0 is a frame, memo 1 a stack of a hundred mentions of it.
        b"\x80\x04}(\x8c\x05frame}(\x8c\x04lineK\x07\x8c\x04name\x8c\x01fu\x94\x8c\x05stack]("
            .as_slice(),
        &b"h\x00".repeat(100),
        b"e\x94\x8c\x08segments]\x8c\x0ddevice_traces](](",
        &entry.repeat(1000),
        b"eeu.",
    ]
    .concat();
    let (snapshot, _) = read(&bytes, &Limits::default()).expect("each frame is read once");
    let trace = snapshot.trace(DeviceIndex(0));
    assert_eq!(trace.len(), 1000);
    assert!(trace.iter().all(|entry| entry.stack == trace[0].stack));
    let stack = snapshot.frames.stack(trace[0].stack);
    assert_eq!((stack.len(), snapshot.frames.frame_count()), (100, 1));
}

#[test]
fn stacks_and_frames_shared_by_many_entries_are_read_once() {
    check_shared(b"h\x01");
    let own_list = [b"](".as_slice(), &b"h\x00".repeat(100), b"e"].concat();
    check_shared(&own_list);
}

#[test]
fn the_snapshot_counts_against_the_memory_limit() {
    let trace = (0..1000).map(|i| entry("alloc", BASE + i, 1)).collect();
    let bytes = snapshot(vec![], trace).pickle();
    let limits = |memory| Limits { memory: Bytes(memory), ..Limits::default() };
    let enough = (1..100)
        .map(|i| i * 10_000)
        .find(|&memory| read(&bytes, &limits(memory)).is_ok())
        .expect("a megabyte is enough");
    // An entry, and what it is made of: a dict of four values.
    let least = 1000 * (size_of::<TraceEntry>() + 16 + 4 * 8) as u64;
    assert!(enough > least, "{enough}");
    match read(&bytes, &limits(enough - 10_000)) {
        Err(SnapshotError::TooLarge { .. }) => {}
        other => panic!("{:?}", other.map(|_| ())),
    }
}
