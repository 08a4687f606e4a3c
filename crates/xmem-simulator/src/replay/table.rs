//! From the caller's block numbers to the allocator's handles.

use crate::allocator::BlockHandle;
use rustc_hash::FxHashMap;
use xmem_types::{BlockId, Request};

const NEVER: u32 = u32::MAX;
const FREED: u32 = u32::MAX - 1;
/// Allocated, but no memory behind it: zero bytes, or more than any device has.
const NOTHING: u32 = u32::MAX - 2;

/// The state of a number before an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allocated {
    Once,
    Twice,
}

/// The meaning of a number that is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freed {
    Block(BlockHandle),
    Nothing,
    Again,
    Unknown,
}

/// The state of each block number. A number may be used anew after its block was freed.
#[derive(Clone, Debug)]
pub(super) struct BlockTable {
    states: States,
    /// Blocks whose number was given to another block while they were in use.
    orphans: Vec<(BlockId, BlockHandle)>,
}

/// Numbers are normally dense; where they are not, a table over all of them would be too large.
#[derive(Clone, Debug)]
enum States {
    Dense(Vec<u32>),
    Sparse(FxHashMap<BlockId, u32>),
}

impl BlockTable {
    pub(super) fn for_requests(requests: &[Request]) -> Self {
        let span = requests.iter().map(|r| r.block.index() + 1).max().unwrap_or(0);
        let dense = span <= requests.len().saturating_mul(4).saturating_add(1024);
        let states = if dense {
            States::Dense(vec![NEVER; span])
        } else {
            States::Sparse(FxHashMap::default())
        };
        Self { states, orphans: Vec::new() }
    }

    /// A table for numbers that are not known yet.
    pub(super) fn sparse() -> Self {
        Self { states: States::Sparse(FxHashMap::default()), orphans: Vec::new() }
    }

    /// The block behind a number in use.
    pub(super) fn handle(&self, id: BlockId) -> Option<BlockHandle> {
        self.state_of(id).filter(|&state| state < NOTHING).map(BlockHandle)
    }

    /// Returns whether a number is in use, with or without memory behind it.
    pub(super) fn is_held(&self, id: BlockId) -> bool {
        self.state_of(id).is_some_and(|state| state <= NOTHING)
    }

    fn state_of(&self, id: BlockId) -> Option<u32> {
        match &self.states {
            States::Dense(states) => states.get(id.index()).copied(),
            States::Sparse(states) => states.get(&id).copied(),
        }
    }

    fn state(&mut self, id: BlockId) -> &mut u32 {
        match &mut self.states {
            States::Dense(states) => &mut states[id.index()],
            States::Sparse(states) => states.entry(id).or_insert(NEVER),
        }
    }

    pub(super) fn allocate(&mut self, id: BlockId, handle: BlockHandle) -> Allocated {
        let before = std::mem::replace(self.state(id), handle.0);
        if before >= NOTHING {
            return Allocated::Once;
        }
        self.orphans.push((id, BlockHandle(before)));
        Allocated::Twice
    }

    pub(super) fn allocate_nothing(&mut self, id: BlockId) {
        let before = std::mem::replace(self.state(id), NOTHING);
        if before < NOTHING {
            self.orphans.push((id, BlockHandle(before)));
        }
    }

    pub(super) fn free(&mut self, id: BlockId) -> Freed {
        let state = self.state(id);
        match *state {
            NEVER => Freed::Unknown,
            FREED => Freed::Again,
            NOTHING => {
                *state = FREED;
                Freed::Nothing
            }
            slot => {
                *state = FREED;
                Freed::Block(BlockHandle(slot))
            }
        }
    }

    /// The blocks in use, in no particular order.
    pub(super) fn live(&self) -> impl Iterator<Item = (BlockId, BlockHandle)> {
        let (dense, sparse) = match &self.states {
            States::Dense(states) => (Some(states), None),
            States::Sparse(states) => (None, Some(states)),
        };
        let dense =
            dense.into_iter().flatten().enumerate().map(|(i, &slot)| (BlockId(i as u32), slot));
        let sparse = sparse.into_iter().flatten().map(|(&id, &slot)| (id, slot));
        dense
            .chain(sparse)
            .filter(|&(_, slot)| slot < NOTHING)
            .map(|(id, slot)| (id, BlockHandle(slot)))
            .chain(self.orphans.iter().copied())
    }
}
