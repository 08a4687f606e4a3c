//! The memory of a run: pieces of memory, allocated and freed at some time.

use crate::graph::StepId;
use crate::groups::Group;
use xmem_types::{BlockId, Bytes, Nanos};

/// A piece of memory: a block, or one of the parts of its life if it was on the host in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The block.
    pub block: BlockId,
    /// Its bytes.
    pub size: Bytes,
    /// Where GTBM places it.
    pub group: Group,
}

/// A row of [`Run::pieces`](crate::Run::pieces).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PieceId(pub u32);

impl PieceId {
    /// The row.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An allocation or a free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEvent {
    /// The time.
    pub time: Nanos,
    /// The step that computes, or waits to.
    pub step: StepId,
    /// What happens.
    pub kind: EventKind,
    /// To what.
    pub piece: PieceId,
}

/// What happens to a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It is allocated.
    Alloc,
    /// It is freed.
    Free,
}
