//! Where GTBM places a piece: the group it belongs to, from the graph alone (Dymem, section 3.3).

use crate::graph::{Graph, LayerKind, StepId, Work};
use xmem_types::BlockId;

/// The group of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// At the low end of the main space.
    #[default]
    Movable,
    /// At the high end: what waits for a join while other blocks come and go.
    Temporary,
    /// In a space of its own: what fully connected layers, softmax and dropout make.
    Reclaimed,
}

impl Group {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Movable => "movable",
            Self::Temporary => "temporary",
            Self::Reclaimed => "reclaimed",
        }
    }
}

/// The group of a block that is allocated by `step`.
///
/// Algorithm 3 of the paper tests whether the single consumer of a tensor is the next layer; its text and its figure
/// 10 say that what waits for a join is temporary, which is the rule here: an output with several readers, or
/// with one that is a join and not the next layer. Both hold in the forward pass only.
pub(crate) fn group(graph: &Graph, id: BlockId, step: StepId) -> Group {
    let Work::Forward(layer) = graph.steps()[step.index()].work else { return Group::Movable };
    let kind = graph.layers()[layer.index()].kind;
    if matches!(kind, LayerKind::Fc | LayerKind::Softmax | LayerKind::Dropout) {
        return Group::Reclaimed;
    }
    let block = graph.block(id);
    // A layer that changes its input in place stands for the one before it.
    let made_by = block.writers.last().copied().unwrap_or(step);
    let mut readers: Vec<_> = block
        .readers
        .iter()
        .filter(|&&reader| reader > made_by)
        .filter_map(|reader| graph.steps()[reader.index()].work.layer())
        .collect();
    readers.dedup();
    match readers[..] {
        [] => Group::Movable,
        [reader] => {
            let is_join = graph.layers()[reader.index()].kind == LayerKind::Join;
            let made_by = graph.steps()[made_by.index()].work.layer();
            let is_next = made_by.is_some_and(|layer| layer.index() + 1 == reader.index());
            if is_join && !is_next { Group::Temporary } else { Group::Movable }
        }
        _ => Group::Temporary,
    }
}
