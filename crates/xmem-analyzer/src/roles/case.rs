//! One block under decision, and the rows and stages of the table that decides it.

use super::gradients::Accumulated;
use super::initial::{Claim, DataUses, ModelRows};
use super::recorded::Moves;
use super::weights::FrozenWeights;
use super::{Facts, Gradients, Inventory};
use crate::block::{Block, Residency, Role};
use crate::python::Context;
use rustc_hash::{FxHashMap, FxHashSet};
use xmem_types::{BlockId, Bytes, Nanos, OpId, Sym};

/// One row of the table of roles.
pub(super) struct Row {
    /// Stable, kebab-case name.
    pub(super) name: &'static str,
    /// Whether the row decides a block. A condition that takes an item out of an inventory does so last.
    pub(super) when: fn(&mut Case<'_>) -> bool,
    pub(super) outcome: Outcome,
    /// PyTorch file and function, paper section or schema that the row rests on.
    pub(super) source: &'static str,
}

/// The decision of a row.
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    /// A role and a residency with the evidence.
    Is(Role, Residency, &'static str),
    /// The role that an earlier stage decided; another residency.
    Same(Residency, &'static str),
    /// Batch data, or a temporary where the block is freed before forward begins.
    Data(Residency, &'static str),
    /// All as an earlier stage decided it.
    Unchanged,
}

/// A pass over the blocks with its part of the table: the first row whose condition holds decides.
pub(super) struct Stage {
    pub(super) name: &'static str,
    /// The blocks that the stage looks at.
    pub(super) of: fn(&Block, &Facts<'_>) -> bool,
    /// Looks up what the conditions need, from the trace and from the decisions of earlier stages.
    pub(super) prepare: fn(&mut Clues, &[Block], &Facts<'_>),
    pub(super) rows: &'static [Row],
}

impl Stage {
    /// Decides the stage's blocks, in order of allocation.
    pub(super) fn run(&self, blocks: &mut [Block], clues: &mut Clues, facts: &Facts<'_>) {
        (self.prepare)(clues, blocks, facts);
        for row in 0..blocks.len() {
            if !(self.of)(&blocks[row], facts) {
                continue;
            }
            let mut case = Case { facts, blocks, row, clues, beside_the_models: None };
            let Some(found) = self.rows.iter().find(|rule| (rule.when)(&mut case)) else {
                continue;
            };
            let (role, residency, evidence) = match found.outcome {
                Outcome::Is(role, residency, evidence) => (role, residency, evidence),
                Outcome::Same(residency, evidence) => (case.block().role, residency, evidence),
                Outcome::Data(residency, evidence) => {
                    let brief = case.is_freed_before_forward();
                    (if brief { Role::Temporary } else { Role::Input }, residency, evidence)
                }
                Outcome::Unchanged => continue,
            };
            blocks[row].decide(role, residency, evidence);
        }
    }
}

/// What the stages look up before they decide, each for itself and for those after it.
#[derive(Default)]
pub(super) struct Clues {
    /// When the model was last seen at work.
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
    pub(super) made: FxHashMap<(Option<Sym>, Bytes, Sym), u32>,
    /// Trained leaves that are no parameters of the models: sizes with their count.
    pub(super) unnamed: FxHashMap<Bytes, u32>,
    pub(super) moves: Moves,
}

/// A block under decision.
pub(super) struct Case<'a> {
    pub(super) facts: &'a Facts<'a>,
    pub(super) blocks: &'a [Block],
    pub(super) row: usize,
    pub(super) clues: &'a mut Clues,
    /// See [`Case::is_beside_the_models`], which takes out of an inventory and is asked twice.
    pub(super) beside_the_models: Option<bool>,
}

impl<'a> Case<'a> {
    pub(super) fn block(&self) -> &'a Block {
        &self.blocks[self.row]
    }

    pub(super) fn id(&self) -> BlockId {
        BlockId::new(self.row)
    }

    pub(super) fn context(&self) -> Context {
        self.facts.frames[self.row].context
    }

    pub(super) fn has_python(&self) -> bool {
        self.facts.program.has_python()
    }

    /// Whether the block is alive when the model is last seen at work.
    pub(super) fn is_kept(&self) -> bool {
        self.block().lasts_beyond(self.clues.last_use)
    }

    /// Whether the block outlives the phase it is made in.
    pub(super) fn outlives_phase(&self) -> bool {
        self.block().lasts_beyond(self.facts.span_end(self.block().alloc_time))
    }

    /// Whether an operator made the block from Python values.
    pub(super) fn is_from_number(&self) -> bool {
        self.block().op.is_some_and(|op| self.clues.numbers.contains(&op))
    }

    /// Takes a parameter of the block's size out of those that backward reaches.
    pub(super) fn takes_gradient(&mut self) -> bool {
        self.clues.unmatched.take(self.block().size)
    }
}
