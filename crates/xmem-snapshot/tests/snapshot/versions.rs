//! The files that each version of PyTorch wrote, with each of its two picklers.
//!
//! Keys by the version that first wrote them, as in torch/csrc/cuda/Module.cpp and
//! torch/csrc/cuda/memory_snapshot.cpp of its wheels; 112 is PyTorch 1.12.

use crate::support::{Py, dict, frame};
use crate::written::written;
use expect_test::expect;
use std::fmt::Write;
use xmem_snapshot::{DeviceIndex, Limits, Snapshot, read};
use xmem_types::Bytes;

const BASE: i64 = 0x7f00_0000_0000;

/// A dict of the keys that `version` wrote.
fn keys<const N: usize>(version: u32, keys: [(u32, &str, Py); N]) -> Py {
    let known = keys.into_iter().filter(|(since, ..)| *since <= version);
    Py::Dict(known.map(|(_, key, value)| (key.into(), value)).collect())
}

/// A small file of that version; 100 versions are one major one.
fn file(version: u32) -> Py {
    let frames = || Py::List(vec![frame("step", 7)]);
    let block = |offset: i64, size: i64, requested: i64, state: &str| {
        let history = dict([
            ("addr", (BASE + offset).into()),
            ("real_size", requested.into()),
            ("frames", frames()),
        ]);
        let older = dict([("addr", BASE.into()), ("real_size", 5.into())]);
        let block = keys(
            version,
            [
                (112, "size", size.into()),
                (112, "state", state.into()),
                (200, "requested_size", requested.into()),
                (200, "address", (BASE + offset).into()),
                (201, "frames", frames()),
            ],
        );
        // Before there were frames, active blocks had a history, newest first.
        if version < 201 && state != "inactive" {
            block.with("history", Py::List(vec![history, older]))
        } else {
            block
        }
    };
    let blocks = vec![
        block(0, 1024, 1000, "active_allocated"),
        block(1024, 512, 500, "active_pending_free"),
        block(1536, 2_095_616, 0, "inactive"),
    ];
    let segment = keys(
        version,
        [
            (112, "device", 0.into()),
            (112, "address", BASE.into()),
            (112, "total_size", 2_097_152.into()),
            (112, "allocated_size", 1024.into()),
            (112, "active_size", 1536.into()),
            (112, "stream", 0x5000.into()),
            (112, "segment_type", "small".into()),
            (112, "blocks", Py::List(blocks)),
            (200, "requested_size", 1500.into()),
            (201, "segment_pool_id", Py::Tuple(vec![0.into(), 1.into()])),
            (201, "is_expandable", true.into()),
            (201, "frames", frames()),
            (211, "forward_frames", Py::List(vec!["in forward".into()])),
        ],
    );
    if version < 200 {
        return Py::List(vec![segment]);
    }
    let entry = |action: &str, addr: (&str, i64)| {
        keys(
            version,
            [
                (200, "action", action.into()),
                (200, addr.0, addr.1.into()),
                (200, "size", 1000.into()),
                (200, "stream", 0x5000.into()),
                (200, "frames", frames()),
                (202, "time_us", 1_795_238_135_683_524.into()),
                (208, "compile_context", "0/0".into()),
                (210, "user_metadata", "weights".into()),
                (215, "pool_id", Py::Tuple(vec![0.into(), 1.into()])),
                (215, "internal_metadata", "x".into()),
            ],
        )
    };
    let trace = vec![entry("alloc", ("addr", BASE)), entry("oom", ("device_free", 512)), {
        entry("segment_map", ("addr", BASE))
    }];
    let settings = keys(
        version,
        [
            (200, "max_split_size", (-1).into()),
            (200, "garbage_collection_threshold", Py::Float(0.5)),
            (201, "expandable_segments", true.into()),
            (202, "release_lock_on_cudamalloc", false.into()),
            (203, "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True".into()),
            (203, "roundup_power2_divisions", dict([("1", 4.into())])),
            (209, "graph_capture_record_stream_reuse", false.into()),
        ],
    );
    let scope = dict([
        ("stage", "START".into()),
        ("name", "forward".into()),
        ("device", 0.into()),
        ("time_us", 5.into()),
    ]);
    keys(
        version,
        [
            (200, "segments", Py::List(vec![segment])),
            (200, "device_traces", Py::List(vec![Py::List(trace)])),
            (200, "allocator_settings", settings),
            (205, "external_annotations", Py::List(vec![scope])),
            (214, "host_segments", Py::List(vec![])),
            (214, "host_traces", Py::List(vec![])),
        ],
    )
}

