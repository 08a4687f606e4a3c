//! The blocks that are handed out, and the two figures that such allocators have.

use crate::allocator::{BlockHandle, BlockView, RequestIndex, SegmentId, Stat, Stats};
use xmem_types::{Addr, Bytes, StreamId};

/// The blocks that are handed out, with their totals.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    blocks: Vec<BlockView>,
    vacant: Vec<u32>,
    allocated: Stat<Bytes>,
    reserved: Stat<Bytes>,
    requested: Stat<Bytes>,
    count: Stat<u64>,
    pub(super) ooms: u64,
}

/// A block to be added.
pub(super) struct Entry {
    pub(super) addr: Addr,
    pub(super) size: Bytes,
    pub(super) requested: Bytes,
    pub(super) segment: SegmentId,
    pub(super) stream: StreamId,
    pub(super) at: RequestIndex,
}

impl Ledger {
    pub(super) fn add(&mut self, entry: Entry) -> BlockHandle {
        let Entry { addr, size, requested, segment, stream, at } = entry;
        let view = BlockView { addr, size, requested, segment, stream, born: at };
        raise(&mut self.allocated, size);
        raise(&mut self.requested, requested);
        self.count.current += 1;
        self.count.allocated += 1;
        self.count.peak = self.count.peak.max(self.count.current);
        if let Some(slot) = self.vacant.pop() {
            self.blocks[slot as usize] = view;
            return BlockHandle::new(slot);
        }
        let slot = u32::try_from(self.blocks.len()).expect("fewer than 2^32 blocks at a time");
        self.blocks.push(view);
        BlockHandle::new(slot)
    }

    pub(super) fn remove(&mut self, block: BlockHandle) -> BlockView {
        let view = *self.get(block);
        self.vacant.push(block.slot());
        lower(&mut self.allocated, view.size);
        lower(&mut self.requested, view.requested);
        self.count.current -= 1;
        self.count.freed += 1;
        view
    }

    pub(super) fn get(&self, block: BlockHandle) -> &BlockView {
        &self.blocks[block.slot() as usize]
    }

    /// The device holds this much now.
    pub(super) fn reserve(&mut self, now: Bytes) {
        let before = self.reserved.current;
        if now > before {
            raise(&mut self.reserved, now - before);
        } else {
            lower(&mut self.reserved, before - now);
        }
    }

    /// Bytes of all blocks handed out.
    pub(super) fn in_use(&self) -> Bytes {
        self.allocated.current
    }

    /// Bytes that the device gave.
    pub(super) fn held(&self) -> Bytes {
        self.reserved.current
    }

    pub(super) fn reset_peaks(&mut self) {
        for stat in [&mut self.allocated, &mut self.reserved, &mut self.requested] {
            stat.peak = stat.current;
        }
        self.count.peak = self.count.current;
    }

    pub(super) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        stats.allocation.all = self.count;
        stats.active.all = self.count;
        stats.allocated_bytes.all = self.allocated;
        stats.active_bytes.all = self.allocated;
        stats.requested_bytes.all = self.requested;
        stats.reserved_bytes.all = self.reserved;
        stats.num_ooms = self.ooms;
        stats
    }
}

fn raise(stat: &mut Stat<Bytes>, by: Bytes) {
    stat.current += by;
    stat.allocated += by;
    stat.peak = stat.peak.max(stat.current);
}

fn lower(stat: &mut Stat<Bytes>, by: Bytes) {
    stat.current -= by;
    stat.freed += by;
}
