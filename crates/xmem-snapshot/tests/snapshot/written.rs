//! A snapshot that is written and read again is the same.

use expect_test::expect;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use xmem_snapshot::{
    Action, AllocatorSettings, Annotation, AnnotationStage, BlockState, DeviceIndex, Limits,
    PoolId, Segment, SegmentKind, Setting, Snapshot, SnapshotBlock, StackId, StreamHandle,
    TraceEntry, read, write,
};
use xmem_types::{Addr, Bytes, Nanos, StreamId, Sym, printable};

pub(crate) fn written(snapshot: &Snapshot) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(snapshot, &mut bytes).expect("memory takes everything");
    bytes
}

fn read_again(snapshot: &Snapshot) -> Snapshot {
    read(&written(snapshot), &Limits::default()).expect("what was written can be read").0
}

/// The smallest job of interest: two allocations in one small segment, the first one freed.
pub(crate) fn example() -> Snapshot {
    const BASE: u64 = 0x7f00_0000_0000;
    let mut snapshot = Snapshot::default();
    let frames = [snapshot.frame("aten::addmm", "nn.Module: Linear_0", 0)];
    let stack = snapshot.stack(&frames);
    let entries = [
        (Action::SegmentAlloc, 0, 2 << 20),
        (Action::Alloc, 0, 1000),
        (Action::Alloc, 1024, 600_000),
        (Action::FreeRequested, 0, 1000),
        (Action::FreeCompleted, 0, 1000),
    ];
    for (i, (action, offset, size)) in entries.into_iter().enumerate() {
        let entry = TraceEntry::new(action, Addr(BASE + offset), Bytes(size));
        let time = Some(Nanos(1_700_000_000_000_000_000 + i as i64 * 1000));
        snapshot.record(DeviceIndex(0), TraceEntry { stack, time, ..entry });
    }
    let blocks = [
        (0, 1024, 0, BlockState::Inactive),
        (1024, 600_064, 600_000, BlockState::ActiveAllocated),
        (601_088, 1_496_064, 0, BlockState::Inactive),
    ]
    .map(|(offset, size, requested, state)| SnapshotBlock {
        address: Addr(BASE + offset),
        size: Bytes(size),
        requested: Some(Bytes(requested)),
        state,
        stack: if state == BlockState::Inactive { StackId::EMPTY } else { stack },
    });
    let segment = Segment::new(DeviceIndex(0), Addr(BASE), SegmentKind::Small, blocks.into());
    let sums = (segment.total, segment.allocated, segment.active, segment.requested);
    let used = Bytes(600_064);
    assert_eq!(sums, (Bytes::mib(2), used, used, Some(Bytes(600_000))));
    snapshot.segments.push(Segment { stack, ..segment });
    snapshot.allocator_settings = Some(AllocatorSettings::default());
    snapshot
}

#[test]
fn the_example_is_written_and_read_without_complaint() {
    let snapshot = example();
    let (again, diagnostics) = read(&written(&snapshot), &Limits::default()).unwrap();
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert_eq!(again, snapshot);
}

#[test]
fn a_segment_sums_up_its_blocks() {
    let block = |address, size, requested, state| SnapshotBlock {
        address: Addr(address),
        size: Bytes(size),
        requested,
        state,
        stack: StackId::EMPTY,
    };
    let blocks = vec![
        block(0, 512, Some(Bytes(1)), BlockState::ActiveAllocated),
        block(512, 1024, Some(Bytes(20)), BlockState::ActivePendingFree),
        block(1536, 2048, None, BlockState::Inactive),
    ];
    let sums = |blocks: &[SnapshotBlock]| {
        let segment = Segment::new(DeviceIndex(3), Addr(0), SegmentKind::Large, blocks.to_vec());
        let requested = segment.requested.map(Bytes::get);
        (segment.total.get(), segment.allocated.get(), segment.active.get(), requested)
    };
    assert_eq!(sums(&blocks), (3584, 512, 1536, Some(21)));
    let unknown = block(512, 1024, None, BlockState::ActivePendingFree);
    assert_eq!(sums(&[blocks[0], unknown]), (1536, 512, 1536, None));
    assert_eq!(sums(&[]), (0, 0, 0, Some(0)));
}

#[test]
fn a_largest_possible_split_size_is_no_limit() {
    let mut snapshot = example();
    let mut read_back = |size| {
        snapshot.allocator_settings.as_mut().unwrap().max_split_size = Some(Bytes(size));
        read_again(&snapshot).allocator_settings.unwrap().max_split_size
    };
    assert_eq!(read_back(u64::MAX), None);
    assert_eq!(read_back(u64::MAX - 1), Some(Bytes(u64::MAX - 1)));
}

