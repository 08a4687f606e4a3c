//! The state when the recording began: the segments at the moment of the snapshot, with the
//! trace undone entry by entry, last first, as the memory_viz page does it.
//!
//! The end is known exactly. Going back, everything is known but the sizes of blocks that were
//! freed (the trace has what was requested, not what the block had beyond that), and those follow
//! from one rule: no two free blocks lie side by side, as the allocator merges them.

mod layout;

use super::Recording;
use super::pages::Pages;
use crate::tally::Tally;
use layout::{Layout, Range, Use};
use xmem_simulator::{
    AllocatorConfig, BlockState, BlockUse, PoolKind, PrivatePoolId, SegmentId, SegmentState,
};
use xmem_snapshot::{Action, PoolId, Snapshot, TraceEntry};
use xmem_types::{Addr, Bytes};

/// The state when the recording began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    /// Segments and blocks, as the simulator sees addresses.
    pub(crate) segments: Vec<SegmentState>,
    pub(crate) uncertainty: StartUncertainty,
    /// Free blocks whose beginning is not certain.
    open_ended: Vec<Addr>,
}

/// The parts of the initial state that going back leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartUncertainty {
    /// Entries that do not go together with the segments of the snapshot, as when the recording
    /// was stopped before the snapshot was taken.
    pub contradictions: u64,
    /// Blocks that were freed in the recording, allocated before it, and followed by free memory:
    /// they may have been up to 1 MiB larger than what was requested, and that memory smaller.
    pub open_ended: u64,
    /// Of those, blocks that were larger: later blocks did not go where they would have gone
    /// otherwise.
    pub refined: u64,
    /// Entries at the beginning that are left out, as they may be the rest of something.
    pub left_out: u64,
}

impl Start {
    /// Undoes the whole trace.
    pub(crate) fn of(recording: &Recording<'_>, config: &AllocatorConfig) -> Self {
        let mut rewind = Rewind {
            layout: Layout::of(recording),
            config,
            pages: Pages::of(recording, config),
            recording,
            contradictions: 0,
        };
        for entry in recording.trace().iter().rev() {
            rewind.undo(entry);
        }
        rewind.finish()
    }

    pub(crate) fn reserved(&self) -> Bytes {
        self.segments.iter().map(|segment| segment.size).sum()
    }

    /// Blocks in use.
    pub(crate) fn held(&self) -> Tally {
        let mut held = Tally::default();
        let blocks = self.segments.iter().flat_map(|segment| &segment.blocks);
        for block in blocks.filter(|block| block.used == BlockUse::Allocated) {
            held.add(block.size);
        }
        held
    }

    /// The free block at `addr`, of which the beginning is not certain, was smaller by at least
    /// `less`: that belonged to the block before. False if that cannot be.
    pub(crate) fn narrow(&mut self, addr: Addr, less: Bytes, config: &AllocatorConfig) -> bool {
        let Some(row) = self.open_ended.iter().position(|&open| open == addr) else { return false };
        for segment in &mut self.segments {
            let Some(free) = segment.blocks.iter().position(|block| block.addr == addr) else {
                continue;
            };
            let [.., owner, gap] = &mut segment.blocks[..=free] else { return false };
            let most = config.rounded(owner.requested) + config.small_size;
            if owner.size + less > most || less >= gap.size {
                return false;
            }
            owner.size += less;
            gap.size -= less;
            gap.addr = Addr(addr.0 + less.get());
            self.open_ended[row] = gap.addr;
            self.uncertainty.refined += 1;
            return true;
        }
        false
    }
}

struct Rewind<'r, 's> {
    layout: Layout,
    config: &'r AllocatorConfig,
    pages: Pages,
    recording: &'r Recording<'s>,
    contradictions: u64,
}

/// The entry contradicts the present state.
struct Contradiction;

