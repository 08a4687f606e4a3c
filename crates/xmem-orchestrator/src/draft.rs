//! The schedule while rules work on it: one item per block, with positions instead of indices.

use crate::doubt::{SizeRange, Slot, Uncertain};
use crate::recorded::RecordedBlocks;
use crate::rules::{self, RuleEffect};
use crate::schedule::{Schedule, ScheduledBlock};
use xmem_analyzer::{Block, Phase, PhaseSpan, Profile, Role, Tick};
use xmem_types::{
    BlockId, Bytes, FallbackId, Fallbacks, IterationId, Nanos, OpId, Request, RequestKind,
    StreamId, Sym,
};

/// A place in program order: a time of the trace, then a rank among things at that time.
///
/// Recorded events have rank 0 and are told apart by their tick; what rules add just before or
/// after an event takes a negative or positive rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) time: Nanos,
    tick: u32,
    rank: i32,
}

impl Position {
    /// Before every event at `time`.
    pub(crate) const fn start(time: Nanos) -> Self {
        Self { time, tick: 0, rank: i32::MIN }
    }

    /// After every event at `time`.
    pub(crate) const fn end(time: Nanos) -> Self {
        Self { time, tick: u32::MAX, rank: i32::MAX }
    }

    const fn recorded(time: Nanos, tick: Tick) -> Self {
        Self { time, tick: tick.0, rank: 0 }
    }
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
    /// How far its size may be off. Seldom there, hence the box.
    pub(crate) range: Option<Box<SizeRange>>,
    /// What it may be instead where memory is short, in [`Draft::fallbacks`].
    pub(crate) fallback: Option<FallbackId>,
    /// The operator that made it, if it is not known what that asks for on CUDA.
    pub(crate) unmodelled: Option<OpId>,
    /// Left out of the schedule.
    pub(crate) dropped: bool,
    /// A specific rule has decided about it; general rules leave it alone.
    pub(crate) settled: bool,
}

/// What a rule adds.
pub(crate) struct Addition {
    pub(crate) size: Bytes,
    pub(crate) alloc: Position,
    pub(crate) free: Option<Position>,
    pub(crate) role: Role,
    /// The operator of the CPU trace that it belongs to.
    pub(crate) op: OpId,
}

