//! Blocks that collectives hold: PyTorch keeps the tensors of a collective that nobody has waited for until a thread of
//! its own finds it complete (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, `Watchdog::runLoop`).
//!
//! These are the buckets of DDP, whose reducer waits for futures (torch/csrc/distributed/c10d/reducer.cpp,
//! `Reducer::finalize_backward`), and no others: `Work.wait` lets go at once.

use super::Streams;
use std::collections::BTreeMap;
use xmem_analyzer::recording::{ActivityKind, CollectiveKind, SharingKind, StreamActivity};
use xmem_analyzer::{Profile, Tick};
use xmem_types::{Addr, BlockId, Nanos};

/// The blocks that all-reduces of DDP hold, each with the time and the stream.
pub(super) fn held(profile: &Profile, activity: &StreamActivity) -> Vec<(Nanos, u32, BlockId)> {
    let sharding = profile.recording().and_then(|recording| recording.sharding.as_ref());
    let groups = sharding.map_or(&[][..], |sharding| &sharding.groups);
    if !groups.iter().any(|group| group.kind == SharingKind::Replicated) {
        return Vec::new();
    }
    let base = profile.base_time();
    let mut found = Vec::new();
    for entry in &activity.entries {
        let ActivityKind::Collective { operation: CollectiveKind::AllReduce, address, .. } =
            entry.kind
        else {
            continue;
        };
        let time = entry.time - base;
        if let Some(block) = block_at(profile, address, time) {
            found.push((time, entry.stream, block));
        }
    }
    found
}

/// The block at an address, by the last allocation before.
fn block_at(profile: &Profile, address: Addr, time: Nanos) -> Option<BlockId> {
    let before = profile.blocks.partition_point(|block| block.alloc_time <= time);
    let row = profile.blocks[..before].iter().rposition(|block| {
        let end = block.address.0.saturating_add(block.size.get());
        (block.address.0..end).contains(&address.0)
    })?;
    profile.blocks[row].free_time.is_none_or(|free| free > time).then(|| BlockId::new(row))
}

/// Which of them are still held.
#[derive(Default)]
pub(super) struct Held {
    /// The last collective of each block.
    by: BTreeMap<BlockId, u64>,
    /// Blocks that the program has freed.
    waiting: BTreeMap<BlockId, u64>,
    freed: BTreeMap<BlockId, Option<(Tick, Nanos)>>,
}

impl Held {
    pub(super) fn hold(&mut self, block: BlockId, collective: u64) {
        self.by.insert(block, collective);
    }

    pub(super) fn free(&mut self, block: BlockId, streams: &impl Streams) {
        if let Some(collective) = self.by.remove(&block).filter(|c| !streams.has_let_go(*c)) {
            self.waiting.insert(block, collective);
            self.freed.insert(block, None);
        }
    }

    pub(super) fn let_go(&mut self, at: (Tick, Nanos), streams: &impl Streams) {
        let freed = &mut self.freed;
        self.waiting.retain(|block, collective| {
            let is_held = !streams.has_let_go(*collective);
            if !is_held {
                freed.insert(*block, Some(at));
            }
            is_held
        });
    }

    pub(super) fn freed(self) -> BTreeMap<BlockId, Option<(Tick, Nanos)>> {
        self.freed
    }
}
