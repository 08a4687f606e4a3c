//! The facts about a graph that was exported.

use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;
use xmem_types::Bytes;

/// A graph that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedGraph {
    /// The file of the archive.
    pub path: PathBuf,
    /// Its size.
    pub size: Bytes,
    /// Duration of the command.
    pub took: Duration,
    /// Version of PyTorch.
    pub torch: Option<String>,
    /// Version of Python.
    pub python: Option<String>,
    /// What the hook says about it.
    pub facts: GraphFacts,
}

/// What the hook says about a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GraphFacts {
    /// Calls of operators.
    #[serde(default)]
    pub operators: u64,
    /// Numbers in the parameters of its models.
    #[serde(default)]
    pub parameters: u64,
    /// Names of its inputs.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Dimensions of them that may have other sizes than in the exported iteration: `batch`, `length`.
    #[serde(default)]
    pub dynamic: Vec<String>,
    /// Why others may not.
    #[serde(default)]
    pub fixed: Option<String>,
}
