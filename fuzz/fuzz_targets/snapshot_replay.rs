//! Replaying a memory snapshot from arbitrary bytes.

#![no_main]

use xmem_eval::{Limits, RerunOptions, SnapshotFacts, read_snapshot, rerun};
use xmem_types::Bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let limits = Limits { memory: Bytes::mib(64), ..Limits::default() };
    let Ok((snapshot, notes)) = read_snapshot(data, &limits) else { return };
    std::hint::black_box(SnapshotFacts::of(&snapshot, &notes, 10));
    if let Ok(rerun) = rerun(&snapshot, &RerunOptions::default()) {
        std::hint::black_box(format!("{rerun:?}"));
    }
});
