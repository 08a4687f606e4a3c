//! Whatever the bytes are: an answer or an error.

use crate::support::{Py, entry, frame, segment, snapshot};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use xmem_snapshot::{Limits, SnapshotError, read};

#[path = "../../../../fuzz/src/snapshot.rs"]
pub(crate) mod target;

/// Instructions with arguments that have a chance to fit together.
fn instruction() -> impl Strategy<Value = Vec<u8>> {
    let plain: Vec<&[u8]> = vec![
        b"N",
        b"\x88",
        b"\x89",
        b"(",
        b"]",
        b")",
        b"}",
        b"a",
        b"e",
        b"l",
        b"t",
        b"d",
        b"s",
        b"u",
        b"\x85",
        b"\x86",
        b"\x87",
        b"\x94",
        b"K\x01",
        b"M\x00\x10",
        b"J\xff\xff\xff\xff",
        b"\x8a\x06\0\0\0\0\0\x7f",
        b"\x8a\x0a\0\0\0\0\0\0\0\0\0\x01",
        b"G\x3f\xf0\0\0\0\0\0\0",
        b"C\x01x",
        b"q\x00",
        b"q\x03",
        b"h\x00",
        b"h\x01",
        b"h\x02",
        b"j\x03\0\0\0",
        b"\x8c\x08segments",
        b"\x8c\x0ddevice_traces",
        b"\x8c\x06action",
        b"\x8c\x05alloc",
        b"\x8c\x04addr",
        b"\x8c\x04size",
        b"\x8c\x06frames",
        b"\x8c\x06blocks",
    ];
    prop_oneof![
        30 => select(plain).prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>(), 1..4),
    ]
}

/// Values in the layout of a snapshot, or nearly.
fn value() -> impl Strategy<Value = Py> {
    let number = prop_oneof![
        5 => 0..8_i64,
        2 => (0..8_i64).prop_map(|n| 0x7f00_0000_0000 + n * 512),
        1 => Just(i64::MAX),
        1 => Just(i64::MIN),
    ];
    let leaf = prop_oneof![
        6 => number.prop_map(Py::Int),
        1 => Just(Py::None),
        1 => any::<bool>().prop_map(Py::Bool),
        1 => any::<f64>().prop_map(Py::Float),
        4 => select(vec![
            "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom",
            "active_allocated", "inactive", "small", "large", "START", "odd",
        ]).prop_map(Py::from),
    ];
    leaf.prop_recursive(5, 200, 12, |inner| {
        let key = select(vec![
            "segments",
            "device_traces",
            "allocator_settings",
            "external_annotations",
            "blocks",
            "address",
            "total_size",
            "size",
            "state",
            "frames",
            "history",
            "real_size",
            "action",
            "addr",
            "device_free",
            "time_us",
            "stream",
            "name",
            "filename",
            "line",
            "stage",
            "requested_size",
            "max_split_size",
            "roundup_power2_divisions",
            "32768",
            "odd",
        ]);
        prop_oneof![
            vec(inner.clone(), 0..12).prop_map(Py::List),
            vec(inner.clone(), 0..3).prop_map(Py::Tuple),
            vec((key.prop_map(Py::from), inner), 0..12).prop_map(Py::Dict),
        ]
    })
}

/// Entries that are valid one by one, in any order.
fn trace() -> impl Strategy<Value = Vec<Py>> {
    let action = select(vec![
        "alloc",
        "free_requested",
        "free_completed",
        "segment_alloc",
        "segment_free",
        "segment_map",
        "segment_unmap",
    ]);
    let size = prop_oneof![5 => 0..5000_i64, 1 => Just(i64::MAX)];
    vec((action, 0..6_i64, size).prop_map(|(action, addr, size)| entry(action, addr, size)), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..2000)) {
        target::read_and_use(&bytes);
        target::read_and_use(&[b"\x80\x04", &bytes[..]].concat());
    }

    #[test]
    fn random_instructions(body in vec(instruction(), 0..200)) {
        target::read_and_use(&[b"\x80\x04", &body.concat()[..], b"."].concat());
    }

    #[test]
    fn random_values(value in value()) {
        target::read_and_use(&value.pickle());
    }

    #[test]
    fn random_traces(trace in trace(), with_segment: bool) {
        let segments = if with_segment { vec![segment(0)] } else { vec![] };
        let file = snapshot(segments, trace);
        prop_assert!(target::read_and_use(&file.pickle()));
    }

    #[test]
    fn damaged_snapshots(at: prop::sample::Index, byte: u8) {
        let frames = Py::List(vec![frame("f", 1)]);
        let file = snapshot(vec![segment(0x1000)], vec![entry("alloc", 1, 2).with("frames", frames)]);
        let mut bytes = file.pickle();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        target::read_and_use(&bytes);
    }
}

#[test]
fn a_snapshot_cut_off_anywhere_is_an_error() {
    let trace = vec![entry("alloc", 1, 2).with("frames", Py::List(vec![frame("f", 1)]))];
    let bytes = snapshot(vec![segment(0x1000)], trace).pickle();
    for length in 0..bytes.len() {
        match read(&bytes[..length], &Limits::default()) {
            Err(SnapshotError::Empty) if length == 0 => {}
            Err(SnapshotError::Truncated { at, .. }) => assert_eq!(at, length),
            other => panic!("{length} bytes: {:?}", other.map(|_| ())),
        }
    }
    read(&bytes, &Limits::default()).expect("the whole file");
}