/// The properties that a version leaves open, in a line.
fn told(snapshot: &Snapshot) -> String {
    let segment = &snapshot.segments[0];
    let requested: Vec<_> = segment.blocks.iter().map(|b| b.requested.map(Bytes::get)).collect();
    let mut line = format!(
        "requested {:?} {requested:?}, pool {}, expandable {}, frames {} {}",
        segment.requested.map(Bytes::get),
        segment.pool.1,
        segment.expandable,
        snapshot.frames.stack(segment.stack).len(),
        snapshot.frames.stack(segment.blocks[0].stack).len(),
    );
    if let Some(entry) = snapshot.trace(DeviceIndex(0)).first() {
        let context = snapshot.strings.resolve(entry.compile_context);
        let metadata = snapshot.strings.resolve(entry.user_metadata);
        let time = entry.time.map(|time| time.get() / 1000);
        write!(line, ", time {time:?} {context:?} {metadata:?}").unwrap();
    }
    if let Some(settings) = &snapshot.allocator_settings {
        write!(
            line,
            ", settings {:?} {} {}",
            settings.text.as_deref().map(str::len),
            settings.roundup_power2_divisions.len(),
            settings.other.len()
        )
        .unwrap();
    }
    write!(line, ", scopes {}", snapshot.annotations.len()).unwrap();
    line
}

const VERSIONS: [u32; 13] = [112, 113, 200, 201, 202, 203, 204, 205, 206, 208, 210, 211, 215];

#[test]
fn each_version_is_read_and_what_it_left_out_is_open() {
    let mut table = String::new();
    for version in VERSIONS {
        let file = file(version);
        let (snapshot, diagnostics) = read(&file.pickle(), &Limits::default()).unwrap();
        let odd: Vec<_> = diagnostics.iter().map(|d| d.code).collect();
        assert_eq!(odd, [""; 0], "{version}");
        writeln!(table, "{}.{}: {}", version / 100, version % 100, told(&snapshot)).unwrap();

        // The addresses of blocks follow from their sizes where they are not written.
        let addresses = snapshot.segments[0].blocks.iter().map(|block| block.address.0);
        assert!(addresses.eq([0, 1024, 1536].map(|offset| BASE as u64 + offset)), "{version}");
        // In today's layout, it says the same.
        let (again, _) = read(&written(&snapshot), &Limits::default()).unwrap();
        assert!(again == snapshot, "{version}: {again:?} was {snapshot:?}");
        // The C++ pickler writes the same values with other instructions.
        let (other, _) = read(&file.pickle_as_torchscript(), &Limits::default()).unwrap();
        assert!(other == snapshot, "{version}: {other:?} is {snapshot:?}");
    }
    expect![[r#"
        1.12: requested None [Some(1000), Some(500), None], pool 0, expandable false, frames 0 1, scopes 0
        1.13: requested None [Some(1000), Some(500), None], pool 0, expandable false, frames 0 1, scopes 0
        2.0: requested Some(1500) [Some(1000), Some(500), Some(0)], pool 0, expandable false, frames 0 1, time None "" "", settings None 0 0, scopes 0
        2.1: requested Some(1500) [Some(1000), Some(500), Some(0)], pool 1, expandable true, frames 1 1, time None "" "", settings None 0 0, scopes 0
        2.2: requested Some(1500) [Some(1000), Some(500), Some(0)], pool 1, expandable true, frames 1 1, time Some(1795238135683524) "" "", settings None 0 1, scopes 0
        2.3: requested Some(1500) [Some(1000), Some(500), Some(0)], pool 1, expandable true, frames 1 1, time Some(1795238135683524) "" "", settings Some(24) 1 1, scopes 0
        2.4: requested Some(1500) [Some(1000), Some(500), Some(0)], pool 1, expandable true, frames 1 1, time Some(1795238135683524) "" "", settings Some(24) 1 1, scopes 0
        2.5: requested Some(1500) [Some(1000), Some(500), Some(0)], pool 1, expandable true, frames 1 1, time Some(1795238135683524) "" "", settings Some(24) 1 1, scopes 1
        2.6: requested Some(1500) [Some(1000), Some(500), Some(0)], pool 1, expandable true, frames 1 1, time Some(1795238135683524) "" "", settings Some(24) 1 1, scopes 1
        2.8: requested Some(1500) [Some(1000), Some(500), Some(0)], pool 1, expandable true, frames 1 1, time Some(1795238135683524) "0/0" "", settings Some(24) 1 1, scopes 1
        2.10: requested Some(1500) [Some(1000), Some(500), Some(0)], pool 1, expandable true, frames 1 1, time Some(1795238135683524) "0/0" "weights", settings Some(24) 1 2, scopes 1
        2.11: requested Some(1500) [Some(1000), Some(500), Some(0)], pool 1, expandable true, frames 1 1, time Some(1795238135683524) "0/0" "weights", settings Some(24) 1 2, scopes 1
        2.15: requested Some(1500) [Some(1000), Some(500), Some(0)], pool 1, expandable true, frames 1 1, time Some(1795238135683524) "0/0" "weights", settings Some(24) 1 2, scopes 1
    "#]].assert_eq(&table);
}
