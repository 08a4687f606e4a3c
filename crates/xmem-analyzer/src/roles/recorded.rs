//! The clues that the recorder gives.

use super::case::{Case, Clues};
use super::{Facts, Inventory};
use crate::block::{Block, Phase, Residency, Role};
use crate::known::{Arrival, State};
use crate::marks::TransferKind;
use crate::names::NameKind;
use crate::recording::{NamedTensor, TensorKind};
use crate::timeline::stretch_around;
use rustc_hash::FxHashMap;
use xmem_types::{Bytes, Nanos};

/// Finds when the loop moves what, and which trained leaves the recording does not name.
pub(super) fn prepare(clues: &mut Clues, blocks: &[Block], facts: &Facts<'_>) {
    if facts.known.is_empty() {
        return;
    }
    clues.unnamed = trained_beside_the_models(blocks, facts, &clues.inventory);
    clues.moves = Moves::of(blocks, facts);
}

/// Trained leaves that are no parameters of the models: sizes with their count.
fn trained_beside_the_models(
    blocks: &[Block],
    facts: &Facts<'_>,
    trained: &Inventory,
) -> FxHashMap<Bytes, u32> {
    let mut left: FxHashMap<Bytes, u32> = trained.left().into_iter().collect();
    for (id, &row) in &facts.known.tensors {
        let wants = facts.recording;
        let wants = wants.and_then(|r| r.tensors.get(row)).and_then(|t| t.requires_grad);
        if let Some(n @ 1..) =
            left.get_mut(&blocks[id.index()].size).filter(|_| wants != Some(false))
        {
            *n -= 1;
        }
    }
    left
}

/// The times at which the loop moves batches and begins to compute.
#[derive(Clone, Debug, Default)]
pub(super) struct Moves {
    /// Start of the first iteration.
    loop_start: Nanos,
    /// Starts of forward phases.
    forwards: Vec<Nanos>,
    /// Starts of backward passes and optimizer steps.
    turns: Vec<Nanos>,
    /// Moves of batches, by time.
    loaded: Vec<Nanos>,
}

impl Moves {
    fn of(blocks: &[Block], facts: &Facts<'_>) -> Self {
        let starts = |wanted: &[Phase]| -> Vec<Nanos> {
            let phases = facts.phases.iter().filter(|p| wanted.contains(&p.phase));
            phases.map(|p| p.start).collect()
        };
        let moved = facts.transfers.iter().filter(|t| t.kind == TransferKind::ToDevice);
        Self {
            loop_start: facts.iterations.first().map_or(Nanos::MAX, |i| i.start),
            forwards: starts(&[Phase::Forward]),
            turns: starts(&[Phase::Backward, Phase::OptimizerStep]),
            loaded: moved.filter(|t| facts.known.is_data(t, blocks)).map(|t| t.time).collect(),
        }
    }
}

impl Case<'_> {
    /// How the block comes to the GPU, if a mark says that it does.
    pub(super) fn arrival(&self) -> Option<Arrival> {
        self.facts.known.arrival(self.id())
    }

    pub(super) fn is_made_on_device(&self) -> bool {
        self.arrival() == Some(Arrival::Made)
    }

    /// Whether the recording names the block as a tensor of this kind.
    pub(super) fn is_named(&self, kind: TensorKind) -> bool {
        self.tensor().is_some_and(|t| t.kind == kind)
    }

    fn tensor(&self) -> Option<&NamedTensor> {
        let row = *self.facts.known.tensors.get(&self.id())?;
        self.facts.recording?.tensors.get(row)
    }

    /// Whether the block is a copy that was made for the host and never comes to the GPU.
    pub(super) fn is_host_copy(&self) -> bool {
        self.facts.known.is_host_copy(self.id()) && self.arrival().is_none()
    }

    /// Whether the block belongs to a model that is not at work, made before anything came to the GPU.
    pub(super) fn is_of_idle_model(&self) -> bool {
        let at_work = self.tensor().is_some_and(|t| self.facts.known.is_at_work(t.model));
        self.arrival().is_none() && !at_work && self.is_before_all_arrivals()
    }

    /// The part of an optimizer's state that the recording lists the block as.
    pub(super) fn listed_state(&self) -> Option<State> {
        self.facts.known.state.get(&self.id()).copied()
    }

    pub(super) fn is_listed_gradient(&self) -> bool {
        self.facts.known.gradients.contains(&self.id())
    }

    pub(super) fn is_init(&self) -> bool {
        self.block().phase == Phase::Init
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.block().phase == Phase::Data
    }

    pub(super) fn is_of_model(&self) -> bool {
        matches!(self.block().role, Role::Parameter | Role::Buffer)
    }

    /// Whether the block is like a tensor of a model and none that the recording names: it lists none,
    /// or the block is a trained leaf of which it names no parameter.
    pub(super) fn is_beside_the_models(&mut self) -> bool {
        if let Some(known) = self.beside_the_models {
            return known;
        }
        let block = self.block();
        let leaf = block.role == Role::Parameter
            && self
                .clues
                .unnamed
                .get_mut(&block.size)
                .filter(|n| **n > 0)
                .map(|n| *n -= 1)
                .is_some();
        let beside = self.is_of_model() && (leaf || !self.facts.known.lists.tensors);
        *self.beside_the_models.insert(beside)
    }

    /// Whether the block is freed before the forward that follows begins.
    pub(super) fn is_freed_before_forward(&self) -> bool {
        if self.is_init() {
            return self.is_freed_before_first_forward();
        }
        let forwards = &self.clues.moves.forwards;
        let next = forwards.get(forwards.partition_point(|f| *f < self.block().alloc_time));
        next.is_some_and(|&forward| !self.block().lasts_beyond(forward))
    }

    pub(super) fn is_moved_before_the_loop(&self) -> bool {
        let start = self.clues.moves.loop_start;
        matches!(self.arrival(), Some(Arrival::Moved(time)) if time < start)
    }

    /// Whether the block was made before anything came to the GPU.
    pub(super) fn is_before_all_arrivals(&self) -> bool {
        self.facts.known.first_arrival.is_some_and(|first| self.block().alloc_time < first)
    }

    /// Whether the block was taken for a batch, though batches that were made after it are moved.
    pub(super) fn is_batch_beside_moved_ones(&self) -> bool {
        let block = self.block();
        self.facts.known.first_arrival.is_some()
            && block.residency == Residency::Batch
            && self.clues.moves.loaded.last().is_some_and(|&last| block.alloc_time < last)
    }

    pub(super) fn is_in_loader(&self) -> bool {
        let program = self.facts.program;
        program.op_path(self.block()).any(|op| program.kind(op) == NameKind::Data)
    }

    /// Whether a batch is moved after the block was made and before the loop turns.
    pub(super) fn is_before_the_batch_moves(&self) -> bool {
        let (time, moves) = (self.block().alloc_time, &self.clues.moves);
        let turn = stretch_around(&moves.turns, time);
        let next = moves.loaded.get(moves.loaded.partition_point(|at| *at <= time));
        next.is_some_and(|at| *at < turn.end)
    }

    /// Whether a batch was moved since the loop turned, and forward is still to come.
    pub(super) fn is_after_the_batch_moved(&self) -> bool {
        let (time, moves) = (self.block().alloc_time, &self.clues.moves);
        let turn = stretch_around(&moves.turns, time);
        let before = moves.loaded.partition_point(|at| *at <= time);
        let previous = before.checked_sub(1).map(|at| moves.loaded[at]);
        previous.is_some_and(|at| at >= turn.start && at >= moves.loop_start)
            && moves.forwards.last().is_some_and(|&last| time < last)
    }
}
