//! The schedule while rules work on it: one item per block, with positions instead of indices.

use crate::rules::{self, RuleEffect};
use crate::schedule::{Schedule, ScheduledBlock};
use xmem_analyzer::{Block, Phase, Profile, Role};
use xmem_types::{BlockId, Bytes, IterationId, Nanos, OpId, Request, RequestKind, StreamId, Sym};

/// A place in program order: a time of the trace, then a rank among things at that time.
///
/// Recorded events have rank 0 and are told apart by their tick; what rules add just before or
/// after an event takes a negative or positive rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) time: Nanos,
    pub(crate) tick: u32,
    pub(crate) rank: i32,
}

/// One block of the schedule to be.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) size: Bytes,
    pub(crate) alloc: Position,
    pub(crate) free: Option<Position>,
    pub(crate) role: Role,
    pub(crate) origin: Option<BlockId>,
    pub(crate) rule: Option<&'static str>,
    pub(crate) op: Option<OpId>,
    pub(crate) module: Sym,
    pub(crate) line: Sym,
    pub(crate) iteration: Option<IterationId>,
    pub(crate) phase: Phase,
    pub(crate) dropped: bool,
}

/// The items and the rules' account.
pub(crate) struct Draft<'a> {
    pub(crate) profile: &'a Profile,
    /// First the profile's blocks, in order, then what rules added.
    pub(crate) items: Vec<Item>,
    effects: Vec<RuleEffect>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(profile: &'a Profile) -> Self {
        let items =
            profile.blocks.iter().enumerate().map(|(i, b)| item(BlockId::new(i), b)).collect();
        let effects = rules::rules().iter().map(RuleEffect::none).collect();
        Self { profile, items, effects }
    }

    fn effect(&mut self, rule: &'static str) -> &mut RuleEffect {
        self.effects
            .iter_mut()
            .find(|e| e.rule.name == rule)
            .expect("every applied rule is in the table")
    }

    /// Leaves a block out.
    pub(crate) fn drop_block(&mut self, index: usize, rule: &'static str) {
        if self.items[index].dropped {
            return;
        }
        self.items[index].dropped = true;
        let size = self.items[index].size;
        let effect = self.effect(rule);
        effect.dropped.0 += 1;
        effect.dropped.1 += size;
    }

    /// Turns the items into requests in order.
    pub(crate) fn finish(self) -> Schedule {
        let mut blocks = Vec::new();
        let mut events: Vec<(Position, u32, Request)> = Vec::new();
        for item in self.items.into_iter().filter(|i| !i.dropped) {
            let id = BlockId::new(blocks.len());
            let alloc = RequestKind::Alloc { size: item.size, stream: StreamId(0) };
            events.push((item.alloc, 1, Request { block: id, kind: alloc }));
            if let Some(free) = item.free {
                events.push((
                    free.max(item.alloc),
                    2,
                    Request { block: id, kind: RequestKind::Free },
                ));
            }
            blocks.push(ScheduledBlock {
                size: item.size,
                role: item.role,
                origin: item.origin,
                rule: item.rule,
                op: item.op,
                module: item.module,
                line: item.line,
                iteration: item.iteration,
                phase: item.phase,
            });
        }
        events.sort_by_key(|e| (e.0, e.1, e.2.block));
        Schedule {
            times: events.iter().map(|e| e.0.time).collect(),
            requests: events.into_iter().map(|e| e.2).collect(),
            blocks,
            effects: self.effects,
        }
    }
}

fn item(id: BlockId, block: &Block) -> Item {
    let at = |time, tick| Position { time, tick, rank: 0 };
    Item {
        size: block.size,
        alloc: at(block.alloc_time, block.alloc.0),
        free: block.free.zip(block.free_time).map(|(tick, time)| at(time, tick.0)),
        role: block.role,
        origin: Some(id),
        rule: None,
        op: block.op,
        module: block.module,
        line: block.line,
        iteration: block.iteration,
        phase: block.phase,
        dropped: false,
    }
}
