//! The steps that every iteration of a job makes after its first: which block it allocates and which it
//! frees, in order, whatever their sizes.
//!
//! The steps are those of one iteration that another one follows, so that the fate of its blocks is recorded; of two
//! iterations, those of the second. A block is known by its position among the blocks of the iteration (its slot).

use super::LengthsError;
use std::collections::BTreeMap;
use xmem_orchestrator::{Owner, RecordedIterations};
use xmem_types::{AllocatorCall, BlockId, Request, RequestKind, StreamId};

/// The steps of an iteration.
#[derive(Clone, Debug, Default)]
pub(super) struct Pattern {
    /// In order.
    pub(super) steps: Vec<SimulationStep>,
    /// The number of blocks that it allocates.
    pub(super) slots: usize,
    /// How many iterations back a block may lie that it frees.
    pub(super) reach: usize,
}

/// A step of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimulationStep {
    /// A block is allocated.
    Alloc { slot: usize, stream: StreamId, repeats: Repeats },
    /// A block is freed.
    Free(Held),
    /// The free of this block, which is to come, waits for other streams.
    AwaitStreams(Held),
    /// The device is done with a freed block.
    Complete(Held),
    /// `torch.cuda.empty_cache`.
    ReleaseCache,
}

/// A block by its slot, in an iteration `age` before the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) age: usize,
    pub(super) slot: usize,
}

/// The iterations that allocate a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeats {
    /// All of them.
    Always,
    /// One: the block stays, and the next iteration has none like it.
    Once,
}

impl Pattern {
    /// The steps of the iteration `reference`. `counterparts` are, per iteration, the positions of its
    /// blocks' counterparts among the reference's.
    pub(super) fn of(
        iterations: &RecordedIterations<'_>,
        reference: usize,
        counterparts: &[Vec<Option<usize>>],
    ) -> Result<Self, LengthsError> {
        let held = |block: BlockId| {
            let Owner { iteration, position } = iterations.owner(block)?;
            let age = reference.checked_sub(iteration)?;
            Some(Held { age, slot: counterparts[iteration][position]? })
        };
        let range = iterations.requests[reference].clone();
        let calls = &iterations.schedule.calls;
        let mut calls = calls[calls.partition_point(|call| call.before < range.start)..].iter();
        let mut next_call = calls.next();
        let mut pattern = Self { slots: iterations.blocks[reference].len(), ..Self::default() };
        let mut slot = 0;
        for (at, request) in range.clone().zip(iterations.of(reference)) {
            while let Some(placed) = next_call.filter(|placed| placed.before <= at) {
                pattern.steps.extend(step_of_call(placed.call, held)?);
                next_call = calls.next();
            }
            match request.kind {
                RequestKind::Alloc { stream, .. } => {
                    pattern.steps.push(SimulationStep::Alloc {
                        slot,
                        stream,
                        repeats: Repeats::Always,
                    });
                    slot += 1;
                }
                RequestKind::Free => {
                    pattern.steps.extend(held(request.block).map(SimulationStep::Free));
                }
            }
        }
        let next = counterparts.get(reference + 1).map(Vec::as_slice);
        pattern.add_later_frees(iterations, reference, next);
        pattern.reach = pattern.steps.iter().map(SimulationStep::age).max().unwrap_or(0);
        Ok(pattern)
    }

    /// Adds the frees that only the iteration after the reference shows: those of blocks whose counterparts
    /// before the reference were not found. Without that iteration, such a block stays, and the next one has none like it.
    fn add_later_frees(
        &mut self,
        iterations: &RecordedIterations<'_>,
        reference: usize,
        next: Option<&[Option<usize>]>,
    ) {
        let later = next.map_or(&[][..], |_| iterations.of(reference + 1));
        let next = next.unwrap_or_default();
        let mut is_freed = vec![false; self.slots];
        for step in &self.steps {
            if let SimulationStep::Free(held) = step {
                is_freed[held.slot] = true;
            }
        }
        // By the slot before whose allocation they go; the last ones at the end.
        let mut freed: BTreeMap<usize, Vec<SimulationStep>> = BTreeMap::new();
        let mut position = 0;
        for request in later {
            match (request, iterations.owner(request.block)) {
                (Request { kind: RequestKind::Alloc { .. }, .. }, _) => position += 1,
                (_, Some(Owner { iteration, position: slot }))
                    if iteration == reference && !is_freed[slot] =>
                {
                    is_freed[slot] = true;
                    let before = next[position..].iter().flatten().next();
                    let before = before.copied().unwrap_or(self.slots);
                    freed
                        .entry(before)
                        .or_default()
                        .push(SimulationStep::Free(Held { age: 1, slot }));
                }
                _ => {}
            }
        }
        let found: std::collections::BTreeSet<usize> = next.iter().flatten().copied().collect();
        let mut steps = Vec::with_capacity(self.steps.len());
        for step in std::mem::take(&mut self.steps) {
            let SimulationStep::Alloc { slot, stream, .. } = step else {
                steps.push(step);
                continue;
            };
            steps.extend(freed.remove(&slot).into_iter().flatten());
            let stays = !is_freed[slot] && !found.contains(&slot);
            let repeats = if stays { Repeats::Once } else { Repeats::Always };
            steps.push(SimulationStep::Alloc { slot, stream, repeats });
        }
        steps.extend(freed.into_values().flatten());
        self.steps = steps;
    }
}

impl SimulationStep {
    /// How many iterations back its block lies.
    const fn age(&self) -> usize {
        match self {
            Self::Free(held) | Self::AwaitStreams(held) | Self::Complete(held) => held.age,
            Self::Alloc { .. } | Self::ReleaseCache => 0,
        }
    }
}

fn step_of_call(
    call: AllocatorCall,
    held: impl Fn(BlockId) -> Option<Held>,
) -> Result<Option<SimulationStep>, LengthsError> {
    match call {
        AllocatorCall::ReleaseCache => Ok(Some(SimulationStep::ReleaseCache)),
        AllocatorCall::AwaitStreams(block) => Ok(held(block).map(SimulationStep::AwaitStreams)),
        AllocatorCall::Complete(block) => Ok(held(block).map(SimulationStep::Complete)),
        AllocatorCall::EnterPool(_)
        | AllocatorCall::LeavePool(_)
        | AllocatorCall::ReleasePool(_) => Err(LengthsError::PrivatePools),
    }
}
