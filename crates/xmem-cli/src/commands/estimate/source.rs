//! The file of a graph, in either format.

use super::args::JobArgs;
use xmem_graph::graph::InputRole;
use xmem_graph::{ActedRun, Graph, GraphError, Workload, act, onnx, pt2};

/// A graph with what was stored beside it.
pub(super) enum Source {
    /// Of torch.export, at all sizes.
    Archive(pt2::Archive),
    /// Of ONNX; a graph is made of it for each size.
    Model(onnx::Model),
}

impl Source {
    /// Reads a file; its first bytes say what it is.
    pub(super) fn read(bytes: Vec<u8>) -> Result<Self, GraphError> {
        if pt2::is_archive(&bytes) {
            Ok(Self::Archive(pt2::read(&bytes)?))
        } else if onnx::is_model(&bytes) {
            Ok(Self::Model(onnx::read(bytes)?))
        } else {
            Err(GraphError::UnknownFormat)
        }
    }

    /// What `xmem export` noted of the job.
    pub(super) fn job(&self) -> Option<&str> {
        match self {
            Self::Archive(archive) => archive.job.as_deref(),
            Self::Model(_) => None,
        }
    }

    /// The paths of the parameters.
    pub(super) fn parameters(&self, args: &JobArgs) -> Result<Vec<String>, GraphError> {
        let of = |graph: &Graph| -> Vec<String> {
            let paths = graph.inputs.iter().filter_map(|input| match &input.role {
                InputRole::Parameter(path) => Some(path.clone()),
                _ => None,
            });
            paths.collect()
        };
        match self {
            Self::Archive(archive) => Ok(of(&archive.graph)),
            Self::Model(model) => {
                let mut workload = Workload::default();
                workload.batch = args.batch.first().map(|n| n.get().into());
                workload.length = args.length.map(|n| n.get().into());
                Ok(of(&model.graph(&workload)?))
            }
        }
    }

    /// Runs the graph without values.
    pub(super) fn act(&self, workload: &Workload) -> Result<ActedRun, GraphError> {
        match self {
            Self::Archive(archive) => act(&archive.graph, workload),
            Self::Model(model) => {
                let graph = model.graph(workload)?;
                let mut workload = workload.clone();
                // The graph has these sizes.
                (workload.batch, workload.length) = (None, None);
                act(&graph, &workload)
            }
        }
    }
}
