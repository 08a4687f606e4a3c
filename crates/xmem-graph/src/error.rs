//! What can be wrong with a graph.

use thiserror::Error;

/// A graph that cannot be estimated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// Neither of the formats that are read.
    #[error("not a graph: expected an archive of torch.export (.pt2) or a model of ONNX (.onnx)")]
    UnknownFormat,
    /// The archive is damaged.
    #[error("cannot read the archive: {0}")]
    Archive(String),
    /// An archive without a graph.
    #[error(
        "the archive has no `models/*.json`: expected one that torch.export.save or xmem export wrote"
    )]
    NoModel,
    /// A file that is larger than any graph.
    #[error("`{name}` is larger than {limit} bytes when unpacked")]
    TooLarge {
        /// The file in the archive.
        name: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// JSON that is not the format's.
    #[error("the graph is damaged: {0}")]
    Format(String),
    /// A size that the graph does not say.
    #[error("the size of `{value}` is not known: {reason}")]
    Size {
        /// The value.
        value: String,
        /// Why.
        reason: String,
    },
    /// Operands whose sizes do not fit each other.
    #[error("sizes do not fit: {0}")]
    Shapes(String),
    /// A graph that fixes sizes which were changed.
    #[error(
        "the graph was exported with fixed sizes, and cannot have others: {what} at {node} (export it with dynamic_axes or dynamic_shapes)"
    )]
    Rebatched {
        /// The operator.
        node: String,
        /// The sizes that do not fit.
        what: String,
    },
    /// A tensor that no machine holds.
    #[error("a tensor of the graph is larger than any machine's memory")]
    Huge,
    /// Nothing to train.
    #[error(
        "the graph has no loss: no output of one element has a gradient. Name a loss with --loss, or estimate with --inference"
    )]
    NoLoss,
    /// A symbol that the graph does not have.
    #[error(
        "{what} cannot be changed: the graph was exported with a fixed one (export it with dynamic_shapes, as xmem export does)"
    )]
    Fixed {
        /// What was to be changed.
        what: &'static str,
    },
    /// A pattern of modules that none has.
    #[error(
        "no module that the graph calls is `{pattern}`: name modules by the end of their path, for example 'layers.*' (a model of ONNX has no modules)"
    )]
    NoModule {
        /// The pattern.
        pattern: String,
    },
    /// An optimizer that is not known.
    #[error("unknown optimizer `{name}`: expected one of {known}")]
    Optimizer {
        /// The name.
        name: String,
        /// The names that are known.
        known: String,
    },
}