#[test]
fn a_written_entry_is_what_pytorch_writes() {
    let mut snapshot = Snapshot::default();
    snapshot.stream(StreamHandle(u64::MAX));
    let entry = TraceEntry::new(Action::Alloc, Addr(0x7f00_0000_0200), Bytes(70_000));
    snapshot.record(DeviceIndex(0), TraceEntry { stream: StreamId(1), ..entry });
    snapshot.record(DeviceIndex(0), entry);
    let shown: String = written(&snapshot).escape_ascii().map(char::from).collect();
    expect![[r#"\x80\x04}(\x8c\x08segmentsq\x00]\x8c\rdevice_tracesq\x01](](}(\x8c\x06actionq\x17\x8c\x05allocq!\x8c\x04addrq\x18\x8a\x06\x00\x02\x00\x00\x00\x7f\x8c\x04sizeq\x12Jp\x11\x01\x00\x8c\x06streamq\nJ\xff\xff\xff\xff\x8c\x06framesq\x0e]u}(h\x17h!h\x18\x8a\x06\x00\x02\x00\x00\x00\x7fh\x12Jp\x11\x01\x00h\nK\x00h\x0e]uee\x8c\x14external_annotationsq\x03]u."#]].assert_eq(&shown);
}

/// The texts, stacks and streams of a random snapshot, for entries to choose from.
#[derive(Clone, Debug)]
struct Tables {
    snapshot: Snapshot,
    stacks: Vec<StackId>,
    texts: Vec<Sym>,
}

impl Tables {
    fn stack(&self, index: Index) -> StackId {
        self.stacks[index.index(self.stacks.len())]
    }

    fn text(&self, index: Index) -> Sym {
        self.texts[index.index(self.texts.len())]
    }

    fn stream(&self, index: Index) -> StreamId {
        StreamId::new(index.index(self.snapshot.streams.len()))
    }
}

fn tables() -> impl Strategy<Value = Tables> {
    let frame = ("[a-z]{0,3}|\\PC{0,300}", "[ab]", any::<u32>());
    let stacks = vec(vec(any::<Index>(), 0..4), 0..5);
    let texts = vec("x[0-9]{0,2}", 0..300);
    let streams = vec(any::<u64>(), 0..4);
    (vec(frame, 1..6), stacks, texts, streams).prop_map(|(frames, stacks, texts, streams)| {
        let mut snapshot = Snapshot::default();
        let texts = texts.iter().map(|text| snapshot.strings.intern(text));
        let texts = std::iter::once(Sym::EMPTY).chain(texts).collect();
        let frames: Vec<_> =
            // What is not printable is read as its escape.
            frames.iter().map(|(name, file, line)| snapshot.frame(&printable(name), file, *line)).collect();
        let stacks = stacks.iter().map(|stack| {
            let stack: Vec<_> = stack.iter().map(|i| frames[i.index(frames.len())]).collect();
            snapshot.stack(&stack)
        });
        let stacks = std::iter::once(StackId::EMPTY).chain(stacks).collect();
        for stream in streams {
            snapshot.stream(StreamHandle(stream));
        }
        Tables { snapshot, stacks, texts }
    })
}

/// Numbers around those where pickle's instructions change.
fn number() -> impl Strategy<Value = u64> {
    let edge = select(vec![8, 16, 31, 32, 39, 47, 63]).prop_map(|bits| 1_u64 << bits);
    prop_oneof![
        0..1000_u64,
        (edge, any::<bool>()).prop_map(|(edge, below)| edge - u64::from(below)),
        any::<u64>(),
        Just(u64::MAX),
    ]
}

fn bytes() -> impl Strategy<Value = Bytes> {
    number().prop_map(Bytes)
}

fn addr() -> impl Strategy<Value = Addr> {
    number().prop_map(Addr)
}

fn device() -> impl Strategy<Value = DeviceIndex> {
    any::<u32>().prop_map(DeviceIndex)
}

fn time() -> impl Strategy<Value = Option<Nanos>> {
    let micros =
        prop_oneof![Just(1_795_238_135_683_524), -3..3_i64, i64::MIN / 1000..=i64::MAX / 1000,];
    option::of(micros.prop_map(|micros| Nanos(micros * 1000)))
}

fn action(tables: Tables) -> impl Strategy<Value = Action> {
    prop_oneof![
        select(vec![
            Action::SegmentAlloc,
            Action::SegmentFree,
            Action::SegmentMap,
            Action::SegmentUnmap,
            Action::Alloc,
            Action::FreeRequested,
            Action::FreeCompleted,
            Action::Snapshot,
            Action::Annotate,
        ]),
        bytes().prop_map(|device_free| Action::OutOfMemory { device_free }),
        any::<Index>().prop_map(move |text| Action::Other(tables.text(text))),
    ]
}

fn entry(tables: Tables) -> impl Strategy<Value = TraceEntry> {
    let texts = (any::<Index>(), any::<Index>());
    let ids = (any::<Index>(), any::<Index>(), texts);
    (action(tables.clone()), addr(), bytes(), time(), ids).prop_map(
        move |(action, addr, size, time, (stream, stack, texts))| TraceEntry {
            action,
            addr: match action {
                Action::OutOfMemory { .. } => Addr(0),
                _ => addr,
            },
            size,
            stream: tables.stream(stream),
            time,
            stack: tables.stack(stack),
            compile_context: tables.text(texts.0),
            user_metadata: tables.text(texts.1),
        },
    )
}

fn block(tables: Tables) -> impl Strategy<Value = SnapshotBlock> {
    let state = select(vec![
        BlockState::ActiveAllocated,
        BlockState::ActivePendingFree,
        BlockState::Inactive,
    ]);
    (addr(), bytes(), option::of(bytes()), state, any::<Index>()).prop_map(
        move |(address, size, requested, state, stack)| SnapshotBlock {
            address,
            size,
            requested,
            state,
            stack: tables.stack(stack),
        },
    )
}

fn segment(tables: Tables) -> impl Strategy<Value = Segment> {
    let sizes = (bytes(), bytes(), bytes(), option::of(bytes()));
    let ids = (any::<Index>(), any::<Index>());
    let kind = select(vec![SegmentKind::Small, SegmentKind::Large]);
    let flags = (kind, any::<bool>(), any::<(u64, u64)>());
    let blocks = vec(block(tables.clone()), 0..4);
    (device(), addr(), sizes, ids, flags, blocks).prop_map(
        move |(device, address, sizes, ids, (kind, expandable, pool), blocks)| Segment {
            device,
            address,
            total: sizes.0,
            allocated: sizes.1,
            active: sizes.2,
            requested: sizes.3,
            stream: tables.stream(ids.0),
            kind,
            pool: PoolId(pool.0, pool.1),
            expandable,
            stack: tables.stack(ids.1),
            blocks,
        },
    )
}

fn annotation(tables: Tables) -> impl Strategy<Value = Annotation> {
    let stage = select(vec![AnnotationStage::Start, AnnotationStage::End]);
    (stage, any::<Index>(), device(), time()).prop_map(move |(stage, name, device, time)| {
        Annotation { stage, name: tables.text(name), device, time }
    })
}

fn settings() -> impl Strategy<Value = AllocatorSettings> {
    let setting = prop_oneof![
        any::<bool>().prop_map(Setting::Bool),
        any::<i64>().prop_map(Setting::Int),
        any::<f64>().prop_map(Setting::Float),
        "\\PC{0,5}".prop_map(|text| Setting::Text(printable(&text).into_owned())),
        Just(Setting::None),
    ];
    let divisions =
        btree_map((0..=u32::MAX).prop_map(|mib| Bytes::mib(mib.into())), any::<u32>(), 0..4);
    (
        option::of("\\PC{0,20}"),
        option::of((0..u64::MAX).prop_map(Bytes)),
        any::<f64>(),
        any::<bool>(),
        divisions,
        btree_map("x[a-z]{0,3}", setting, 0..5),
    )
        .prop_map(
            |(text, max_split_size, threshold, expandable_segments, divisions, other)| {
                AllocatorSettings {
                    text: text.map(|text| printable(&text).into_owned()),
                    max_split_size,
                    garbage_collection_threshold: threshold,
                    expandable_segments,
                    roundup_power2_divisions: divisions,
                    other,
                }
            },
        )
}

fn snapshot() -> impl Strategy<Value = Snapshot> {
    tables().prop_flat_map(|tables| {
        let segments = vec(segment(tables.clone()), 0..4);
        let traces = vec(vec(entry(tables.clone()), 0..40), 0..3);
        let annotations = vec(annotation(tables.clone()), 0..4);
        (segments, traces, annotations, option::of(settings())).prop_map(
            move |(segments, device_traces, annotations, allocator_settings)| Snapshot {
                segments,
                device_traces,
                annotations,
                allocator_settings,
                ..tables.snapshot.clone()
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn any_snapshot_is_read_as_it_was_written(snapshot in snapshot()) {
        let again = read_again(&snapshot);
        prop_assert_eq!(&again, &snapshot);
        prop_assert_eq!(&snapshot, &again);
        prop_assert_eq!(written(&again), written(&snapshot));
    }

    #[test]
    fn what_differs_is_not_equal(snapshot in snapshot(), other in snapshot()) {
        prop_assert_eq!(snapshot == other, written(&snapshot) == written(&other));
    }
}

#[test]
fn one_difference_is_enough() {
    type Change = (&'static str, fn(&mut Snapshot));
    let changes: [Change; 12] = [
        ("segment", |s| s.segments[0].total = Bytes(1)),
        ("segment's stack", |s| s.segments[0].stack = StackId::EMPTY),
        ("fewer blocks", |s| s.segments[0].blocks.truncate(2)),
        ("block", |s| s.segments[0].blocks[1].size = Bytes(1)),
        ("block's stack", |s| s.segments[0].blocks[1].stack = StackId::EMPTY),
        ("fewer entries", |s| s.device_traces[0].truncate(4)),
        ("entry", |s| s.device_traces[0][0].addr = Addr(1)),
        ("another device", |s| s.device_traces.push(Vec::new())),
        ("text", |s| {
            let text = s.strings.intern("weights");
            s.device_traces[0][1].user_metadata = text;
        }),
        ("frame", |s| {
            let frame = s.frame("aten::addmm", "nn.Module: Linear_0", 1);
            s.device_traces[0][0].stack = s.stack(&[frame]);
        }),
        ("stream", |s| s.device_traces[0][4].stream = s.stream(StreamHandle(7))),
        ("settings", |s| s.allocator_settings.as_mut().unwrap().expandable_segments = true),
    ];
    for (what, change) in changes {
        let mut changed = example();
        change(&mut changed);
        assert_ne!(changed, example(), "{what}");
        assert_ne!(example(), changed, "{what}");
        assert_eq!(read_again(&changed), changed, "{what}");
    }
}

#[test]
fn tables_in_another_order_are_equal() {
    let mut shuffled = Snapshot::default();
    shuffled.strings.intern("unused");
    let unused = shuffled.frame("unused", "unused", 3);
    shuffled.stack(&[unused]);
    shuffled.stream(StreamHandle(9));
    let original = example();
    let frames = [shuffled.frame("aten::addmm", "nn.Module: Linear_0", 0)];
    let stack = shuffled.stack(&frames);
    assert_ne!(stack, original.device_traces[0][0].stack);
    let moved = |old: StackId| if old == StackId::EMPTY { old } else { stack };
    shuffled.segments = original.segments.clone();
    for segment in &mut shuffled.segments {
        segment.stack = moved(segment.stack);
        segment.blocks.iter_mut().for_each(|block| block.stack = moved(block.stack));
    }
    for &entry in &original.device_traces[0] {
        shuffled.record(DeviceIndex(0), TraceEntry { stack: moved(entry.stack), ..entry });
    }
    shuffled.allocator_settings = original.allocator_settings.clone();
    assert_eq!(shuffled, original);
    assert_eq!(original, shuffled);
    assert_eq!(written(&shuffled), written(&original));
}

#[test]
fn what_entries_share_is_written_once() {
    let many = |entries: u64| {
        let mut snapshot = Snapshot::default();
        let frames: Vec<_> =
            (0..100).map(|line| snapshot.frame("a function", "a/file.py", line)).collect();
        let stack = snapshot.stack(&frames);
        for i in 0..entries {
            let addr = Addr(0x7f00_0000_0000 + i * 512);
            let entry = TraceEntry::new(Action::Alloc, addr, Bytes(512));
            snapshot.record(DeviceIndex(0), TraceEntry { stack, ..entry });
        }
        assert_eq!(read_again(&snapshot), snapshot);
        written(&snapshot).len() as u64
    };
    // 2 for the dict, 2 for the action, 7 or 8 for the address, 3 for the size, 2 for the stream,
    // 2 for each of 5 keys, 5 for the stack, 1 for the end.
    assert!((many(20_000) - many(10_000)).div_ceil(10_000) <= 35, "{}", many(20_000));
}

/// A writer that takes so many bytes and no more.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told() {
    let length = written(&example()).len();
    write(&example(), Full(length)).expect("room for all");
    for room in [0, 1, 100, length - 1] {
        let error = write(&example(), Full(room)).expect_err("no room");
        assert_eq!(error.kind(), std::io::ErrorKind::WriteZero);
    }
}
