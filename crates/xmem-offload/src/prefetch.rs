//! The backward pass as policies look ahead in it: what could be brought back while the backward pass of a layer runs.

use crate::graph::{Graph, LayerId, LayerKind, StepId, Work};
use crate::selection::Selection;
use xmem_types::BlockId;

/// The backward pass as a sequence of layers, each with the blocks that it is the first to need.
#[derive(Clone, Debug)]
pub(crate) struct Backward {
    visits: Vec<Visit>,
    /// The visit that begins with a step.
    at: Vec<Option<usize>>,
}

/// The backward pass of a layer, or a part of it.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    layer: LayerId,
    /// The kind of the layer.
    pub(crate) kind: LayerKind,
    /// The blocks that it is the first to need.
    needs: Vec<BlockId>,
}

/// The backward pass from a layer on.
pub(crate) struct Window<'a> {
    running: &'a Visit,
    following: &'a [Visit],
    is_away: &'a dyn Fn(BlockId) -> bool,
}

impl<'a> Window<'a> {
    /// The kind of the layer whose backward pass runs.
    pub(crate) const fn running(&self) -> LayerKind {
        self.running.kind
    }

    /// The layers after it, in the order of the backward pass.
    pub(crate) const fn following(&self) -> &'a [Visit] {
        self.following
    }

    /// The blocks that a layer is the first to need, and that are on the host only.
    pub(crate) fn away(&self, visit: &Visit) -> Vec<BlockId> {
        visit.needs.iter().copied().filter(|&block| (self.is_away)(block)).collect()
    }
}

impl Backward {
    pub(crate) fn new(graph: &Graph, selection: &Selection) -> Self {
        let mut visits: Vec<Visit> = Vec::new();
        let mut at = vec![None; graph.steps().len()];
        let mut visit_of = vec![None; graph.steps().len()];
        for (row, step) in graph.steps().iter().enumerate() {
            if let Work::Backward(layer) = step.work {
                if visits.last().is_none_or(|visit| visit.layer != layer) {
                    at[row] = Some(visits.len());
                    let kind = graph.layers()[layer.index()].kind;
                    visits.push(Visit { layer, kind, needs: Vec::new() });
                }
                visit_of[row] = Some(visits.len() - 1);
            }
        }
        for offload in &selection.offloads {
            if let Some(visit) = visit_of[offload.first_backward.index()] {
                visits[visit].needs.push(offload.block);
            }
        }
        Self { visits, at }
    }

    /// The backward pass from the layer on whose pass begins with `step`, if one does. `is_away` is true for blocks that are
    /// on the host only.
    pub(crate) fn window<'a>(
        &'a self,
        step: StepId,
        is_away: &'a dyn Fn(BlockId) -> bool,
    ) -> Option<Window<'a>> {
        let at = self.at[step.index()]?;
        Some(Window { running: &self.visits[at], following: &self.visits[at + 1..], is_away })
    }
}