impl Rewind<'_, '_> {
    fn undo(&mut self, entry: &TraceEntry) {
        let (addr, size) = (self.recording.to_simulated(entry.addr), entry.size);
        let done = match entry.action {
            Action::Alloc => self.undo_alloc(addr),
            Action::FreeCompleted => self.undo_completion(addr, size),
            Action::FreeRequested => self.undo_request(addr, size),
            Action::SegmentAlloc => self.layout.remove_range(addr, size),
            Action::SegmentFree => {
                let small = size == self.config.small_buffer;
                let kind = if small { PoolKind::Small } else { PoolKind::Large };
                self.layout.add_range(addr, size, Range::segment(entry.stream, kind))
            }
            Action::SegmentMap => self.layout.remove_pages(addr, size),
            Action::SegmentUnmap => {
                let kind = self.pages.kind(addr, size);
                self.layout.add_range(addr, size, Range::pages(entry.stream, kind))
            }
            Action::OutOfMemory { .. } | Action::Snapshot | Action::Annotate | Action::Other(_) => {
                Ok(())
            }
        };
        self.contradictions += u64::from(done.is_err());
    }

    /// The block was free before, and merged with what is free behind it. If what lies before it
    /// is free, then it is not: it belongs to the block before, whose size was guessed too small.
    fn undo_alloc(&mut self, addr: Addr) -> Result<(), Contradiction> {
        let block = self.layout.block_mut(addr).filter(|block| block.used != Use::Free);
        block.ok_or(Contradiction)?.used = Use::Free;
        let explained = self.layout.explain_gap_before(addr);
        self.layout.merge(addr);
        explained
    }

    /// A part of a free block was in use until here.
    fn undo_completion(&mut self, addr: Addr, requested: Bytes) -> Result<(), Contradiction> {
        let size = self.config.rounded(requested);
        self.layout.carve(addr, size, requested)
    }

    fn undo_request(&mut self, addr: Addr, requested: Bytes) -> Result<(), Contradiction> {
        let block = self.layout.block_mut(addr).filter(|block| block.used == Use::Pending);
        let block = block.ok_or(Contradiction)?;
        block.used = Use::Held;
        block.requested = requested;
        Ok(())
    }

    fn finish(mut self) -> Start {
        let open_ended = self.layout.settle_guesses(self.config);
        let groups = self.layout.groups();
        let mut next = groups.len();
        let mut segments = Vec::new();
        for (addr, range) in self.layout.ranges() {
            let group = groups.iter().position(|group| range.expandable && group.same_pool(range));
            let segment = group.unwrap_or_else(|| {
                next += 1;
                next - 1
            });
            segments.push(SegmentState {
                segment: SegmentId(u32::try_from(segment).expect("a pickle has fewer segments")),
                addr,
                size: range.size,
                stream: range.stream,
                pool: range.kind,
                private_pool: private_pool(self.recording.snapshot, range.pool),
                expandable: range.expandable,
                blocks: self
                    .layout
                    .blocks_of(addr, range)
                    .map(|(addr, block)| block.state(addr))
                    .collect(),
            });
        }
        let uncertainty = StartUncertainty {
            contradictions: self.contradictions,
            open_ended: open_ended.len() as u64,
            refined: 0,
            left_out: self.recording.left_out() as u64,
        };
        Start { segments, uncertainty, open_ended }
    }
}

/// The number that the simulator knows a private pool by; none for the default pool.
pub(crate) fn private_pool(snapshot: &Snapshot, pool: PoolId) -> Option<PrivatePoolId> {
    if pool == PoolId::default() {
        return None;
    }
    let mut pools: Vec<PoolId> = snapshot.segments.iter().map(|segment| segment.pool).collect();
    pools.sort_unstable();
    pools.dedup();
    let row = pools.iter().position(|known| *known == pool)?;
    Some(PrivatePoolId(u32::try_from(row).expect("a pickle has fewer pools")))
}

impl layout::Block {
    fn state(&self, addr: Addr) -> BlockState {
        let used = match self.used {
            Use::Free => BlockUse::Free,
            Use::Held => BlockUse::Allocated,
            Use::Pending => BlockUse::PendingFree,
        };
        let requested = if self.used == Use::Free { Bytes::ZERO } else { self.requested };
        BlockState { addr, size: self.size, requested, used }
    }
}
