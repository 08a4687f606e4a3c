//! `torch.autograd.graph.save_on_cpu` (torch/autograd/graph.py): `pack_to_cpu` and `unpack_from_cpu` copy on the stream that
//! computes.

use super::PolicyRules;
use crate::graph::Graph;
use crate::rules::{CopiesOn, Rules};
use crate::selection::Selection;

/// All saved tensors, one thing at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SaveOnCpu;

impl PolicyRules for SaveOnCpu {
    fn rules(&self, graph: &Graph) -> Rules {
        Rules {
            selection: Selection::saved(graph),
            copies_on: CopiesOn::Compute,
            ..Rules::nothing()
        }
    }
}
