//! Whether an allocator's history agrees with what else a recording says: the history beside a trace with the memory
//! events, that of a snapshot with its segments and blocks.

use super::Integrity;
use super::checks::{
    BLOCK_SIZES, CONTRADICTING, HISTORY, IMPOSSIBLE_SNAPSHOT, LIVE_ADDRESS, LOST_HISTORY, RESERVED,
    SEGMENT_SUMS, SEGMENTS, UNREACHED,
};
use xmem_types::Diagnostics;

/// What a memory snapshot shows that no allocator leaves behind: each count with the number of what was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotEvidence {
    /// Entries of the history that contradict the segments, as the history is undone from its end.
    pub contradicting: (u64, u64),
    /// Segments and entries that are impossible by themselves.
    pub impossible: (u64, u64),
    /// Segments whose sizes are not the sums of their blocks.
    pub sums: (u64, u64),
    /// Blocks whose sizes are not multiples of 512 bytes, or less than what was requested.
    pub blocks: (u64, u64),
    /// Segments whose sizes are not multiples of 2 MiB.
    pub segments: (u64, u64),
    /// Segments of the history that no allocation needs.
    pub unexplained: (u64, u64),
    /// Allocations at an address that is in use.
    pub live_address: (u64, u64),
}

impl SnapshotEvidence {
    /// The integrity of the snapshot.
    pub(crate) fn integrity(&self) -> Integrity {
        let mut integrity = Integrity::default();
        for (check, count) in [
            (&CONTRADICTING, self.contradicting),
            (&IMPOSSIBLE_SNAPSHOT, self.impossible),
            (&SEGMENT_SUMS, self.sums),
            (&BLOCK_SIZES, self.blocks),
            (&RESERVED, self.segments),
            (&SEGMENTS, self.unexplained),
            (&LIVE_ADDRESS, self.live_address),
        ] {
            integrity.add(check, count, None);
        }
        integrity
    }
}

impl Integrity {
    /// Adds that more memory was reserved in the recording than its replay reserves, where the device holds only that,
    /// and reports it.
    pub fn add_unreached_peak(&mut self, notes: &mut Diagnostics) {
        let before = self.findings.len();
        self.add(&UNREACHED, (1, 1), None);
        Self::report_all(&self.findings[before..], notes);
    }

    /// Adds that a recording lacks the allocator's history, and reports it.
    pub(crate) fn add_lost_history(&mut self, notes: &mut Diagnostics) {
        let before = self.findings.len();
        self.add(&LOST_HISTORY, (1, 1), None);
        Self::report_all(&self.findings[before..], notes);
    }

    /// Adds what the comparison of the memory events with the allocator's history found, and reports it.
    pub(crate) fn add_history(&mut self, found: (u64, u64), notes: &mut Diagnostics) {
        let before = self.findings.len();
        self.add(&HISTORY, found, None);
        Self::report_all(&self.findings[before..], notes);
    }
}
