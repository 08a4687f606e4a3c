//! Graphs that cannot be estimated.

use crate::error::failures;
use miette::Diagnostic;
use thiserror::Error;
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
        #[error("unknown type `{name}`: expected bfloat16, float16, float32 or float64")]
        DType { name: String } => Usage,
        #[error("--trace writes one trace, and there are {count} batch sizes")]
        #[diagnostic(help("give one size to --batch"))]
        TraceOfSeveral { count: usize } => Usage,
    }
}
