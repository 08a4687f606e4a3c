//! The job's first iteration, where the trace begins after it.
//!
//! The optimizer makes its state in its first step, among the cached blocks of the first iteration: the state takes
//! parts of their segments, and later iterations need others in their place. A schedule whose state is there
//! from the beginning reserves too little. Therefore the first recorded iteration is made once before itself, with
//! the state allocated where its optimizer steps, for all parameters in their order (`_init_group` in
//! torch/optim/adam.py and the others).

use crate::iterations::RecordedIterations;
use crate::schedule::{Origin, Schedule, ScheduledBlock};
use crate::uncertainty::{UncertainBlock, UncertainPlace};
use std::collections::{BTreeMap, BTreeSet};
use xmem_analyzer::{Phase, Profile, Role};
use xmem_types::{BlockId, Bytes, IterationId, Nanos, Request, RequestKind};

/// Adds the first iteration to a schedule whose optimizer state was made before the recording. A single recorded
/// iteration does not show which of its blocks stay until the next one; its schedule is left alone.
pub(crate) fn add(schedule: Schedule, profile: &Profile) -> Schedule {
    let starts = schedule.iteration_starts(profile);
    let Some(&first) = starts.first().filter(|_| starts.len() > 1) else { return schedule };
    let is_state =
        |request: &Request| is_from_before(schedule.block(request.block), Role::OptimizerState);
    if !schedule.requests[..first].iter().any(is_state) {
        return schedule;
    }
    let Some(step) = first_step(profile) else { return schedule };
    let iterations = RecordedIterations::new(profile, &schedule, &starts);
    let changed = Repetition::new(&iterations).requests(step);
    changed.applied_to(schedule, first)
}

fn is_from_before(block: &ScheduledBlock, role: Role) -> bool {
    block.origin == Origin::Preexisting && block.role == role
}

/// The time of the first optimizer step of the first iteration.
fn first_step(profile: &Profile) -> Option<Nanos> {
    let mut steps = profile.phases.iter().filter(|span| span.phase == Phase::OptimizerStep);
    steps.find(|span| span.iteration == Some(IterationId(0))).map(|span| span.start)
}

/// The requests of a job whose first recorded iteration is made twice.
struct Repetition<'a> {
    iterations: &'a RecordedIterations<'a>,
    /// Per block that the first recorded iteration allocates: its copy in the iteration before.
    copies: BTreeMap<BlockId, BlockId>,
}

/// New requests, with the row of the old schedule that each stands for; copies have none.
struct Changed {
    requests: Vec<(Request, Option<usize>)>,
    /// The first of them that belongs to a recorded iteration.
    recorded: usize,
    copies: BTreeMap<BlockId, BlockId>,
}

impl<'a> Repetition<'a> {
    fn new(iterations: &'a RecordedIterations<'a>) -> Self {
        let mut next = iterations.schedule.blocks.len();
        let mut copies = BTreeMap::new();
        let counterparts = iterations.counterparts(0, 1);
        let freed: BTreeSet<BlockId> = iterations
            .schedule
            .requests
            .iter()
            .filter(|request| request.kind == RequestKind::Free)
            .map(|request| request.block)
            .collect();
        for (&block, counterpart) in iterations.blocks[0].iter().zip(counterparts) {
            let stays = !freed.contains(&block) && counterpart.is_none();
            let is_trial = iterations.schedule.fallbacks.is_trial(block);
            // What only a first iteration makes, as the workspaces of cuBLAS, is made in that one alone.
            if !stays && !is_trial {
                copies.insert(block, BlockId::new(next));
                next += 1;
            }
        }
        Self { iterations, copies }
    }

