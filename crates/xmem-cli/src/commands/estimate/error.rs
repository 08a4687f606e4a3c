//! Graphs that cannot be estimated.

use crate::error::{CliError, failures};
use crate::estimate;
use miette::Diagnostic;
use thiserror::Error;
use xmem_estimate::GraphJobError;
use xmem_graph::GraphError;

failures! {
    /// A graph that cannot be estimated.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum EstimateGraphFailure {
        #[error("cannot estimate `{graph}`")]
        Graph { graph: String, source: GraphError } => Unreadable,
        #[error("cannot estimate `{graph}`")]
        Options { graph: String, source: GraphError } => Usage,
        #[error("`{graph}` does not say what is done with the model")]
        #[diagnostic(help("add --training --optimizer adamw, or --inference; `xmem export` writes a graph with its job"))]
        NoJob { graph: String } => Usage,
        #[error(transparent)]
        DType { source: GraphJobError } => Usage,
        #[error("--trace writes one trace, and there are {count} batch sizes")]
        #[diagnostic(help("give one size to --batch"))]
        TraceOfSeveral { count: usize } => Usage,
        #[error("a range of batch sizes is given alone")]
        #[diagnostic(help("give either --batch LOW..HIGH or --batch N,N,..."))]
        RangeInList => Usage,
        #[error("--law needs a range of batch sizes")]
        #[diagnostic(help("add --batch 1..512, for example"))]
        LawWithoutRange => Usage,
    }
}

/// The error of a job of this graph.
pub(super) fn failure(graph: &str, error: GraphJobError) -> CliError {
    let graph = graph.to_owned();
    match error {
        GraphJobError::Graph(source) => EstimateGraphFailure::Graph { graph, source }.into(),
        GraphJobError::Settings(source) => EstimateGraphFailure::Options { graph, source }.into(),
        GraphJobError::NoJob => EstimateGraphFailure::NoJob { graph }.into(),
        GraphJobError::Estimate(source) => estimate::failure(&graph, source),
        source => EstimateGraphFailure::DType { source }.into(),
    }
}
