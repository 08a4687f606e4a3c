//! The chunked reader and the plain reader see the same trace, however the text is cut and however
//! many threads parse it.

#![allow(clippy::disallowed_methods, reason = "tests read the recorded traces")]

use crate::support;
use rayon::iter::{IndexedParallelIterator as _, IntoParallelIterator as _, ParallelIterator as _};

use std::path::PathBuf;
use support::{assert_same, read_with};
use xmem_trace::{EventParser, ReadOptions, read_bytes, reference};

/// Every recorded trace of the repository, inflated.
fn recorded() -> Vec<(String, Vec<u8>)> {
    let traces = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&traces).expect("the folder of traces").flatten() {
        let path = entry.path().join("trace.json.zst");
        if path.is_file() {
            let file = std::fs::File::open(&path).expect("readable");
            let text = zstd::decode_all(file).expect("whole zstd file");
            found.push((entry.file_name().to_string_lossy().into_owned(), text));
        }
    }
    found.sort();
    assert!(found.len() >= 10, "the repository holds at least ten recorded traces");
    found
}

#[test]
fn recorded_traces_read_the_same_by_both_readers() {
    let cuts = [(300, 2), (10_007, 4), (65_536, 3), (1 << 30, 1)];
    recorded().into_par_iter().enumerate().for_each(|(index, (name, text))| {
        let (expected, _) = reference::read(&text).expect("a valid trace");
        assert!(expected.memory.len() > 100, "{name} holds memory events");
        for (chunk, threads) in [(256 << 10, 1), (256 << 10, 2), cuts[index % cuts.len()]] {
            let (trace, diagnostics) = read_with(&text, chunk, threads);
            assert_same(&trace, &expected, &format!("{name}, chunk {chunk}, {threads} threads"));
            assert!(diagnostics.is_empty(), "{name}: {diagnostics:?}");
        }
        let options = ReadOptions { parser: EventParser::Tape, ..ReadOptions::default() };
        let (trace, _) = read_bytes(&text, &options).expect("a valid trace");
        assert_same(&trace, &expected, &format!("{name}, by tape"));
        let packed = zstd::encode_all(&text[..], 1).expect("compressible");
        let (trace, _) = read_bytes(&packed, &ReadOptions::default()).expect("a valid trace");
        assert_same(&trace, &expected, &format!("{name}, compressed"));
    });
}
