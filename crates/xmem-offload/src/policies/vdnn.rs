//! vDNN (Rhu et al., MICRO 2016, section III): a barrier after each layer, one layer brought back ahead.

use super::PolicyRules;
use crate::graph::{Graph, LayerKind};
use crate::moves::Moves;
use crate::prefetch::Window;
use crate::rules::{Barrier, Rules};
use crate::selection::{Selection, Trigger};
use xmem_types::BlockId;

/// The layers of `vDNN_all`: convolutions and pooling. Activations are in place there, and have no inputs of their own.
const IN_PAPER: [LayerKind; 2] = [LayerKind::Conv, LayerKind::Pool];

/// vDNN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vdnn {
    pub(crate) set: VdnnSet,
}

/// The layers whose inputs are moved.
#[derive(Clone, Copy, Debug)]
pub(crate) enum VdnnSet {
    /// `vDNN_all`.
    All(Moves),
    /// `vDNN_conv`.
    Convolutions,
}

impl PolicyRules for Vdnn {
    fn rules(&self, graph: &Graph) -> Rules {
        let moves = |kind| match self.set {
            VdnnSet::All(moves) => moves.includes(kind, &IN_PAPER),
            VdnnSet::Convolutions => kind == LayerKind::Conv,
        };
        Rules {
            selection: Selection::inputs(graph, Trigger::LastReader, moves),
            barrier: Barrier::EachLayer,
            prefetch,
            ..Rules::nothing()
        }
    }
}

/// The next layer with something to bring back, no farther than the next convolution.
fn prefetch(window: &Window<'_>) -> Vec<BlockId> {
    for visit in window.following() {
        let blocks = window.away(visit);
        if !blocks.is_empty() || visit.kind.bounds_window() {
            return blocks;
        }
    }
    Vec::new()
}
