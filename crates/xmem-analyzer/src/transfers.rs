//! The blocks that the recorder's marks refer to.

use crate::lifetime::{Lifetime, Tick};
use crate::marks::{Marks, Move, TransferKind};
use std::collections::BTreeMap;
use xmem_types::{Addr, BlockId, Bytes, Nanos};

/// Memory that would go between host and GPU, or be made there, as the recorder marked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transfer {
    /// Time.
    pub time: Nanos,
    /// Kind.
    pub kind: TransferKind,
    /// Address of the storage in the recording process.
    pub address: Addr,
    /// Its size.
    pub bytes: Bytes,
    /// The block that holds it; none where the trace never saw it allocated (a mapped file, memory
    /// shared with another process or library, what was there before the recording).
    pub block: Option<BlockId>,
}

/// Finds the blocks of all marks, in order of time.
pub(crate) fn resolve(marks: &Marks, lifetimes: &[Lifetime]) -> Vec<Transfer> {
    let mut transfers = of_moves(&marks.moves, lifetimes);
    let kind_at = |time| {
        let span = marks.spans.iter().find(|(_, span)| span.contains(&time));
        span.map(|&(kind, _)| kind)
    };
    let made = lifetimes.iter().enumerate();
    transfers.extend(made.filter_map(|(row, lifetime)| {
        Some(Transfer {
            time: lifetime.alloc_time,
            kind: kind_at(lifetime.alloc_time)?,
            address: lifetime.address,
            bytes: lifetime.size,
            block: Some(BlockId::new(row)),
        })
    }));
    transfers.sort_by_key(|transfer| transfer.time);
    transfers
}

/// Finds the block of each mark: the one that is alive at that time and holds the address.
fn of_moves(moves: &[Move], lifetimes: &[Lifetime]) -> Vec<Transfer> {
    if moves.is_empty() {
        return Vec::new();
    }
    let mut changes: Vec<(Tick, Nanos, Change)> = Vec::with_capacity(lifetimes.len() * 2);
    for (row, lifetime) in lifetimes.iter().enumerate() {
        changes.push((lifetime.alloc, lifetime.alloc_time, Change::Alloc(BlockId::new(row))));
        if let (Some(tick), Some(time)) = (lifetime.free, lifetime.free_time) {
            changes.push((tick, time, Change::Free(BlockId::new(row))));
        }
    }
    // Where an allocation ends the block before it at the same address, that one goes first.
    changes.sort_unstable_by_key(|c| (c.0, matches!(c.2, Change::Alloc(_))));
    let mut changes = changes.into_iter().peekable();
    let mut live = Live::default();
    moves
        .iter()
        .map(|&Move { time, kind, address, bytes }| {
            while let Some((_, _, change)) = changes.next_if(|c| c.1 <= time) {
                live.apply(change, lifetimes);
            }
            Transfer { time, kind, address, bytes, block: live.holding(address, lifetimes) }
        })
        .collect()
}

#[derive(Clone, Copy)]
enum Change {
    Alloc(BlockId),
    Free(BlockId),
}

/// Blocks by address.
#[derive(Default)]
pub(crate) struct Live(BTreeMap<Addr, BlockId>);

impl Live {
    /// Blocks that are never freed within the trace.
    pub(crate) fn at_the_end(lifetimes: &[Lifetime]) -> Self {
        let open = lifetimes.iter().enumerate().filter(|(_, b)| b.free.is_none());
        Self(open.map(|(row, b)| (b.address, BlockId::new(row))).collect())
    }

    fn apply(&mut self, change: Change, lifetimes: &[Lifetime]) {
        match change {
            Change::Alloc(id) => {
                self.0.insert(lifetimes[id.index()].address, id);
            }
            Change::Free(id) => {
                let address = lifetimes[id.index()].address;
                if self.0.get(&address) == Some(&id) {
                    self.0.remove(&address);
                }
            }
        }
    }

    /// The block in which an address lies. Storages begin with their block, but for those that a
    /// program cuts out of another's memory.
    pub(crate) fn holding(&self, address: Addr, lifetimes: &[Lifetime]) -> Option<BlockId> {
        let (start, &id) = self.0.range(..=address).next_back()?;
        (address.0 - start.0 < lifetimes[id.index()].size.get()).then_some(id)
    }
}
