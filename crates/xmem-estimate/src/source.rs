//! The file of a graph, in any format.

use xmem_graph::pt2::{self, Archive};
use xmem_graph::{ActedRun, Graph, GraphError, Workload, act};

/// A graph with what was stored beside it. Each format is a variant.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Source {
    /// An archive of torch.export.
    Archive(Archive),
}

impl Source {
    /// Reads a file; its first bytes say what it is.
    ///
    /// # Errors
    /// If it is no graph, or a damaged one.
    pub fn read(bytes: Vec<u8>) -> Result<Self, GraphError> {
        if pt2::is_archive(&bytes) {
            Ok(Self::Archive(pt2::read(&bytes)?))
        } else {
            Err(GraphError::UnknownFormat)
        }
    }

    /// The graph as it is in the file.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        match self {
            Self::Archive(archive) => &archive.graph,
        }
    }

    /// The job that was noted beside the graph.
    ///
    /// # Errors
    /// If the notes are damaged.
    pub fn job(&self) -> Result<Option<Workload>, GraphError> {
        match self {
            Self::Archive(archive) => archive.job.as_deref().map(Workload::from_job).transpose(),
        }
    }

    /// The size of the batch in the file, if it is open.
    #[must_use]
    pub fn batch(&self) -> Option<i64> {
        self.size(Graph::batch_symbol)
    }

    /// The length of sequences in the file, if it is open.
    #[must_use]
    pub fn length(&self) -> Option<i64> {
        self.size(Graph::length_symbol)
    }

    fn size(&self, symbol: impl Fn(&Graph) -> Option<&str>) -> Option<i64> {
        let graph = self.graph();
        graph.symbols.get(symbol(graph)?).copied()
    }

    /// Runs the graph without values.
    pub(crate) fn act(&self, workload: &Workload) -> Result<ActedRun, GraphError> {
        act(self.graph(), workload)
    }
}
