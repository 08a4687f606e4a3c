//! The file of a graph, in any format.

use xmem_graph::graph::{InputRole, TensorInfo};
use xmem_graph::onnx::{self, Model};
use xmem_graph::pt2::{self, Archive};
use xmem_graph::{ActedRun, Graph, GraphError, Workload, act};

/// A graph with what was stored beside it. Each format is a variant.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Source {
    /// An archive of torch.export.
    Archive(Archive),
    /// A model of ONNX.
    Model(Box<SizedModel>),
}

/// A model of ONNX, of which a graph is made for each size.
#[derive(Clone, Debug)]
pub struct SizedModel {
    model: Model,
    /// At the sizes of the file; of 1 where they are open.
    graph: Graph,
}

impl Source {
    /// Reads a file; its first bytes say what it is.
    ///
    /// # Errors
    /// If it is no graph, or a damaged one.
    pub fn read(bytes: Vec<u8>) -> Result<Self, GraphError> {
        if pt2::is_archive(&bytes) {
            Ok(Self::Archive(pt2::read(&bytes)?))
        } else if onnx::is_model(&bytes) {
            let model = onnx::read(bytes)?;
            let graph = model.graph(&Workload::default())?;
            Ok(Self::Model(Box::new(SizedModel { model, graph })))
        } else {
            Err(GraphError::UnknownFormat)
        }
    }

    /// The graph as it is in the file.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        match self {
            Self::Archive(archive) => &archive.graph,
            Self::Model(sized) => &sized.graph,
        }
    }

    /// The job that was noted beside the graph.
    ///
    /// # Errors
    /// If the notes are damaged.
    pub fn job(&self) -> Result<Option<Workload>, GraphError> {
        match self {
            Self::Archive(archive) => archive.job.as_deref().map(Workload::from_job).transpose(),
            Self::Model(_) => Ok(None),
        }
    }

    /// The size of the batch in the file, if another one can be asked for.
    #[must_use]
    pub fn batch(&self) -> Option<i64> {
        match self {
            Self::Archive(archive) => size(&archive.graph, archive.graph.batch_symbol()),
            Self::Model(sized) => sized.input_size(0, |_| true),
        }
    }

    /// The length of sequences in the file, if another one can be asked for.
    #[must_use]
    pub fn length(&self) -> Option<i64> {
        match self {
            Self::Archive(archive) => size(&archive.graph, archive.graph.length_symbol()),
            // The second size of numbers of words.
            Self::Model(sized) => sized.input_size(1, |tensor| {
                !tensor.dtype.is_floating_point() && tensor.dims.len() == 2
            }),
        }
    }

    /// Runs the graph without values.
    pub(crate) fn act(&self, workload: &Workload) -> Result<ActedRun, GraphError> {
        match self {
            Self::Archive(archive) => act(&archive.graph, workload),
            Self::Model(sized) => {
                let graph = sized.model.graph(workload)?;
                let mut workload = workload.clone();
                // The graph has these sizes.
                (workload.batch, workload.length) = (None, None);
                act(&graph, &workload)
            }
        }
    }
}

impl SizedModel {
    /// A size of the first input of the batch that is such a tensor.
    fn input_size(&self, at: usize, is: impl Fn(&TensorInfo) -> bool) -> Option<i64> {
        let inputs = self.graph.inputs.iter().filter(|input| input.role == InputRole::Batch);
        let mut tensors = inputs
            .filter_map(|input| self.graph.body.values[input.value.0 as usize].tensor.as_ref());
        tensors.find(|tensor| is(tensor))?.dims.get(at)?.value(&self.graph.symbols)
    }
}

fn size(graph: &Graph, symbol: Option<&str>) -> Option<i64> {
    graph.symbols.get(symbol?).copied()
}
