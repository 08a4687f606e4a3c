//! The event loop: one stream computes, another copies, and memory comes and goes.

use crate::budget::{Budget, Waiting};
use crate::events::{EventKind, MemoryEvent, Piece, PieceId};
use crate::graph::{Action, Graph, GraphStep, StepId, Work};
use crate::groups::group;
use crate::placement::Space;
use crate::prefetch::Backward;
use crate::rules::{Barrier, CopiesOn, Leaves, Rules};
use crate::run::{OutOfMemory, Run};
use crate::selection::movable;
use crate::transfer::{Direction, Link, Streams};
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use xmem_types::{BlockId, Bytes, Nanos};

/// The memory that a simulation has.
#[derive(Debug)]
pub enum Memory<'a> {
    /// As much as it wants.
    Unlimited,
    /// What a space gives: allocations that fail wait for releases.
    Limited(&'a mut dyn Space),
}

/// Runs a step with the rules of a policy.
pub(crate) fn run(graph: &Graph, mut rules: Rules, link: &Link, memory: Memory<'_>) -> Run {
    let changed = rules.graph.take();
    let graph = changed.as_ref().unwrap_or(graph);
    let mut simulation = Simulation::new(graph, rules, link, memory);
    for row in 0..graph.steps().len() {
        if let Err(failure) = simulation.step(StepId::new(row)) {
            return simulation.finish(Some(failure));
        }
    }
    simulation.finish(None)
}

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not allocated yet, or freed.
    Absent,
    /// On the device.
    Here(PieceId),
    /// On the device until its copy to the host is done, and the forward pass has used it.
    Leaving { piece: PieceId, copied: Nanos },
    /// On the host only.
    Away,
    /// Nowhere, to be made again.
    Dropped,
    /// On the device, its content arrives at a time.
    Arriving { piece: PieceId, at: Nanos },
}

struct Simulation<'g, 'm> {
    graph: &'g Graph,
    rules: Rules,
    memory: Memory<'m>,
    backward: Backward,
    /// The blocks whose copy to the host begins with a step, and the last step of the forward pass that uses each.
    leaving_with: Vec<Vec<BlockId>>,
    /// The blocks that a step is the last one of the forward pass to use, if they leave or are dropped.
    last_used_by: Vec<Vec<BlockId>>,
    needed_by: Vec<Vec<BlockId>>,
    /// The blocks that can make room, if the policy moves them only where memory is short.
    cache: Option<BTreeSet<BlockId>>,
    last_use: Vec<Option<StepId>>,
    states: Vec<State>,
    /// Releases that will happen: the time, and the block.
    pending: BTreeSet<(Nanos, BlockId)>,
    streams: Streams,
    /// The time at which the stream that computes is free.
    now: Nanos,
    has_passed_forward: bool,
    live: Bytes,
    run: Run,
}

impl<'g, 'm> Simulation<'g, 'm> {
    fn new(graph: &'g Graph, rules: Rules, link: &Link, memory: Memory<'m>) -> Self {
        let steps = graph.steps().len();
        let cached = rules.leaves == Leaves::WhereShort;
        let selection = &rules.selection;
        let mut leaving_with = vec![Vec::new(); steps];
        let mut last_used_by = vec![Vec::new(); steps];
        for offload in selection.offloads.iter().filter(|_| !cached) {
            leaving_with[offload.with.index()].push(offload.block);
            last_used_by[offload.last_forward.index()].push(offload.block);
        }
        for (&block, recomputation) in &rules.recomputations.of {
            last_used_by[recomputation.last_forward.index()].push(block);
        }
        let mut needed_by = vec![Vec::new(); steps];
        for id in graph.ids() {
            for step in &graph.block(id).backward {
                needed_by[step.index()].push(id);
            }
        }
        Self {
            graph,
            memory,
            backward: Backward::new(graph, selection),
            leaving_with,
            last_used_by,
            needed_by,
            cache: cached.then(|| selection.offloads.iter().map(|o| o.block).collect()),
            last_use: vec![None; graph.blocks().len()],
            states: vec![State::Absent; graph.blocks().len()],
            pending: BTreeSet::new(),
            streams: Streams::new(*link),
            now: Nanos::ZERO,
            has_passed_forward: false,
            live: Bytes::ZERO,
            run: Run {
                step_time: Nanos::ZERO,
                computing: Vec::with_capacity(steps),
                transfers: Vec::new(),
                blocked: Nanos::ZERO,
                recomputed: Nanos::ZERO,
                host_computes: Nanos::ZERO,
                on_host: rules.host_update.as_ref().map_or(Bytes::ZERO, |update| update.state),
                waiting: rules
                    .budget
                    .as_ref()
                    .map(|budget| Waiting { budget: budget.limit, most: Bytes::ZERO }),
                events: Vec::new(),
                pieces: Vec::new(),
                out_of_memory: None,
            },
            rules,
        }
    }

