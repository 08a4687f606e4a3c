//! SuperNeurons (Wang et al., PPoPP 2018, section 3): offloading with a window of one convolution, and two options.

use super::PolicyRules;
use crate::graph::{Graph, LayerKind};
use crate::moves::Moves;
use crate::prefetch::Window;
use crate::recomputation::Recomputations;
use crate::rules::{Barrier, Leaves, Rules};
use crate::selection::{Selection, Trigger};
use xmem_types::BlockId;

/// The layers whose inputs the paper moves: the copies of convolutions are hidden.
const IN_PAPER: [LayerKind; 1] = [LayerKind::Conv];

/// The options of [`Policy::SuperNeurons`](crate::Policy::SuperNeurons).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SuperNeurons {
    /// The layers whose inputs are moved.
    pub moves: Moves,
    /// Blocks are moved to the host only where memory is short, least recently used first (section 3.3).
    pub tensor_cache: bool,
    /// Outputs of cheap layers between convolutions are computed again in the backward pass (section 3.4).
    pub recompute: bool,
}

impl PolicyRules for SuperNeurons {
    fn rules(&self, graph: &Graph) -> Rules {
        let moves = |kind| self.moves.includes(kind, &IN_PAPER);
        let selection = Selection::inputs(graph, Trigger::LastReader, moves);
        let recomputations = match self.recompute {
            true => Recomputations::new(graph, &selection, is_cheap),
            false => Recomputations::default(),
        };
        Rules {
            selection,
            recomputations,
            barrier: Barrier::EachLayer,
            prefetch,
            leaves: if self.tensor_cache { Leaves::WhereShort } else { Leaves::Always },
            ..Rules::nothing()
        }
    }
}

const fn is_cheap(kind: LayerKind) -> bool {
    matches!(kind, LayerKind::Pool | LayerKind::Act | LayerKind::Norm)
}

/// With the backward pass of a convolution, what is needed up to the convolution before.
fn prefetch(window: &Window<'_>) -> Vec<BlockId> {
    if !window.running().bounds_window() {
        return Vec::new();
    }
    let following = window.following();
    let end = following.iter().position(|visit| visit.kind.bounds_window());
    let within = end.map_or(following, |end| &following[..=end]);
    within.iter().flat_map(|visit| window.away(visit)).collect()
}
