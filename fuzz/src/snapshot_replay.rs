//! What the fuzz target of replayed memory snapshots checks.

use xmem_eval::{Limits, RerunOptions, SnapshotFacts, read_snapshot, rerun};
use xmem_types::Bytes;

/// Describing and replaying a memory snapshot ends.
pub(crate) fn replay(data: &[u8]) {
    let limits = Limits { memory: Bytes::mib(64), ..Limits::default() };
    let Ok((snapshot, notes)) = read_snapshot(data, &limits) else { return };
    std::hint::black_box(SnapshotFacts::of(&snapshot, &notes, 10));
    if let Ok(rerun) = rerun(&snapshot, &RerunOptions::default()) {
        std::hint::black_box(format!("{rerun:?}"));
    }
}