    fn step(&mut self, id: StepId) -> Result<(), OutOfMemory> {
        let step = &self.graph.steps()[id.index()];
        if matches!(step.work, Work::Backward(_)) && !self.has_passed_forward {
            self.has_passed_forward = true;
            if self.rules.barrier == Barrier::EndOfForward {
                self.now = self.now.max(self.streams.idle());
            }
        }
        if self.rules.host_update.as_ref().is_some_and(|update| update.begins == id) {
            self.update_on_host();
        }
        self.keep_budget(id);
        let again = self.bring(id)?;
        self.release_until(id, self.now);
        let (before, after) = step.halves();
        self.act(id, before)?;
        self.release_through(id, self.now);
        self.compute(id, step, again);
        let end = self.now;
        self.release_until(id, end);
        let mut barrier = end;
        if matches!(step.work, Work::Forward(_)) {
            barrier = barrier.max(self.last_used(id, end));
        }
        self.act(id, after)?;
        self.send_gradients(id);
        let copied = match (self.rules.copies_on, self.rules.barrier) {
            (CopiesOn::Compute, _) => self.streams.idle(),
            (CopiesOn::OwnStream, Barrier::EachLayer) => self.streams.idle(),
            (CopiesOn::OwnStream, _) => end,
        };
        self.now = barrier.max(copied);
        if self.now > end {
            // A barrier ends with the releases that it waited for.
            self.release_through(id, self.now);
        }
        Ok(())
    }

    /// Brings what a step needs to the device, and gives the time to compute blocks again.
    fn bring(&mut self, id: StepId) -> Result<Nanos, OutOfMemory> {
        let needed = self.needed_by[id.index()].clone();
        let mut again = Nanos::ZERO;
        for &block in &needed {
            again = again + self.make(id, block)?;
        }
        // The first copies may be done while the others are queued.
        for &block in &needed {
            self.await_arrival(block);
        }
        Ok(again)
    }

    /// Queues the copy of a block that is away, or makes a dropped one again.
    fn make(&mut self, id: StepId, block: BlockId) -> Result<Nanos, OutOfMemory> {
        self.last_use[block.index()] = Some(id);
        match self.states[block.index()] {
            State::Away => self.fetch(id, block, self.now).map(|()| Nanos::ZERO),
            State::Leaving { copied, .. } => {
                // Its copy to the host is complete first, and comes before those that are done later.
                let pending = self.pending.iter().find(|&&(_, pending)| pending == block);
                let due = pending.map_or(copied, |&(due, _)| due);
                self.now = self.now.max(due);
                self.release_until(id, due);
                self.release(id, due, block);
                self.fetch(id, block, self.now).map(|()| Nanos::ZERO)
            }
            State::Dropped => {
                let recomputation = self.rules.recomputations.of[&block].clone();
                let mut time: Nanos = Nanos::ZERO;
                for &input in &recomputation.inputs {
                    time = time + self.make(id, input)?;
                    self.await_arrival(input);
                }
                for made in iter::once(block).chain(self.rules.recomputations.made_with(block)) {
                    if self.states[made.index()] == State::Dropped {
                        let piece = self.allocate(id, made)?;
                        self.states[made.index()] = State::Here(piece);
                    }
                }
                let steps = self.graph.steps();
                Ok(time + recomputation.steps.iter().map(|s| steps[s.index()].duration).sum())
            }
            State::Absent | State::Here(_) | State::Arriving { .. } => Ok(Nanos::ZERO),
        }
    }

    fn await_arrival(&mut self, block: BlockId) {
        if let State::Arriving { piece, at } = self.states[block.index()] {
            self.now = self.now.max(at);
            self.states[block.index()] = State::Here(piece);
        }
    }

    /// Computes, with the copies that begin at the same time.
    fn compute(&mut self, id: StepId, step: &GraphStep, again: Nanos) {
        let start = self.now;
        let end = start + again + step.duration;
        self.run.computing.push((start, end));
        self.run.recomputed = self.run.recomputed + again;
        let issued = match self.rules.copies_on {
            CopiesOn::Compute => end,
            CopiesOn::OwnStream => start,
        };
        for block in self.leaving_with[id.index()].clone() {
            // What the step itself writes is copied when it is there.
            let writes = self.graph.block(block).writers.contains(&id);
            self.send(block, if writes { end } else { issued });
        }
        for block in self.prefetched(id) {
            // Without room for it, it comes later.
            let has_room = self.is_within_budget(id, block) && self.has_room(id, block);
            if !has_room || self.fetch(id, block, issued).is_err() {
                break;
            }
        }
        if let Some(waiting) = &mut self.run.waiting {
            let budget = self.rules.budget.as_ref().expect("it is the budget's");
            waiting.most = waiting.most.max(waiting_at(self.graph, budget, &self.states, id));
        }
        for block in self.used_by(id) {
            self.last_use[block.index()] = Some(id);
        }
        self.now = end;
    }

