//! Rows and stages of the table of roles.

use super::case::Case;
use super::clues::Clues;
use super::facts::Facts;
use crate::block::{Block, Residency, Role};

/// One row of the table of roles.
pub(super) struct Row {
    /// Stable, kebab-case name.
    pub(super) name: &'static str,
    /// True if the row decides a block. A condition that takes an item out of an inventory does so
    /// last.
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
            let mut case = Case::new(row, blocks, facts, clues);
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
