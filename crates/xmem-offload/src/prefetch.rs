//! The windows of the policies: what is brought back while the backward pass of a layer runs.

use crate::graph::{Graph, LayerId, LayerKind, StepId, Work};
use crate::policy::Policy;
use crate::selection::Selection;
use xmem_types::BlockId;

/// The backward pass as a sequence of layers, each with the blocks that it is the first to need.
#[derive(Clone, Debug)]
pub(crate) struct Backward {
    visits: Vec<Visit>,
    /// The visit that begins with a step.
    at: Vec<Option<usize>>,
}

#[derive(Clone, Debug)]
struct Visit {
    layer: LayerId,
    kind: LayerKind,
    needs: Vec<BlockId>,
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

    /// The blocks that `policy` brings back while the layer runs whose backward pass begins with `step`, in
    /// order. `is_away` is true for blocks that are on the host only.
    pub(crate) fn prefetched(
        &self,
        policy: Policy,
        step: StepId,
        is_away: impl Fn(BlockId) -> bool,
    ) -> Vec<BlockId> {
        let Some(at) = self.at[step.index()] else { return Vec::new() };
        let away = |visit: &Visit| -> Vec<BlockId> {
            visit.needs.iter().copied().filter(|&block| is_away(block)).collect()
        };
        let following = &self.visits[at + 1..];
        match policy {
            Policy::None | Policy::Serial | Policy::SaveOnCpu => Vec::new(),
            Policy::VdnnAll | Policy::VdnnConv => {
                // The next layer with something to bring back, no farther than the next convolution.
                for visit in following {
                    let blocks = away(visit);
                    if !blocks.is_empty() || visit.kind == LayerKind::Conv {
                        return blocks;
                    }
                }
                Vec::new()
            }
            Policy::SuperNeurons(_) => {
                if self.visits[at].kind != LayerKind::Conv {
                    return Vec::new();
                }
                let conv = following.iter().position(|visit| visit.kind == LayerKind::Conv);
                let window = conv.map_or(following, |conv| &following[..=conv]);
                window.iter().flat_map(away).collect()
            }
            Policy::Dymem => {
                // Not more than two convolutions at a time, the running one included. Algorithm 2 of the paper does
                // not say where the walk ends; its text does.
                let mut convolutions = usize::from(self.visits[at].kind == LayerKind::Conv);
                let mut blocks = Vec::new();
                for visit in following {
                    if visit.kind == LayerKind::Conv {
                        if convolutions == 2 {
                            break;
                        }
                        convolutions += 1;
                    }
                    blocks.extend(away(visit));
                }
                blocks
            }
        }
    }
}