    /// The blocks that the policy brings back while the layer runs whose backward pass begins with a step.
    fn prefetched(&self, id: StepId) -> Vec<BlockId> {
        let is_away = |block: BlockId| self.states[block.index()] == State::Away;
        let window = self.backward.window(id, &is_away);
        window.map_or_else(Vec::new, |window| (self.rules.prefetch)(&window))
    }

    /// True if a block can come back ahead of its use, and wait.
    fn is_within_budget(&self, id: StepId, block: BlockId) -> bool {
        self.rules.budget.as_ref().is_none_or(|budget| {
            let waits = waiting_at(self.graph, budget, &self.states, id);
            waits + self.graph.block(block).size <= budget.limit
        })
    }

    /// Waits for copies until the saved tensors on the device are within the budget.
    fn keep_budget(&mut self, id: StepId) {
        let Some(budget) = self.rules.budget.take() else { return };
        while waiting_at(self.graph, &budget, &self.states, id) > budget.limit {
            let Some(&(time, block)) = self.pending.first() else { break };
            self.now = self.now.max(time);
            self.release(id, time, block);
        }
        self.rules.budget = Some(budget);
    }

    /// Copies the gradients to the host that a step completes, if the optimizer is there.
    fn send_gradients(&mut self, id: StepId) {
        let Some(update) = &self.rules.host_update else { return };
        for gradient in update.gradients.iter().filter(|gradient| gradient.ready == id) {
            let size = self.graph.block(gradient.block).size;
            self.streams.queue(gradient.block, size, Direction::ToHost, self.now);
        }
    }

    /// The optimizer's step on the host: each parameter after its gradient is there, and back.
    fn update_on_host(&mut self) {
        let Some(update) = &self.rules.host_update else { return };
        let copied: BTreeMap<BlockId, Nanos> =
            self.streams.transfers.iter().map(|copy| (copy.block, copy.end)).collect();
        let mut host = self.now;
        for gradient in &update.gradients {
            host = host.max(copied[&gradient.block]) + gradient.time;
            self.run.host_computes = self.run.host_computes + gradient.time;
            let size = self.graph.block(gradient.block).size;
            self.streams.queue(gradient.block, size, Direction::ToDevice, host);
        }
        self.now = self.now.max(self.streams.idle());
    }

    /// The blocks that can make room and are used by a step.
    fn used_by(&self, id: StepId) -> Vec<BlockId> {
        let uses = |block: &BlockId| {
            let block = self.graph.block(*block);
            block.readers.binary_search(&id).is_ok() || block.writers.binary_search(&id).is_ok()
        };
        self.cache.iter().flatten().copied().filter(uses).collect()
    }

    fn send(&mut self, block: BlockId, issued: Nanos) {
        let State::Here(piece) = self.states[block.index()] else { return };
        let size = self.graph.block(block).size;
        let copied = self.streams.queue(block, size, Direction::ToHost, issued);
        self.states[block.index()] = State::Leaving { piece, copied };
    }

    /// Handles the blocks that the forward pass uses for the last time, and gives the time at which those that
    /// are moved are released.
    fn last_used(&mut self, id: StepId, end: Nanos) -> Nanos {
        let mut barrier = end;
        for block in self.last_used_by[id.index()].clone() {
            match self.states[block.index()] {
                State::Leaving { copied, .. } => {
                    let release = copied.max(end);
                    self.pending.insert((release, block));
                    if self.rules.barrier == Barrier::EachLayer {
                        barrier = barrier.max(release);
                    }
                }
                State::Here(piece) if self.rules.recomputations.of.contains_key(&block) => {
                    self.free(id, end, piece);
                    self.states[block.index()] = State::Dropped;
                }
                _ => {}
            }
        }
        barrier
    }

    /// Allocates a block that is away, and queues its copy.
    fn fetch(&mut self, id: StepId, block: BlockId, issued: Nanos) -> Result<(), OutOfMemory> {
        let piece = self.allocate(id, block)?;
        let size = self.graph.block(block).size;
        let issued = issued.max(self.now);
        let at = self.streams.queue(block, size, Direction::ToDevice, issued);
        self.states[block.index()] = State::Arriving { piece, at };
        Ok(())
    }

    fn act(&mut self, id: StepId, actions: &[Action]) -> Result<(), OutOfMemory> {
        for &action in actions {
            match action {
                Action::Alloc(block) => {
                    let piece = self.allocate(id, block)?;
                    self.states[block.index()] = State::Here(piece);
                }
                Action::Free(block) => {
                    match self.states[block.index()] {
                        State::Here(piece)
                        | State::Arriving { piece, .. }
                        | State::Leaving { piece, .. } => self.free(id, self.now, piece),
                        State::Absent | State::Away | State::Dropped => {}
                    }
                    self.pending.retain(|&(_, pending)| pending != block);
                    self.states[block.index()] = State::Absent;
                }
            }
        }
        Ok(())
    }

