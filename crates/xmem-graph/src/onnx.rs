//! Models of ONNX: a protobuf file whose nodes are ONNX's operators (onnx/onnx.proto). Weights are not read.
//!
//! A model is decoded (`model`), nodes that stand for one operator of PyTorch are put together (`fusion`), and at given
//! sizes each is written as the calls that PyTorch makes for it (`lowering`), so that it is acted as an archive of
//! torch.export is.

mod budget;
mod fact;
mod fold;
mod fusion;
mod lowering;
mod model;
mod proto;
mod scope;
mod sizes;
#[cfg(test)]
mod tests;

pub use model::Model;

use crate::error::GraphError;
use crate::graph::Graph;
use crate::training::Workload;

/// The largest version of the format that is read; a later one may have another meaning.
const LATEST_VERSION: u8 = 30;

/// Returns whether these are the first bytes of a model: the version of the format, and a field of text or the graph
/// after it.
#[must_use]
pub fn is_model(bytes: &[u8]) -> bool {
    let [0x08, version @ 1..=LATEST_VERSION, key, ..] = bytes else { return false };
    let (field, wire) = (key >> 3, key & 7);
    *version > 0 && matches!((field, wire), (2..=4 | 6..=8 | 14, 2) | (5, 0))
}

/// Reads a model.
///
/// # Errors
/// If it is damaged, or has no graph.
pub fn read(bytes: Vec<u8>) -> Result<Model, GraphError> {
    let mut model = Model::decoded(bytes)?;
    model.assumptions = fusion::fuse(&mut model);
    Ok(model)
}

impl Model {
    /// The model as operators of PyTorch, at the sizes of a workload.
    ///
    /// # Errors
    /// If a size is not known, or operands do not fit each other.
    pub fn graph(&self, workload: &Workload) -> Result<Graph, GraphError> {
        lowering::lowered(self, workload)
    }
}
