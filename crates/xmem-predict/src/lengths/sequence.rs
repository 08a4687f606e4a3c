//! The requests of a job whose iterations have given lengths.

use super::LengthModel;
use super::pattern::{Held, Repeats, SimulationStep};
use std::collections::VecDeque;
use xmem_types::{AllocatorCall, BlockId, PlacedCall, Request, RequestKind};

/// The requests of a job, with the position after each of its iterations.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    pub(super) requests: Vec<Request>,
    pub(super) calls: Vec<PlacedCall>,
    pub(super) ends: Vec<usize>,
    /// The blocks of iterations after the first, each with its slot.
    pub(super) made: Vec<(BlockId, usize)>,
    next: u32,
    /// The blocks of the last iterations by slot, the current one first.
    recent: VecDeque<Vec<Option<(BlockId, State)>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Live,
    Freed,
}

impl Sequence {
    /// What comes before the first iteration, as recorded; then iterations of these lengths, the first of
    /// them with the steps of the recorded first one.
    pub(super) fn new(model: &LengthModel<'_>, lengths: &[u64]) -> Self {
        let mut sequence = Self { next: model.schedule().blocks.len() as u32, ..Self::default() };
        let capacity = model.first.len() + lengths.len() * model.pattern.steps.len();
        sequence.requests.reserve(capacity);
        for (at, &length) in lengths.iter().enumerate() {
            if at == 0 {
                sequence.first(model, length);
            } else {
                sequence.iteration(model, at, length);
            }
            if at == 1 {
                sequence.free_once(model);
            }
            sequence.ends.push(sequence.requests.len());
        }
        sequence
    }

    fn first(&mut self, model: &LengthModel<'_>, length: u64) {
        let schedule = model.schedule();
        self.recent.push_front(vec![None; model.pattern.slots]);
        let recorded = model.lengths[0];
        let end = model.first.len();
        self.calls.extend(schedule.calls.iter().take_while(|call| call.before < end));
        for request in model.first {
            let Request { block, kind } = *request;
            let slot = model.slot_of_first(block);
            let kind = match kind {
                RequestKind::Alloc { stream, size } => {
                    self.note(slot, (block, State::Live));
                    let law = slot.map(|slot| &model.laws[slot]);
                    // A block of the first iteration alone may stand where another one is matched.
                    let law = law.zip(recorded).filter(|(law, own)| law.size(*own) == size);
                    let size = law.map_or(size, |(law, _)| law.size(length));
                    RequestKind::Alloc { size, stream }
                }
                RequestKind::Free => {
                    self.note(slot, (block, State::Freed));
                    kind
                }
            };
            self.requests.push(Request { block, kind });
        }
    }

    fn note(&mut self, slot: Option<usize>, state: (BlockId, State)) {
        if let Some(slot) = slot {
            self.recent[0][slot] = Some(state);
        }
    }

    fn iteration(&mut self, model: &LengthModel<'_>, at: usize, length: u64) {
        self.recent.push_front(vec![None; model.pattern.slots]);
        self.recent.truncate(model.pattern.reach + 1);
        let presence = model.presence(length);
        for step in &model.pattern.steps {
            match *step {
                SimulationStep::Alloc { repeats: Repeats::Once, .. } if at > 1 => {}
                SimulationStep::Alloc { slot, .. } if !presence[slot] => {}
                SimulationStep::Alloc { slot, stream, .. } => {
                    let block = BlockId(self.next);
                    self.next += 1;
                    self.made.push((block, slot));
                    let size = model.laws[slot].size(length);
                    self.recent[0][slot] = Some((block, State::Live));
                    let kind = RequestKind::Alloc { size, stream };
                    self.requests.push(Request { block, kind });
                }
                SimulationStep::Free(held) => self.free(held),
                SimulationStep::AwaitStreams(held) => {
                    if let Some((block, State::Live)) = self.held(held) {
                        self.call(AllocatorCall::AwaitStreams(block));
                    }
                }
                SimulationStep::Complete(held) => {
                    if let Some((block, State::Freed)) = self.held(held) {
                        self.call(AllocatorCall::Complete(block));
                    }
                }
                SimulationStep::ReleaseCache => self.call(AllocatorCall::ReleaseCache),
            }
        }
    }

    /// Frees what was recorded once: blocks of the first iteration, or from before it, that a later one
    /// frees, and that have no counterpart whose free would do.
    fn free_once(&mut self, model: &LengthModel<'_>) {
        for &(block, slot) in &model.freed_later {
            match slot {
                Some(slot) if model.is_freed_after_next(slot) => {}
                Some(slot) => self.free(Held { age: 1, slot }),
                None => self.requests.push(Request { block, kind: RequestKind::Free }),
            }
        }
    }

    fn free(&mut self, held: Held) {
        if let Some((block, State::Live)) = self.held(held) {
            self.recent[held.age][held.slot] = Some((block, State::Freed));
            self.requests.push(Request { block, kind: RequestKind::Free });
        }
    }

    fn held(&self, held: Held) -> Option<(BlockId, State)> {
        *self.recent.get(held.age)?.get(held.slot)?
    }

    fn call(&mut self, call: AllocatorCall) {
        self.calls.push(PlacedCall { before: self.requests.len(), call });
    }
}