    fn schedule(&self) -> &'a Schedule {
        self.iterations.schedule
    }

    fn requests(self, step: Nanos) -> Changed {
        let old = &self.schedule().requests;
        let first = self.iterations.requests[0].clone();
        let is_from_before =
            |row: usize, role| is_from_before(self.schedule().block(old[row].block), role);
        let (state, head): (Vec<usize>, Vec<usize>) =
            (0..first.start).partition(|&row| is_from_before(row, Role::OptimizerState));
        let (parameters, others): (Vec<usize>, Vec<usize>) =
            head.into_iter().partition(|&row| is_from_before(row, Role::Parameter));
        let mut requests: Vec<(Request, Option<usize>)> = self
            .in_order_of_parameters(parameters)
            .into_iter()
            .chain(others)
            .map(|row| (old[row], Some(row)))
            .collect();
        let mut state = Some(self.in_order_of_parameters(state));
        for row in first.clone() {
            if self.schedule().times[row] >= step {
                let rows = state.take().into_iter().flatten();
                requests.extend(rows.map(|row| (old[row], Some(row))));
            }
            if self.owns(old[row].block) {
                requests.push(self.repeated(row));
            }
        }
        // A step in place requests nothing.
        requests.extend(state.into_iter().flatten().map(|row| (old[row], Some(row))));
        let recorded = requests.len();
        let mut released = self.released_later();
        for (row, &request) in old.iter().enumerate().skip(first.start) {
            requests.extend(released.remove(&row).into_iter().flatten());
            let is_moved = first.contains(&row)
                && self.owns(request.block)
                && !self.copies.contains_key(&request.block);
            if !is_moved {
                requests.push((request, Some(row)));
            }
        }
        Changed { requests, recorded, copies: self.copies }
    }

    /// Returns whether the first recorded iteration allocates a block.
    fn owns(&self, block: BlockId) -> bool {
        self.iterations.owner(block).is_some_and(|owner| owner.iteration == 0)
    }

    /// The request of the unseen iteration for one of the first recorded one.
    fn repeated(&self, row: usize) -> (Request, Option<usize>) {
        let request = self.schedule().requests[row];
        match self.copies.get(&request.block) {
            Some(&block) => (Request { block, ..request }, None),
            None => (request, Some(row)),
        }
    }

    /// The frees of copies that outlive their iteration, by the row of the old schedule before which they go: one
    /// iteration before the frees of the blocks that they are copies of.
    fn released_later(&self) -> BTreeMap<usize, Vec<(Request, Option<usize>)>> {
        let mut released: BTreeMap<usize, Vec<(Request, Option<usize>)>> = BTreeMap::new();
        for iteration in 1..self.iterations.count() {
            let rows = self.iterations.requests[iteration].clone();
            let before = self.rows_before(iteration);
            let mut position = 0;
            for request in &self.schedule().requests[rows] {
                if let RequestKind::Alloc { .. } = request.kind {
                    position += 1;
                } else if let Some(&block) = self.copies.get(&request.block) {
                    let free = Request { block, kind: RequestKind::Free };
                    released.entry(before[position]).or_default().push((free, None));
                }
            }
        }
        released
    }

    /// Per position among the allocations of an iteration, and for its end: the row of the next allocation that the
    /// iteration before has as well.
    fn rows_before(&self, iteration: usize) -> Vec<usize> {
        let before = self.iterations.requests[iteration - 1].clone();
        let is_allocation =
            |row: &usize| matches!(self.schedule().requests[*row].kind, RequestKind::Alloc { .. });
        let allocations: Vec<usize> = before.clone().filter(is_allocation).collect();
        let counterparts = self.iterations.counterparts(iteration, iteration - 1);
        let mut rows = vec![before.end; counterparts.len() + 1];
        for (position, counterpart) in counterparts.iter().enumerate().rev() {
            rows[position] = counterpart.map_or(rows[position + 1], |at| allocations[at]);
        }
        rows
    }

    /// Rows of parameters or of their state, parameter by parameter, as far as gradients show the order: a backward
    /// pass makes them in the reverse order of parameters.
    fn in_order_of_parameters(&self, from_before: Vec<usize>) -> Vec<usize> {
        let schedule = self.schedule();
        let size = |row: usize| schedule.block(schedule.requests[row].block).size;
        let gradients: Vec<Bytes> = self.iterations.blocks[0]
            .iter()
            .map(|&block| schedule.block(block))
            .filter(|block| block.role == Role::Gradient)
            .map(|block| block.size)
            .collect();
        let mut by_size: BTreeMap<Bytes, Vec<usize>> = BTreeMap::new();
        for row in from_before.into_iter().rev() {
            by_size.entry(size(row)).or_default().push(row);
        }
        let mut parameters: BTreeMap<Bytes, usize> = BTreeMap::new();
        for &size in &gradients {
            *parameters.entry(size).or_default() += 1;
        }
        let of_each: BTreeMap<Bytes, usize> = parameters
            .into_iter()
            .map(|(size, count)| (size, by_size.get(&size).map_or(0, Vec::len).div_ceil(count)))
            .collect();
        let mut ordered = Vec::new();
        for size in gradients.iter().rev() {
            let Some(rows) = by_size.get_mut(size) else { continue };
            let left = rows.len().saturating_sub(of_each[size]);
            ordered.extend(rows.drain(left..).rev());
        }
        ordered.extend(by_size.into_values().rev().flatten());
        ordered
    }
}

