//! Items turned into requests.

use super::{Draft, Place};
use crate::schedule::{Schedule, ScheduledBlock};
use crate::uncertainty::{UncertainBlock, UncertainPlace};
use xmem_types::{BlockId, Bytes, Request, RequestKind, StreamId};

/// An event in program order. At one place, allocations come before frees, blocks come in their order,
/// and blocks that are not expected come last.
type Event = (Place, Change, Subject);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Alloc,
    Free,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Block(BlockId),
    /// A row of [`Schedule::uncertain`] that is not expected.
    Unexpected(u32),
}

impl Draft<'_> {
    /// The requests of the items that are left, in program order.
    pub(crate) fn finish(self) -> Schedule {
        let (effects, fallbacks) = (self.effects, self.fallbacks);
        let mut schedule = Schedule { effects, fallbacks, ..Schedule::default() };
        let live = self.items.iter().filter(|i| i.is_live()).count();
        let mut events: Vec<Event> = Vec::with_capacity(2 * live);
        schedule.blocks.reserve_exact(live);
        for item in self.items.into_iter().filter(|i| !i.dropped) {
            let mut lives = |subject| {
                events.push((item.alloc, Change::Alloc, subject));
                if !item.free.is_never() {
                    events.push((item.free.max(item.alloc), Change::Free, subject));
                }
            };
            if let Some(range) = item.range.as_deref().filter(|_| item.size == Bytes::ZERO) {
                lives(Subject::Unexpected(schedule.uncertain.len() as u32));
                let place = UncertainPlace::Between { alloc: 0, free: None };
                schedule.uncertain.push(UncertainBlock { range: *range, place });
                continue;
            }
            let block = BlockId::new(schedule.blocks.len());
            lives(Subject::Block(block));
            if let Some(list) = item.fallback {
                if item.is_trial {
                    schedule.fallbacks.assign_trial(block, list);
                } else {
                    schedule.fallbacks.assign(block, list);
                }
            }
            if let Some(range) = item.range {
                let place = UncertainPlace::Block(block);
                schedule.uncertain.push(UncertainBlock { range: *range, place });
            }
            schedule.blocks.push(ScheduledBlock {
                size: item.size,
                role: item.role,
                origin: item.origin,
                rule: item.rule.map(|id| schedule.effects[id.index()].rule),
                unmodeled: item.unmodeled,
            });
        }
        // No two events are equal.
        events.sort_unstable();
        schedule.order(events);
        schedule
    }
}

impl Schedule {
    /// Writes down the requests of sorted events, and the places of blocks that are not expected.
    fn order(&mut self, events: Vec<Event>) {
        self.times.reserve_exact(events.len());
        self.requests.reserve_exact(events.len());
        for (at, change, subject) in events {
            let row = self.requests.len();
            match (subject, change) {
                (Subject::Block(block), _) => {
                    let size = self.blocks[block.index()].size;
                    let kind = match change {
                        Change::Alloc => RequestKind::Alloc { size, stream: StreamId(0) },
                        Change::Free => RequestKind::Free,
                    };
                    self.times.push(at.time());
                    self.requests.push(Request { block, kind });
                }
                (Subject::Unexpected(which), Change::Alloc) => {
                    let place = UncertainPlace::Between { alloc: row, free: None };
                    self.uncertain[which as usize].place = place;
                }
                (Subject::Unexpected(which), Change::Free) => {
                    let place = &mut self.uncertain[which as usize].place;
                    if let UncertainPlace::Between { free, .. } = place {
                        *free = Some(row);
                    }
                }
            }
        }
    }
}
