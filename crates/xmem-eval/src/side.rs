//! The requests of a program and the blocks that it holds: one side of a comparison.

use xmem_types::Bytes;

/// A row of [`Side::blocks`].
pub(crate) type BlockRow = usize;

/// Requests in order, and what they come to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    pub(crate) events: Vec<Event>,
    pub(crate) blocks: Vec<BlockLifetime>,
    /// After each event, bytes of blocks in use.
    pub(crate) allocated: Vec<Bytes>,
    /// After each event, bytes of segments.
    pub(crate) reserved: Vec<Bytes>,
}

/// A request that was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    pub(crate) block: BlockRow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Alloc,
    Free,
}

/// A block from its allocation to its free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockLifetime {
    pub(crate) requested: Bytes,
    /// The bytes that it took in its segment.
    pub(crate) size: Bytes,
    /// The event that allocated it; none if it was there before the first.
    pub(crate) alloc: Option<usize>,
    /// The event that freed it.
    pub(crate) free: Option<usize>,
}

impl BlockLifetime {
    /// Returns whether it is in use after event `at`.
    pub(crate) fn is_live(&self, at: usize) -> bool {
        self.alloc.is_none_or(|alloc| alloc <= at) && self.free.is_none_or(|free| free > at)
    }
}

impl Side {
    /// A block of `requested` bytes that takes `size` is allocated.
    pub(crate) fn alloc(&mut self, requested: Bytes, size: Bytes) -> BlockRow {
        let life = BlockLifetime { requested, size, alloc: Some(self.events.len()), free: None };
        self.blocks.push(life);
        self.events.push(Event { kind: EventKind::Alloc, block: self.blocks.len() - 1 });
        self.blocks.len() - 1
    }

    /// A block that was there before the first event.
    pub(crate) fn alloc_before(&mut self, requested: Bytes, size: Bytes) -> BlockRow {
        self.blocks.push(BlockLifetime { requested, size, alloc: None, free: None });
        self.blocks.len() - 1
    }

    pub(crate) fn free(&mut self, block: BlockRow) {
        self.blocks[block].free = Some(self.events.len());
        self.events.push(Event { kind: EventKind::Free, block });
    }

    /// Records the memory that the allocator holds after the last event.
    pub(crate) fn record_usage(&mut self, allocated: Bytes, reserved: Bytes) {
        self.allocated.push(allocated);
        self.reserved.push(reserved);
    }

    /// The first event at which `values` are highest.
    pub(crate) fn peak(values: &[Bytes]) -> Option<usize> {
        let highest = values.iter().max()?;
        values.iter().position(|value| value == highest)
    }

    /// Bytes requested and not freed, after each event, on top of what was there before the
    /// first.
    pub(crate) fn requested(&self) -> Vec<Bytes> {
        let before = self.blocks.iter().filter(|block| block.alloc.is_none());
        let mut now: Bytes = before.map(|block| block.requested).sum();
        let change = |event: &Event| {
            let size = self.blocks[event.block].requested;
            match event.kind {
                EventKind::Alloc => now += size,
                EventKind::Free => now -= size,
            }
            now
        };
        self.events.iter().map(change).collect()
    }
}
