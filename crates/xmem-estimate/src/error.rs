//! Jobs of a graph that cannot be estimated.

use thiserror::Error;
use xmem::EstimateError;
use xmem_graph::GraphError;

/// A job of a graph that cannot be estimated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GraphJobError {
    /// The graph, or the job noted beside it, is damaged or says too little.
    #[error(transparent)]
    Graph(GraphError),
    /// The settings do not go with the graph.
    #[error(transparent)]
    Settings(GraphError),
    /// Neither the graph nor the settings say what is done with the model.
    #[error("the graph does not say what is done with the model")]
    NoJob,
    /// A type that tensors of a model cannot have.
    #[error("unknown type `{name}`: expected bfloat16, float16, float32 or float64")]
    UnknownType {
        /// The name.
        name: String,
    },
    /// The estimate cannot be made.
    #[error(transparent)]
    Estimate(#[from] EstimateError),
}

impl GraphJobError {
    /// An error of acting a graph: some are about what was asked of it.
    pub(crate) fn of_acting(error: GraphError) -> Self {
        match error {
            GraphError::Fixed { .. }
            | GraphError::Rebatched { .. }
            | GraphError::NoModule { .. }
            | GraphError::NoLoss => Self::Settings(error),
            error => Self::Graph(error),
        }
    }
}
