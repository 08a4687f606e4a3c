//! The simulator against PyTorch's own allocator: recorded request sequences must give the same
//! addresses, figures, layouts and events, one by one. See `data/README.md` for their origin.
//!
//! Directories in `XMEM_SEQUENCES` and `XMEM_JOBS` are checked as well, if set.

#![expect(clippy::disallowed_methods, reason = "the test cases are files")]

#[path = "../addresses/mod.rs"]
mod addresses;
mod job;
#[path = "../normalized/mod.rs"]
mod normalized;
mod sequence;
mod stats;

use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use xmem_simulator::FrameworkAllocator;
use xmem_types::StreamId;

#[test]
fn generated_sequences_match_pytorch_op_by_op() {
    let cases = cases("sequences", "XMEM_SEQUENCES");
    assert!(cases.len() >= 25, "the recorded sequences are missing");
    let mut failures = String::new();
    for path in cases {
        let case = read(&path);
        let found = sequence::differences(&case);
        if !found.is_empty() {
            let first = &found[0];
            let count = found.len();
            writeln!(failures, "{}: {count} differences, first: {first}", path.display()).unwrap();
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn training_jobs_match_pytorch_address_by_address() {
    let cases = cases("jobs", "XMEM_JOBS");
    assert!(cases.len() >= 4, "the recorded jobs are missing");
    let mut failures = String::new();
    for path in cases {
        let found = job::differences(&read(&path));
        if !found.is_empty() {
            let first = &found[0];
            let count = found.len();
            writeln!(failures, "{}: {count} differences, first: {first}", path.display()).unwrap();
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

fn cases(folder: &str, more: &str) -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let mut paths: Vec<PathBuf> = [Some(own), std::env::var_os(more).map(PathBuf::from)]
        .into_iter()
        .flatten()
        .flat_map(|dir| fs::read_dir(dir).expect("the folder is there"))
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "zst"))
        .collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> Value {
    let packed = fs::read(path).expect("readable");
    let json = zstd::decode_all(&packed[..]).expect("zstd");
    serde_json::from_slice(&json).expect("JSON")
}

fn int(value: &Value) -> u64 {
    value.as_u64().expect("a whole number")
}

fn stream(value: &Value) -> StreamId {
    StreamId(u32::try_from(int(value)).expect("a small number"))
}

/// The address that the recordings count from: the first segment's.
fn base<A: FrameworkAllocator>(allocator: &A) -> u64 {
    allocator.segments().first().map_or(0, |segment| segment.addr.0)
}
