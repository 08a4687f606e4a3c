//! Dymem (HPDC 2020, section 3.2): copies begin with the first reader, and nothing waits but the end of the forward pass.

use super::PolicyRules;
use crate::graph::{Graph, LayerKind};
use crate::moves::Moves;
use crate::prefetch::Window;
use crate::rules::{Barrier, Rules};
use crate::selection::{Selection, Trigger};
use xmem_types::BlockId;

/// The layers whose inputs the paper moves; a ResNet has normalization between its convolutions and activations.
pub(super) const IN_PAPER: [LayerKind; 4] =
    [LayerKind::Conv, LayerKind::Pool, LayerKind::Act, LayerKind::Norm];

/// Dymem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dymem {
    pub(crate) moves: Moves,
}

impl PolicyRules for Dymem {
    fn rules(&self, graph: &Graph) -> Rules {
        let moves = |kind| self.moves.includes(kind, &IN_PAPER);
        Rules {
            selection: Selection::inputs(graph, Trigger::FirstReader, moves),
            barrier: Barrier::EndOfForward,
            prefetch,
            ..Rules::nothing()
        }
    }
}

/// Not more than two convolutions at a time, the running one included. Algorithm 2 of the paper does not say where the walk
/// ends; its text does.
fn prefetch(window: &Window<'_>) -> Vec<BlockId> {
    let mut convolutions = usize::from(window.running().bounds_window());
    let mut blocks = Vec::new();
    for visit in window.following() {
        if visit.kind.bounds_window() {
            if convolutions == 2 {
                break;
            }
            convolutions += 1;
        }
        blocks.extend(window.away(visit));
    }
    blocks
}
