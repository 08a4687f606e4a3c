//! From device traces to requests and to the course of memory use.

use crate::support::{Py, entry, read_py, segment, snapshot};
use expect_test::{Expect, expect};
use std::fmt::Write as _;
use xmem_snapshot::{DeviceIndex, Usage};
use xmem_types::{Bytes, RequestKind};

const DEVICE: DeviceIndex = DeviceIndex(0);

fn check(trace: Vec<Py>, expected: &Expect) {
    let (snapshot, _) = read_py(&snapshot(vec![], trace)).unwrap();
    let recorded = snapshot.requests(DEVICE);
    let mut text = String::new();
    for (request, entry) in recorded.requests.iter().zip(&recorded.entries) {
        let block = request.block.0;
        match request.kind {
            RequestKind::Alloc { size, stream } => {
                writeln!(text, "{}: alloc {block}, {size}, stream {}", entry.0, stream.0).unwrap();
            }
            RequestKind::Free => writeln!(text, "{}: free {block}", entry.0).unwrap(),
        }
    }
    assert_eq!(recorded.requests.len(), recorded.entries.len());
    writeln!(
        text,
        "without allocation: {}, unrecorded: {}",
        recorded.frees_without_allocation, recorded.unrecorded_frees
    )
    .unwrap();
    expected.assert_eq(&text);
}

#[test]
fn requests_follow_the_program_and_not_the_segments() {
    check(
        vec![
            entry("segment_alloc", 0x1000, 4096),
            entry("alloc", 0x1000, 100),
            entry("alloc", 0x1200, 200).with("stream", 9),
            entry("free_requested", 0x1000, 100),
            entry("free_completed", 0x1000, 100),
            entry("alloc", 0x1000, 50),
            entry("snapshot", 0, 1),
        ],
        &expect![[r#"
            1: alloc 0, 100 B, stream 0
            2: alloc 1, 200 B, stream 1
            3: free 0
            5: alloc 2, 50 B, stream 0
            without allocation: 0, unrecorded: 0
        "#]],
    );
}

#[test]
fn a_block_that_waits_for_another_stream_is_freed_once() {
    check(
        vec![
            entry("alloc", 0x1000, 100),
            entry("free_requested", 0x1000, 100),
            entry("alloc", 0x2000, 100),
            entry("free_completed", 0x1000, 100),
            entry("alloc", 0x1000, 100),
            entry("free_requested", 0x1000, 100),
            entry("free_completed", 0x1000, 100),
        ],
        &expect![[r#"
            0: alloc 0, 100 B, stream 0
            1: free 0
            2: alloc 1, 100 B, stream 0
            4: alloc 2, 100 B, stream 0
            5: free 2
            without allocation: 0, unrecorded: 0
        "#]],
    );
}

#[test]
fn blocks_from_before_the_recording_are_no_requests() {
    check(
        vec![
            // Its request was dropped from the ring buffer.
            entry("free_completed", 0x9000, 10),
            entry("free_requested", 0x1000, 100),
            entry("free_completed", 0x1000, 100),
            entry("alloc", 0x1000, 100),
        ],
        &expect![[r#"
            3: alloc 0, 100 B, stream 0
            without allocation: 2, unrecorded: 0
        "#]],
    );
}

#[test]
fn completed_frees_alone_and_missing_frees_are_understood() {
    check(
        vec![
            entry("alloc", 0x1000, 100),
            entry("free_completed", 0x1000, 100),
            entry("alloc", 0x1000, 200),
            entry("alloc", 0x1000, 300),
        ],
        &expect![[r#"
            0: alloc 0, 100 B, stream 0
            1: free 0
            2: alloc 1, 200 B, stream 0
            3: free 1
            3: alloc 2, 300 B, stream 0
            without allocation: 0, unrecorded: 1
        "#]],
    );
}

#[test]
fn usage_is_counted_back_from_the_end() {
    let base = 0x7f00_0000_0000;
    let trace = vec![
        // 600 bytes from before the recording, in a segment that is given back.
        entry("free_requested", 0x1000, 600),
        entry("free_completed", 0x1000, 600),
        entry("segment_free", 0x1000, 1 << 20),
        entry("segment_map", base, 2 << 20),
        entry("alloc", base + 2048, 5000),
        entry("alloc", base, 1000),
        entry("free_requested", base + 2048, 5000),
    ];
    let (snapshot, _) = read_py(&snapshot(vec![segment(base)], trace)).unwrap();
    let (usage, diagnostics) = snapshot.usage(DEVICE);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let course =
        |start, peak, end| Usage { start: Bytes(start), peak: Bytes(peak), end: Bytes(end) };
    assert_eq!(usage.requested, course(600, 6000, 1000));
    assert_eq!(usage.reserved, course(1 << 20, 2 << 20, 2 << 20));
    assert_eq!(snapshot.usage(DeviceIndex(3)).0, xmem_snapshot::DeviceUsage::default());
}

#[test]
fn a_trace_that_ends_before_the_snapshot_is_told() {
    let trace = vec![
        entry("segment_alloc", 0x1000, 4096),
        entry("alloc", 0x1000, 100),
        entry("free_requested", 0x1000, 100),
        entry("alloc", 0x1000, 70),
    ];
    let (snapshot, _) = read_py(&snapshot(vec![], trace)).unwrap();
    let (usage, diagnostics) = snapshot.usage(DEVICE);
    assert_eq!(diagnostics.get("trace-does-not-end-here").unwrap().count, 2);
    assert_eq!((usage.requested.peak, usage.reserved.peak), (Bytes(100), Bytes(4096)));
}
