//! The clues that the stages of the table look up before they decide.

use super::facts::Facts;
use super::gradients::{self, Accumulated, Gradients};
use super::initial::{self, Claim, DataUses, ModelRows};
use super::inventory::Inventory;
use super::recorded::{self, Moves};
use super::running::{self, Likeness};
use super::weights::{self, FrozenWeights};
use crate::block::Block;
use crate::spans::Phase;
use rustc_hash::{FxHashMap, FxHashSet};
use xmem_types::{Bytes, Nanos, OpId};

/// The clues that the stages look up before they decide, each for itself and for those after it.
#[derive(Default)]
pub(super) struct Clues {
    /// The start of the last phase in which the model works.
    pub(super) last_use: Nanos,
    pub(super) first_forward: Nanos,
    /// Operators whose result came from Python values.
    pub(super) numbers: FxHashSet<OpId>,
    pub(super) gradients: Gradients,
    /// Blocks that accumulation nodes kept, by row.
    pub(super) accumulated: FxHashMap<usize, Accumulated>,
    /// Starts of the optimizer steps, with whether they run fused.
    pub(super) fused_steps: Vec<(Nanos, bool)>,
    /// Starts of forward phases that a data phase or the start of an iteration precedes.
    pub(super) forward_starts: Vec<Nanos>,
    /// Parameters that backward reaches.
    pub(super) inventory: Inventory,
    /// Those of them that no block was found for.
    pub(super) unmatched: Inventory,
    /// Blocks that operators show to be parameters, by row, and when.
    pub(super) claims: FxHashMap<usize, (Claim, Nanos)>,
    pub(super) frozen: FrozenWeights,
    pub(super) model: ModelRows,
    /// Sizes of the running statistics that normalizations take.
    pub(super) statistics: FxHashMap<Bytes, u32>,
    pub(super) data_uses: DataUses,
    pub(super) backward_starts: Vec<Nanos>,
    /// Iterations that made blocks alike which the run kept, as bits.
    pub(super) made: FxHashMap<Likeness, u32>,
    /// Trained leaves that are not parameters of the models: sizes with their count.
    pub(super) unnamed: FxHashMap<Bytes, u32>,
    pub(super) moves: Moves,
}

impl Clues {
    pub(super) fn new(facts: &Facts<'_>) -> Self {
        let (last_use, first_forward) = (facts.last_use(), facts.first_forward());
        Self { last_use, first_forward, ..Self::default() }
    }

    pub(super) fn of_backward(&mut self, blocks: &[Block], facts: &Facts<'_>) {
        (self.gradients, self.accumulated) = gradients::find(blocks, facts);
    }

    pub(super) fn of_steps(&mut self, _: &[Block], facts: &Facts<'_>) {
        self.numbers = running::made_from_numbers(facts);
        self.fused_steps = running::fused_steps(facts);
    }

    pub(super) fn of_data(&mut self, _: &[Block], facts: &Facts<'_>) {
        self.forward_starts = running::forward_starts(facts);
    }

    pub(super) fn of_parameters(&mut self, blocks: &[Block], facts: &Facts<'_>) {
        self.inventory = Inventory::build(&self.gradients, facts);
        self.unmatched = self.inventory.clone();
        self.claims = initial::claims(blocks, facts);
        self.frozen = FrozenWeights::of_first_forward(facts);
    }

    pub(super) fn of_init(&mut self, blocks: &[Block], facts: &Facts<'_>) {
        self.model = ModelRows::of(blocks);
        self.statistics = weights::statistics_of_first_forward(facts);
        self.data_uses = DataUses::find(blocks, facts);
    }

    pub(super) fn of_forward(&mut self, blocks: &[Block], facts: &Facts<'_>) {
        let backward = facts.phases.iter().filter(|p| p.phase == Phase::Backward);
        self.backward_starts = backward.map(|p| p.start).collect();
        self.made = running::made_in_forward(blocks, self.last_use, facts);
    }

    pub(super) fn of_recording(&mut self, blocks: &[Block], facts: &Facts<'_>) {
        if !facts.recorder.is_empty() {
            self.unnamed = recorded::trained_beside_the_models(blocks, facts, &self.inventory);
            self.moves = Moves::of(blocks, facts);
        }
    }
}
