//! The slow model against PyTorch's own allocator. It judges the simulator on random programs
//! (see `tests/oracle`), so it is judged first: by the sequences that were recorded with PyTorch's
//! CUDA build, kernels stubbed.
//!
//! A directory in `XMEM_SEQUENCES` is checked as well, if set.

#![expect(clippy::disallowed_methods, reason = "the test cases are files")]

#[path = "../addresses/mod.rs"]
mod addresses;
#[path = "../model/mod.rs"]
#[expect(dead_code, reason = "the comparison with the simulator asks for more")]
mod model;
#[path = "../normalized/mod.rs"]
mod normalized;
mod sequence;

use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn recorded_sequences_match_the_model_op_by_op() {
    let cases = cases();
    assert!(cases.len() >= 25, "the recorded sequences are missing");
    let mut failures = String::new();
    for path in cases {
        let found = sequence::differences(&read(&path));
        if let Some(first) = found.first() {
            let count = found.len();
            writeln!(failures, "{}: {count} differences, first: {first}", path.display()).unwrap();
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

fn cases() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sequences");
    let mut paths: Vec<PathBuf> =
        [Some(own), std::env::var_os("XMEM_SEQUENCES").map(PathBuf::from)]
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
