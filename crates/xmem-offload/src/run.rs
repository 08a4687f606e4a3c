//! The result of a simulation.

use crate::budget::Waiting;
use crate::events::{EventKind, MemoryEvent, Piece};
use crate::graph::StepId;
use crate::overlap::{Span, shared, total, union};
use crate::placement::PlaceError;
use crate::transfer::{Direction, Transfer};
use xmem_types::{BlockId, Bytes, Nanos};

/// A step that was run with a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The time from the first computation to the end of the last computation or copy.
    pub step_time: Nanos,
    /// The spans in which the device computes, by step, with what is computed again before it.
    pub computing: Vec<(Nanos, Nanos)>,
    /// The copies, in the order in which they were queued.
    pub transfers: Vec<Transfer>,
    /// The time for which an allocation had to wait for memory.
    pub blocked: Nanos,
    /// The time that is spent on computing blocks again.
    pub recomputed: Nanos,
    /// The time that the host computes: the optimizer's step, if it is there.
    pub host_computes: Nanos,
    /// The bytes of the optimizer's state that are on the host for the whole step.
    pub on_host: Bytes,
    /// The saved tensors on the device, if the policy has a budget.
    pub waiting: Option<Waiting>,
    /// The memory events, in order.
    pub events: Vec<MemoryEvent>,
    /// The pieces of memory that they are about.
    pub pieces: Vec<Piece>,
    /// The allocation that could not be served, if there was one. All figures end there.
    pub out_of_memory: Option<OutOfMemory>,
}

/// An allocation that could not be served, with nothing to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The step.
    pub step: StepId,
    /// The block.
    pub block: BlockId,
    /// Its bytes.
    pub size: Bytes,
    /// The bytes that were live.
    pub live: Bytes,
    /// The reason.
    pub reason: PlaceError,
}

impl Run {
    /// The time that the device computes.
    #[must_use]
    pub fn compute(&self) -> Nanos {
        total(&self.computing)
    }

    /// The time in which something is copied.
    #[must_use]
    pub fn copying(&self) -> Nanos {
        total(&self.copies())
    }

    /// The time in which the device computes and something is copied.
    #[must_use]
    pub fn overlapped(&self) -> Nanos {
        shared(&union(self.computing.clone()), &self.copies())
    }

    /// The time in which something is copied while nothing is computed.
    #[must_use]
    pub fn exposed(&self) -> Nanos {
        self.copying() - self.overlapped()
    }

    /// The bytes that are copied in a direction.
    #[must_use]
    pub fn moved(&self, direction: Direction) -> Bytes {
        let those = self.transfers.iter().filter(|transfer| transfer.direction == direction);
        those.map(|transfer| transfer.size).sum()
    }

    /// The most bytes that are live on the device at once.
    #[must_use]
    pub fn peak_live(&self) -> Bytes {
        self.live().map(|(_, live)| live).max().unwrap_or_default()
    }

    /// The live bytes on the device after each event.
    pub fn live(&self) -> impl Iterator<Item = (MemoryEvent, Bytes)> + '_ {
        self.events.iter().scan(Bytes::ZERO, |live, &event| {
            let size = self.pieces[event.piece.index()].size;
            *live = match event.kind {
                EventKind::Alloc => *live + size,
                EventKind::Free => *live - size,
            };
            Some((event, *live))
        })
    }

    /// The most pinned memory of the host that holds blocks at once: each from the start of its copy to the host to the
    /// end of its copy back.
    #[must_use]
    pub fn pinned_peak(&self) -> Bytes {
        let mut changes: Vec<(Nanos, i128)> = self
            .transfers
            .iter()
            .map(|transfer| {
                let size = i128::from(transfer.size.get());
                match transfer.direction {
                    Direction::ToHost => (transfer.start, size),
                    Direction::ToDevice => (transfer.end, -size),
                }
            })
            .collect();
        changes.sort_unstable();
        let mut pinned = 0;
        let sums = changes.into_iter().map(|(_, change)| {
            pinned += change;
            pinned
        });
        Bytes(u64::try_from(sums.max().unwrap_or(0)).unwrap_or(0))
    }

    fn copies(&self) -> Vec<Span> {
        union(self.transfers.iter().map(|transfer| (transfer.start, transfer.end)).collect())
    }
}
