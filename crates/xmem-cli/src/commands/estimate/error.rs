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
        Graph { graph: String, source: GraphError } => Unreadable XM0621 {
            title: "unreadable graph",
            cause:
                "The file is not a graph of torch.export or ONNX, or has operators or sizes that cannot be estimated.",
            example: "xmem estimate weights.pt --device t4-16g",
            fix:
                "Write a graph with `xmem export -- python train.py`, or record the job with `xmem profile -- python \
                 train.py`.",
        },
        #[error("cannot estimate `{graph}`")]
        Options { graph: String, source: GraphError } => Usage XM0622 {
            title: "options that do not suit the graph",
            cause: "An option asks for a batch size, type or job that this graph does not allow.",
            example: "xmem estimate model.pt2 --device t4-16g --batch 64",
            fix:
                "Export the graph with an open batch size: `xmem export -- python train.py`. The message names the \
                 option.",
        },
        #[error("`{graph}` does not say what is done with the model")]
        #[diagnostic(help("add --training --optimizer adamw, or --inference; `xmem export` writes a graph with its job"))]
        NoJob { graph: String } => Usage XM0623 {
            title: "graph without a job",
            cause: "The graph has a model, but does not contain training or inference.",
            example: "xmem estimate model.pt2 --device t4-16g",
            fix:
                "Add `--training --optimizer adamw` or `--inference`, or export the job with `xmem export -- python \
                 train.py`.",
        },
        #[error(transparent)]
        DType { source: GraphJobError } => Usage XM0624 {
            title: "unknown type of tensors",
            cause: "The parameters of a model have one of four types: bfloat16, float16, float32, float64.",
            example: "xmem estimate model.pt2 --device t4-16g --inference --dtype int8",
            fix: "Give one of these types, for example `--dtype bfloat16`.",
        },
        #[error("--trace writes one trace, and there are {count} batch sizes")]
        #[diagnostic(help("give one size to --batch"))]
        TraceOfSeveral { count: usize } => Usage XM0625 {
            title: "one trace for several batch sizes",
            cause: "`--trace` writes the trace of one batch size.",
            example: "xmem estimate model.pt2 --device t4-16g --batch 8,16 --trace out.json.zst",
            fix: "Give one size: `--batch 8 --trace out.json.zst`.",
        },
        #[error("a range of batch sizes is given alone")]
        #[diagnostic(help("give either --batch LOW..HIGH or --batch N,N,..."))]
        RangeInList => Usage XM0626 {
            title: "range in a list of batch sizes",
            cause: "`--batch` takes either one range or a list of sizes.",
            example: "xmem estimate model.pt2 --device t4-16g --batch 8,16..64",
            fix: "Write `--batch 8,16,64` or `--batch 8..64`.",
        },
        #[error("--law needs a range of batch sizes")]
        #[diagnostic(help("add --batch 1..512, for example"))]
        LawWithoutRange => Usage XM0627 {
            title: "law without a range of batch sizes",
            cause: "`--law` describes the memory over a range of batch sizes.",
            example: "xmem estimate model.pt2 --device t4-16g --law law.json",
            fix: "Add a range: `xmem estimate model.pt2 --device t4-16g --batch 1..512 --law law.json`.",
        },
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