    fn has_room(&self, id: StepId, block: BlockId) -> bool {
        let size = self.graph.block(block).size;
        match &self.memory {
            Memory::Unlimited => true,
            Memory::Limited(space) => space.has_room(size, group(self.graph, block, id)),
        }
    }

    /// Allocates memory for a block. If no memory is free, it waits for releases.
    fn allocate(&mut self, id: StepId, block: BlockId) -> Result<PieceId, OutOfMemory> {
        let size = self.graph.block(block).size;
        let piece = PieceId(u32::try_from(self.run.pieces.len()).expect("fewer than 2^32 pieces"));
        let group = group(self.graph, block, id);
        loop {
            let served = match &mut self.memory {
                Memory::Unlimited => Ok(()),
                Memory::Limited(space) => space.allocate(piece, size, group),
            };
            let reason = match served {
                Ok(()) => break,
                Err(reason) => reason,
            };
            if !self.wait_for_release(id) {
                return Err(OutOfMemory { step: id, block, size, live: self.live, reason });
            }
        }
        self.live += size;
        self.run.pieces.push(Piece { block, size, group });
        let event = MemoryEvent { time: self.now, step: id, kind: EventKind::Alloc, piece };
        self.run.events.push(event);
        Ok(piece)
    }

    /// Waits for the next release. Returns false if no release is pending.
    fn wait_for_release(&mut self, id: StepId) -> bool {
        if self.pending.is_empty() && !self.make_room(id) {
            return false;
        }
        let Some(&(time, block)) = self.pending.first() else { return false };
        if time > self.now {
            self.run.blocked = self.run.blocked + (time - self.now);
            self.now = time;
        }
        self.release(id, self.now, block);
        true
    }

    /// Begins to move the block to the host that was not used for the longest time.
    fn make_room(&mut self, id: StepId) -> bool {
        let Some(cache) = &self.cache else { return false };
        let in_use = &self.needed_by[id.index()];
        let is_idle = |block: &BlockId| {
            let of = self.graph.block(*block);
            let Some((last_forward, _)) = movable(self.graph, *block) else { return false };
            matches!(self.states[block.index()], State::Here(_))
                && last_forward < id
                && of.backward.last() >= Some(&id)
                && !in_use.contains(block)
        };
        let idle = cache.iter().copied().filter(is_idle);
        let Some(block) = idle.min_by_key(|block| (self.last_use[block.index()], *block)) else {
            return false;
        };
        self.send(block, self.now);
        if let State::Leaving { copied, .. } = self.states[block.index()] {
            self.pending.insert((copied, block));
        }
        true
    }

    /// Releases what is due before a time.
    fn release_until(&mut self, id: StepId, time: Nanos) {
        while let Some(&(due, block)) = self.pending.first().filter(|pending| pending.0 < time) {
            self.release(id, due, block);
        }
    }

    /// Releases what is due at a time, or before.
    fn release_through(&mut self, id: StepId, time: Nanos) {
        while let Some(&(due, block)) = self.pending.first().filter(|pending| pending.0 <= time) {
            self.release(id, due, block);
        }
    }

    fn release(&mut self, id: StepId, time: Nanos, block: BlockId) {
        self.pending.retain(|&(_, pending)| pending != block);
        if let State::Leaving { piece, .. } = self.states[block.index()] {
            self.free(id, time, piece);
            self.states[block.index()] = State::Away;
        }
    }

    fn free(&mut self, id: StepId, time: Nanos, piece: PieceId) {
        if let Memory::Limited(space) = &mut self.memory {
            space.free(piece);
        }
        self.live -= self.run.pieces[piece.index()].size;
        self.run.events.push(MemoryEvent { time, step: id, kind: EventKind::Free, piece });
    }

    fn finish(mut self, out_of_memory: Option<OutOfMemory>) -> Run {
        self.run.step_time = self.now.max(self.streams.idle());
        self.run.transfers = self.streams.transfers;
        self.run.out_of_memory = out_of_memory;
        self.run
    }
}

/// The bytes of saved tensors that wait on the device while a step runs.
fn waiting_at(graph: &Graph, budget: &Budget, states: &[State], id: StepId) -> Bytes {
    let is_here = |block: BlockId| {
        matches!(
            states[block.index()],
            State::Here(_) | State::Leaving { .. } | State::Arriving { .. }
        )
    };
    let waits = budget.waits.iter().filter(|(block, wait)| wait.includes(id) && is_here(**block));
    waits.map(|(&block, _)| graph.block(block).size).sum()
}
