//! Snapshots that PyTorch wrote.

#![expect(clippy::disallowed_methods, reason = "the test cases are files")]
#![expect(clippy::print_stderr, reason = "`--nocapture` lists what is in a folder of snapshots")]

use crate::random::target;
use crate::written::written;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use xmem_snapshot::{
    Action, AnnotationStage, DeviceIndex, Limits, PoolId, SegmentKind, Setting, Snapshot,
    SnapshotError, Usage, read,
};
use xmem_types::{Bytes, Diagnostics, RequestKind, StreamId};

const DEVICE: DeviceIndex = DeviceIndex(0);

/// The pickle in a file of the folder.
pub(crate) fn pickle(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    match path.extension() {
        Some(extension) if extension == "zst" => zstd::decode_all(&bytes[..]).unwrap(),
        _ => bytes,
    }
}

fn mlp_adam() -> Vec<u8> {
    pickle(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mlp_adam.pickle.zst"))
}

fn counts(snapshot: &Snapshot) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for entry in snapshot.trace(DEVICE) {
        *counts.entry(format!("{:?}", entry.action)).or_default() += 1;
    }
    counts
}

#[test]
fn mlp_adam_is_what_pytorch_said_it_is() {
    let (snapshot, diagnostics) = read(&mlp_adam(), &Limits::default()).unwrap();
    assert!(diagnostics.is_empty(), "{diagnostics:?}");

    assert_eq!(snapshot.segments.len(), 19);
    let small = snapshot.segments.iter().filter(|s| s.kind == SegmentKind::Small).count();
    assert!(snapshot.segments.iter().all(|s| s.pool == PoolId(0, 0) && !s.expandable));
    assert!(small > 0 && small < 19);
    assert_eq!(snapshot.device_traces.len(), 1);
    let expected =
        [("Alloc", 156), ("FreeCompleted", 121), ("FreeRequested", 121), ("SegmentAlloc", 19)];
    assert_eq!(counts(&snapshot), expected.map(|(name, n)| (name.to_owned(), n)).into());

    // memory_stats of the same process: requested_bytes.all, reserved_bytes.all, allocated_bytes.all.
    let (usage, diagnostics) = snapshot.usage(DEVICE);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let course = |peak, end| Usage { start: Bytes(0), peak: Bytes(peak), end: Bytes(end) };
    assert_eq!(usage.requested, course(228_861_132, 186_286_240));
    assert_eq!(usage.reserved, course(262_144_000, 262_144_000));
    let allocated: Bytes = snapshot.segments.iter().map(|s| s.allocated).sum();
    assert_eq!(allocated, Bytes(186_288_128));

    let recorded = snapshot.requests(DEVICE);
    assert_eq!(recorded.requests.len(), 156 + 121);
    assert_eq!((recorded.frees_without_allocation, recorded.unrecorded_frees), (0, 0));
    let first = RequestKind::Alloc { size: Bytes::mib(8), stream: StreamId(0) };
    assert_eq!((recorded.requests[0].kind, recorded.entries[0].0), (first, 1));

    let settings = snapshot.allocator_settings.as_ref().unwrap();
    assert_eq!((settings.text.as_deref(), settings.max_split_size), (Some(""), None));
    assert_eq!(settings.roundup_power2_divisions.len(), 16);
    assert_eq!(settings.other["release_lock_on_cudamalloc"], Setting::Bool(false));

    let stack = snapshot.frames.stack(snapshot.device_traces[0][0].stack);
    let inner = snapshot.frames.frame(stack[0]);
    let text = |sym| snapshot.strings.resolve(sym);
    assert_eq!(
        (stack.len(), text(inner.name), text(inner.filename), inner.line),
        (6, "convert", "torch/nn/modules/module.py", 1370)
    );
    assert_eq!(text(snapshot.annotations[0].name), "## init ##");
    assert_eq!(snapshot.annotations[0].stage, AnnotationStage::Start);
}

#[test]
fn mlp_adam_cut_off_or_damaged_is_told() {
    let bytes = mlp_adam();
    for length in (1..bytes.len()).step_by(61) {
        match read(&bytes[..length], &Limits::default()) {
            Err(SnapshotError::Truncated { at, .. }) => assert_eq!(at, length),
            other => panic!("{length} bytes: {:?}", other.map(|_| ())),
        }
    }
    for at in (0..bytes.len()).step_by(127) {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            target::read_and_use(&damaged);
        }
    }
}

/// Checks properties of any snapshot that PyTorch wrote at the end of its trace.
fn check_any(path: &Path, snapshot: &Snapshot, diagnostics: &Diagnostics) {
    let name = path.display();
    assert!(diagnostics.is_empty(), "{name}: {diagnostics:?}");
    for device in 0..snapshot.device_traces.len() {
        let device = DeviceIndex(u32::try_from(device).unwrap());
        let (usage, diagnostics) = snapshot.usage(device);
        assert!(diagnostics.is_empty(), "{name}: {diagnostics:?}");
        let recorded = snapshot.requests(device);
        let frees = snapshot.trace(device).iter();
        let frees = frees.filter(|e| e.action == Action::FreeRequested).count() as u64;
        let requested = recorded.requests.iter();
        let requested = requested.filter(|r| r.kind == RequestKind::Free).count() as u64;
        assert_eq!(requested + recorded.frees_without_allocation, frees, "{name}");
        assert_eq!(recorded.unrecorded_frees, 0, "{name}");
        eprintln!(
            "{name}: {} segments, {} entries, {} requests, {} warm frees, {} stacks, {} frames, \
             requested {:?}, reserved {:?}",
            snapshot.segments.len(),
            snapshot.trace(device).len(),
            recorded.requests.len(),
            recorded.frees_without_allocation,
            snapshot.frames.stack_count(),
            snapshot.frames.frame_count(),
            usage.requested,
            usage.reserved,
        );
    }
}

/// Written and read again, it is the same.
fn check_written(path: &Path, snapshot: &Snapshot) {
    let bytes = written(snapshot);
    let (again, diagnostics) = read(&bytes, &Limits::default()).unwrap();
    assert!(diagnostics.is_empty(), "{}: {diagnostics:?}", path.display());
    assert!(again == *snapshot, "{}", path.display());
    eprintln!("{}: written as {} bytes", path.display(), bytes.len());
}

/// The recorded snapshots at hand.
pub(crate) fn folder() -> Vec<PathBuf> {
    let folder = std::env::var_os("XMEM_SNAPSHOTS")
        .map_or(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"), PathBuf::from);
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.to_string_lossy().contains(".pickle")).collect();
    files.sort();
    assert!(!files.is_empty(), "no snapshot in the folder");
    files
}

#[test]
fn recorded_snapshots_of_a_folder_are_read_without_complaint() {
    for path in folder() {
        let (snapshot, diagnostics) = read(&pickle(&path), &Limits::default())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        check_any(&path, &snapshot, &diagnostics);
        check_written(&path, &snapshot);
    }
}
