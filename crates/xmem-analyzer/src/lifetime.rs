//! The parts of a block that its memory events show.

use xmem_types::{Addr, Bytes, Nanos, OpId, ThreadIdx};

/// A position in the time order of the analyzed device's memory events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u32);

impl Tick {
    /// Behind all other positions.
    pub const NEVER: Self = Self(u32::MAX);
}

/// The part of a [`Block`](crate::Block) that the memory events show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    pub(crate) size: Bytes,
    pub(crate) address: Addr,
    pub(crate) thread: ThreadIdx,
    pub(crate) alloc: Tick,
    pub(crate) alloc_time: Nanos,
    pub(crate) free: Option<Tick>,
    pub(crate) free_time: Option<Nanos>,
}

/// The part of a [`Block`](crate::Block) that the operators show: those in which it is allocated and
/// freed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) op: Option<OpId>,
    pub(crate) freed_in: Option<OpId>,
}
