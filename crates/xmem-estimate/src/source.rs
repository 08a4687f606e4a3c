//! The file of a graph, in any format.

use std::borrow::Cow;
use xmem_graph::graph::{InputRole, TensorInfo};
use xmem_graph::onnx::{self, Model};
use xmem_graph::pt2::{self, Archive};
use xmem_graph::{ActedRun, Graph, GraphError, Workload, act};

/// A graph with what was stored beside it. Each format is a variant.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Source {
    /// An archive of torch.export, at all sizes.
    Archive(Archive),
    /// A model of ONNX, of which a graph is made for each size.
    Model(Model),
}

impl Source {
    /// Reads a file; its first bytes say what it is.
    ///
    /// # Errors
    /// If it is not a graph, or a damaged one.
    pub fn read(bytes: Vec<u8>) -> Result<Self, GraphError> {
        if pt2::is_archive(&bytes) {
            Ok(Self::Archive(pt2::read(&bytes)?))
        } else if onnx::is_model(&bytes) {
            Ok(Self::Model(onnx::read(bytes)?))
        } else {
            Err(GraphError::UnknownFormat)
        }
    }

    /// The graph for a workload.
    ///
    /// # Errors
    /// If a model of ONNX does not say enough at the sizes of the workload, or cannot have them.
    pub fn graph(&self, workload: &Workload) -> Result<Cow<'_, Graph>, GraphError> {
        match self {
            Self::Archive(archive) => Ok(Cow::Borrowed(&archive.graph)),
            Self::Model(model) => model.graph(workload).map(Cow::Owned),
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

    /// The size of the batch in one of the graphs of this file, if another one can be asked for.
    #[must_use]
    pub fn batch(&self, graph: &Graph) -> Option<i64> {
        match self {
            Self::Archive(_) => size(graph, graph.batch_symbol()),
            Self::Model(_) => input_size(graph, 0, |_| true),
        }
    }

    /// The length of sequences in one of the graphs of this file, if another one can be asked for.
    #[must_use]
    pub fn length(&self, graph: &Graph) -> Option<i64> {
        match self {
            Self::Archive(_) => size(graph, graph.length_symbol()),
            // The second size of numbers of words.
            Self::Model(_) => input_size(graph, 1, |tensor| {
                !tensor.dtype.is_floating_point() && tensor.dims.len() == 2
            }),
        }
    }

    /// Runs the graph without values.
    pub(crate) fn act(&self, workload: &Workload) -> Result<ActedRun, GraphError> {
        let graph = self.graph(workload)?;
        let mut workload = workload.clone();
        if matches!(self, Self::Model(_)) {
            // The graph has these sizes.
            (workload.batch, workload.length) = (None, None);
        }
        act(&graph, &workload)
    }
}

fn size(graph: &Graph, symbol: Option<&str>) -> Option<i64> {
    graph.symbols.get(symbol?).copied()
}

/// A size of the first input of the batch that is such a tensor.
fn input_size(graph: &Graph, at: usize, is: impl Fn(&TensorInfo) -> bool) -> Option<i64> {
    let inputs = graph.inputs.iter().filter(|input| input.role == InputRole::Batch);
    let mut tensors =
        inputs.filter_map(|input| graph.body.values[input.value.0 as usize].tensor.as_ref());
    tensors.find(|tensor| is(tensor))?.dims.get(at)?.value(&graph.symbols)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of protobuf: bytes with their length.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).expect("a short field");
        [&[number << 3 | 2, length], content].concat()
    }

    /// `y = Reshape(x, [4, 2])` of `x: float[N, 2]`.
    fn reshaped() -> Vec<u8> {
        let sizes = [4_u64, 2].map(u64::to_le_bytes).concat();
        let constant = [&[8, 2, 16, 7][..], &field(8, b"s"), &field(9, &sizes)].concat();
        let node = [field(1, b"x"), field(1, b"s"), field(2, b"y"), field(4, b"Reshape")].concat();
        let dims = field(2, &[field(1, &field(2, b"N")), field(1, &[8, 2])].concat());
        let tensor = |dims: &[u8]| field(2, &field(1, &[&[8, 1][..], dims].concat()));
        let input = [field(1, b"x"), tensor(&dims)].concat();
        let output = [field(1, b"y"), tensor(&[])].concat();
        let graph = [field(1, &node), field(5, &constant), field(11, &input), field(12, &output)];
        let version = field(8, &[16, 17]);
        [&[8, 8][..], &field(7, &graph.concat()), &version].concat()
    }

    #[test]
    fn a_model_that_has_its_batch_in_a_constant_was_refused_before_the_batch_was_known() {
        let source = Source::read(reshaped()).expect("a model");
        source.graph(&Workload::default()).expect_err("a batch of one has two elements");
        let mut workload = Workload::default();
        workload.batch = Some(4);
        let graph = source.graph(&workload).expect("at its own size");
        assert_eq!((source.batch(&graph), source.length(&graph)), (Some(4), None));
        source.act(&workload).expect("it runs");
    }
}
