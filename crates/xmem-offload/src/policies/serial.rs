//! The baseline of Dymem (HPDC 2020, section 5.3): the blocks that Dymem moves, on the stream that computes.

use super::PolicyRules;
use super::dymem::IN_PAPER;
use crate::graph::Graph;
use crate::moves::Moves;
use crate::rules::{CopiesOn, Rules};
use crate::selection::{Selection, Trigger};

/// Dymem's blocks, one thing at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Serial {
    pub(crate) moves: Moves,
}

impl PolicyRules for Serial {
    fn rules(&self, graph: &Graph) -> Rules {
        let moves = |kind| self.moves.includes(kind, &IN_PAPER);
        Rules {
            selection: Selection::inputs(graph, Trigger::FirstReader, moves),
            copies_on: CopiesOn::Compute,
            ..Rules::nothing()
        }
    }
}