impl Changed {
    /// The old schedule with these requests; its first recorded iteration begins at the row `first`.
    fn applied_to(self, mut old: Schedule, first: usize) -> Schedule {
        let mut copies: Vec<(BlockId, BlockId)> =
            self.copies.iter().map(|(&b, &c)| (b, c)).collect();
        copies.sort_unstable_by_key(|&(_, copy)| copy);
        for &(block, copy) in &copies {
            old.blocks.push(old.block(block).clone());
            if let Some(list) = old.fallbacks.of(block) {
                old.fallbacks.assign(copy, list);
            }
        }
        // The row of each request in the new schedule, and their end.
        let mut rows = vec![self.requests.len(); old.requests.len() + 1];
        for (new, (_, row)) in self.requests.iter().enumerate() {
            if let Some(row) = *row {
                rows[row] = new;
            }
        }
        old.move_uncertain(&rows);
        let repeated: Vec<UncertainBlock> = old
            .uncertain
            .iter()
            .filter_map(|block| match block.place {
                UncertainPlace::Block(id) => {
                    let place = UncertainPlace::Block(*self.copies.get(&id)?);
                    Some(UncertainBlock { place, ..*block })
                }
                UncertainPlace::Between { .. } => None,
            })
            .collect();
        old.uncertain.extend(repeated);
        old.times = self.times(&old.times, first);
        old.requests = self.requests.into_iter().map(|(request, _)| request).collect();
        old
    }

    /// The unseen iteration lies before the recorded ones; a copy that is freed in one of those goes with the request
    /// that follows.
    fn times(&self, old: &[Nanos], first: usize) -> Vec<Nanos> {
        let mut next = old.last().copied().unwrap_or_default();
        let mut times = Vec::with_capacity(self.requests.len());
        for (at, (_, row)) in self.requests.iter().enumerate().rev() {
            next = match row {
                _ if at < self.recorded => next.min(old[first - 1]),
                Some(row) => old[*row],
                None => next,
            };
            times.push(next);
        }
        times.reverse();
        times
    }
}

#[cfg(test)]
mod tests {
    use crate::schedule::{Origin, Schedule};
    use crate::testing::job::{Begin, Clear, adam, train};
    use crate::testing::{Script, lowered, target};
    use xmem_analyzer::Role;
    use xmem_types::{Request, RequestKind};

    fn schedule(script: &Script) -> Schedule {
        lowered(script, &target()).0
    }

    fn late(iterations: u32) -> Schedule {
        schedule(&train(Begin::Later, iterations, "Adam", Clear::IterationStart, |t, _| adam(t, 1)))
    }

    /// Allocations of a role.
    fn allocations(schedule: &Schedule, role: Role) -> usize {
        let is_one = |request: &&Request| {
            request.kind != RequestKind::Free && schedule.block(request.block).role == role
        };
        schedule.requests.iter().filter(is_one).count()
    }

    #[test]
    fn a_late_recording_has_one_iteration_more() {
        let whole = schedule(&train(Begin::Model, 3, "Adam", Clear::IterationStart, adam));
        let late = late(2);
        for role in [Role::Gradient, Role::Activation, Role::OptimizerState, Role::Input] {
            let count = |schedule| allocations(schedule, role);
            assert_eq!(count(&late), count(&whole), "{role:?}");
        }
    }

    #[test]
    fn a_single_iteration_is_left_alone() {
        let schedule = late(1);
        assert_eq!(allocations(&schedule, Role::Gradient), 2);
        let first = schedule.requests.iter().take(6).map(|r| schedule.block(r.block).origin);
        assert!(first.eq([Origin::Preexisting; 6]));
    }

    #[test]
    fn each_block_is_allocated_once_and_freed_once() {
        let schedule = late(3);
        let mut live = vec![None; schedule.blocks.len()];
        for request in &schedule.requests {
            let state = &mut live[request.block.index()];
            match request.kind {
                RequestKind::Alloc { .. } => assert_eq!(state.replace(true), None),
                RequestKind::Free => assert_eq!(state.replace(false), Some(true)),
            }
        }
        assert!(live.iter().all(Option::is_some));
        assert!(schedule.times.is_sorted());
        assert_eq!(schedule.times.len(), schedule.requests.len());
    }

    #[test]
    fn a_step_in_place_has_its_state() {
        let script = train(Begin::Later, 2, "SGD", Clear::IterationStart, |t, _| {
            for shape in ["f32[32,32]", "f32[32]"] {
                t.op("aten::mul_", &format!("{shape} 0.9"), |_| ());
                t.op("aten::add_", &format!("{shape} {shape} 1"), |_| ());
                t.op("aten::add_", &format!("{shape} {shape} -0.1"), |_| ());
            }
        });
        let schedule = schedule(&script);
        assert_eq!(allocations(&schedule, Role::OptimizerState), 2);
        let first = schedule.requests.iter().find(|r| schedule.block(r.block).role == Role::Input);
        let state = schedule
            .requests
            .iter()
            .position(|request| schedule.block(request.block).role == Role::OptimizerState);
        let first = schedule.requests.iter().position(|request| Some(request) == first);
        assert!(first < state, "the state is made in the step, not before the iteration");
    }
}