/// The items and the rules' account.
pub(crate) struct Draft<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) recorded: RecordedBlocks,
    /// First the profile's blocks, in order, then what rules added.
    pub(crate) items: Vec<Item>,
    pub(crate) fallbacks: Fallbacks,
    effects: Vec<RuleEffect>,
    rank: i32,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(profile: &'a Profile) -> Self {
        let recorded = profile.blocks.len();
        // Rules seldom add as many again: growing would copy all of them.
        let mut items = Vec::with_capacity(recorded + recorded / 2);
        items.extend(profile.blocks.iter().enumerate().map(|(i, b)| item(BlockId::new(i), b)));
        let effects = rules::rules().iter().map(RuleEffect::none).collect();
        let recorded = RecordedBlocks::of(profile);
        Self { profile, recorded, items, fallbacks: Fallbacks::default(), effects, rank: 0 }
    }

    fn effect(&mut self, rule: &'static str) -> &mut RuleEffect {
        self.effects
            .iter_mut()
            .find(|e| e.rule.name == rule)
            .expect("every applied rule is in the table")
    }

    /// Whether `item` is still in the schedule.
    pub(crate) fn live(&self, index: usize) -> bool {
        !self.items[index].dropped
    }

    /// Indices of the recorded blocks allocated within `op`, in order.
    pub(crate) fn blocks_in(&self, op: OpId) -> Vec<usize> {
        self.recorded.within(self.profile, op)
    }

    /// Whether a recorded block outlives `op`.
    pub(crate) fn escapes(&self, index: usize, op: OpId) -> bool {
        let end = self.profile.op_end(op);
        self.profile.blocks[index].free_time.is_none_or(|f| f > end)
    }

    /// The place just after an item's allocation; later calls give later places.
    pub(crate) fn after(&mut self, index: usize) -> Position {
        let at = self.items[index].alloc;
        self.after_position(at)
    }

    /// The place just after `at`; later calls give later places.
    pub(crate) fn after_position(&mut self, at: Position) -> Position {
        self.rank += 1;
        Position { rank: self.rank, ..at }
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

    /// Gives a block another size; one that was left out stays as it is.
    pub(crate) fn resize(&mut self, index: usize, size: Bytes, rule: &'static str) {
        let item = &mut self.items[index];
        item.settled = true;
        let before = item.size;
        if item.dropped || before == size {
            return;
        }
        item.size = size;
        item.rule = Some(rule);
        let effect = self.effect(rule);
        effect.resized.0 += 1;
        effect.resized.1 += before;
        effect.resized.2 += size;
    }

    /// Moves a block's allocation or free; one that was left out stays as it is.
    pub(crate) fn retime(
        &mut self,
        index: usize,
        alloc: Position,
        free: Option<Position>,
        rule: &'static str,
    ) {
        let item = &mut self.items[index];
        if item.dropped || (item.alloc == alloc && item.free == free) {
            return;
        }
        item.alloc = alloc;
        item.free = free;
        item.rule = Some(rule);
        let size = item.size;
        let effect = self.effect(rule);
        effect.retimed.0 += 1;
        effect.retimed.1 += size;
    }

    /// Adds a block that the CPU does not have. A size of zero adds nothing.
    pub(crate) fn add(&mut self, new: Addition, rule: &'static str) {
        self.put_in(new, None, rule);
    }

    /// Adds a block whose size is not known for sure. If it is expected to be zero, it shows in
    /// [`Schedule::uncertain`] only. Gives the item's index, if there is one.
    pub(crate) fn add_uncertain(
        &mut self,
        new: Addition,
        range: SizeRange,
        rule: &'static str,
    ) -> Option<usize> {
        let sure = range.low == range.high;
        self.put_in(new, (!sure).then_some(range), rule)
    }

    fn put_in(
        &mut self,
        new: Addition,
        range: Option<SizeRange>,
        rule: &'static str,
    ) -> Option<usize> {
        if new.size == Bytes::ZERO && range.is_none() {
            return None;
        }
        let span = self.profile.phase_at(new.alloc.time);
        let near =
            self.profile.blocks_between(self.profile.op_start(new.op), self.profile.op_end(new.op));
        let neighbour = self.profile.blocks.get(near.start);
        self.items.push(Item {
            size: new.size,
            alloc: new.alloc,
            free: new.free,
            role: new.role,
            origin: None,
            rule: Some(rule),
            op: Some(new.op),
            module: neighbour.map_or(Sym::EMPTY, |b| b.module),
            line: neighbour.map_or(Sym::EMPTY, |b| b.line),
            iteration: span.and_then(|s| s.iteration),
            phase: span.map_or(Phase::Init, |s| s.phase),
            range: range.map(Box::new),
            fallback: None,
            unmodelled: None,
            dropped: false,
            settled: true,
        });
        if new.size > Bytes::ZERO {
            let effect = self.effect(rule);
            effect.added.0 += 1;
            effect.added.1 += new.size;
        }
        Some(self.items.len() - 1)
    }

    /// Adds a block that was there before the trace began; it lives until `free`.
    pub(crate) fn add_preexisting(
        &mut self,
        size: Bytes,
        role: Role,
        free: Option<Position>,
        rule: &'static str,
    ) {
        let first = self.profile.blocks.first().map_or(Nanos::ZERO, |b| b.alloc_time);
        self.rank += 1;
        let alloc = Position { rank: i32::MIN + self.rank, ..Position::start(first) };
        self.push_unseen(size, role, (alloc, free), None, rule);
    }

    /// Adds a block that no operator of the trace made: it lives from the first position to the second.
    pub(crate) fn add_unseen(
        &mut self,
        size: Bytes,
        role: Role,
        life: (Position, Option<Position>),
        rule: &'static str,
    ) {
        let span = self.profile.phase_at(life.0.time).copied();
        self.push_unseen(size, role, life, span, rule);
    }

    fn push_unseen(
        &mut self,
        size: Bytes,
        role: Role,
        (alloc, free): (Position, Option<Position>),
        span: Option<PhaseSpan>,
        rule: &'static str,
    ) {
        self.items.push(Item {
            size,
            alloc,
            free,
            role,
            origin: None,
            rule: Some(rule),
            op: None,
            module: Sym::EMPTY,
            line: Sym::EMPTY,
            iteration: span.and_then(|s| s.iteration),
            phase: span.map_or(Phase::Init, |s| s.phase),
            range: None,
            fallback: None,
            unmodelled: None,
            dropped: false,
            settled: true,
        });
        let effect = self.effect(rule);
        effect.added.0 += 1;
        effect.added.1 += size;
    }

    /// Adds a block that lives from just after `index`'s allocation until just after that again:
    /// a workspace of one kernel call.
    pub(crate) fn add_call_scratch(
        &mut self,
        size: Bytes,
        index: usize,
        op: OpId,
        rule: &'static str,
    ) {
        let alloc = self.after(index);
        let free = self.after(index);
        self.add(Addition { size, alloc, free: Some(free), role: Role::Workspace, op }, rule);
    }

    /// Turns the items into requests in order.
    pub(crate) fn finish(self) -> Schedule {
        let (effects, fallbacks) = (self.effects, self.fallbacks);
        let mut schedule = Schedule { effects, fallbacks, ..Schedule::default() };
        let live = self.items.iter().filter(|i| !i.dropped).count();
        let mut events: Vec<Event> = Vec::with_capacity(2 * live);
        schedule.blocks.reserve_exact(live);
        for item in self.items.into_iter().filter(|i| !i.dropped) {
            let free = item.free.map(|free| free.max(item.alloc));
            let mut lives = |subject| {
                events.push((item.alloc, Change::Alloc, subject));
                events.extend(free.map(|free| (free, Change::Free, subject)));
            };
            if let Some(range) = item.range.as_deref().filter(|_| item.size == Bytes::ZERO) {
                lives(Subject::Possible(schedule.uncertain.len() as u32));
                let slot = Slot::Between { alloc: 0, free: None };
                schedule.uncertain.push(Uncertain { range: *range, slot });
                continue;
            }
            let block = BlockId::new(schedule.blocks.len());
            lives(Subject::Block(block));
            if let Some(list) = item.fallback {
                schedule.fallbacks.assign(block, list);
            }
            let slot = Slot::Block(block);
            schedule.uncertain.extend(item.range.map(|range| Uncertain { range: *range, slot }));
            schedule.blocks.push(ScheduledBlock {
                size: item.size,
                role: item.role,
                origin: item.origin,
                rule: item.rule,
                unmodelled: item.unmodelled,
                op: item.op,
                module: item.module,
                line: item.line,
                iteration: item.iteration,
                phase: item.phase,
            });
        }
        // No two events are equal.
        events.sort_unstable();
        schedule.times.reserve_exact(events.len());
        schedule.requests.reserve_exact(events.len());
        for (at, change, subject) in events {
            let row = schedule.requests.len();
            match (subject, change) {
                (Subject::Block(block), _) => {
                    let size = schedule.blocks[block.index()].size;
                    let kind = match change {
                        Change::Alloc => RequestKind::Alloc { size, stream: StreamId(0) },
                        Change::Free => RequestKind::Free,
                    };
                    schedule.times.push(at.time);
                    schedule.requests.push(Request { block, kind });
                }
                (Subject::Possible(which), Change::Alloc) => {
                    let slot = Slot::Between { alloc: row, free: None };
                    schedule.uncertain[which as usize].slot = slot;
                }
                (Subject::Possible(which), Change::Free) => {
                    if let Slot::Between { free, .. } = &mut schedule.uncertain[which as usize].slot
                    {
                        *free = Some(row);
                    }
                }
            }
        }
        schedule
    }
}

/// Something in program order. At one position, what is allocated comes before what is freed, blocks
/// come in their order, and what is not expected comes last.
type Event = (Position, Change, Subject);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Alloc,
    Free,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Block(BlockId),
    /// By its row in [`Schedule::uncertain`].
    Possible(u32),
}

fn item(id: BlockId, block: &Block) -> Item {
    Item {
        size: block.size,
        alloc: Position::recorded(block.alloc_time, block.alloc),
        free: block.free.zip(block.free_time).map(|(tick, time)| Position::recorded(time, tick)),
        role: block.role,
        origin: Some(id),
        rule: None,
        op: block.op,
        module: block.module,
        line: block.line,
        iteration: block.iteration,
        phase: block.phase,
        range: None,
        fallback: None,
        unmodelled: None,
        dropped: false,
        settled: false,
    }
}
