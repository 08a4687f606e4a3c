//! Items turned into requests.

use super::{Draft, Place};
use crate::schedule::{LeftOut, Schedule, ScheduledBlock};
use crate::uncertainty::{UncertainBlock, UncertainPlace};
use xmem_analyzer::Profile;
use xmem_types::{BlockId, Bytes, Request, RequestKind};

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
        let (profile, effects, fallbacks) = (self.profile(), self.effects, self.fallbacks);
        let mut schedule = Schedule { effects, fallbacks, ..Schedule::default() };
        let live = self.items.iter().filter(|i| i.is_live()).count();
        let mut events: Vec<Event> = Vec::with_capacity(2 * live);
        schedule.blocks.reserve_exact(live);
        for item in self.items {
            if item.dropped {
                if let (Some(block), Some(rule)) = (item.origin.recorded(), item.rule) {
                    schedule.left_out.push(LeftOut { block, effect: rule.index() as u32 });
                }
                continue;
            }
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
        schedule.order(events, profile);
        schedule
    }
}

impl Schedule {
    /// Writes down the requests of sorted events, and the places of blocks that are not expected.
    fn order(&mut self, events: Vec<Event>, profile: &Profile) {
        self.times.reserve_exact(events.len());
        self.requests.reserve_exact(events.len());
        for (at, change, subject) in events {
            let row = self.requests.len();
            match (subject, change) {
                (Subject::Block(block), _) => {
                    let size = self.blocks[block.index()].size;
                    let kind = match change {
                        Change::Alloc => {
                            RequestKind::Alloc { size, stream: profile.stream_at(at.time()) }
                        }
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

#[cfg(test)]
mod tests {
    use crate::testing::{Script, lowered, target};
    use xmem_types::{Bytes, RequestKind, StreamId};

    #[test]
    fn memory_is_allocated_on_the_stream_that_is_selected() {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.mark("xmem::stream 3", |_| ());
            t.makes_seq(1, "aten::mul", "f32[64,32] f32[64,32]", "x", 8192);
            t.mark("xmem::stream 0", |_| ());
            t.makes_seq(2, "aten::mul", "f32[64,32] f32[64,32]", "y", 8192);
            t.node(2, "MulBackward0", |t| t.free("y"));
            t.node(1, "MulBackward0", |t| t.free("x"));
        });
        let (schedule, _) = lowered(&t, &target());
        let stream = |kind| match kind {
            RequestKind::Alloc { size, stream } => (size == Bytes(8192)).then_some(stream),
            RequestKind::Free => None,
        };
        let streams: Vec<_> = schedule.requests.iter().filter_map(|r| stream(r.kind)).collect();
        assert_eq!(streams, [StreamId(3), StreamId(0)]);
    }
}
