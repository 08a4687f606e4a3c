//! Nodes of the graph of gradients, with what they saved (torch/csrc/autograd/function.h).

use super::{Checkpoint, Hook, Tensor};
use crate::dtype::DType;
use crate::eager::Eager;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The backward function of one call.
pub(crate) struct Node {
    pub(crate) name: Cow<'static, str>,
    /// `sequence_nr`: later calls come first.
    pub(crate) sequence: u64,
    pub(crate) id: Cell<u64>,
    pub(crate) edges: RefCell<Vec<Option<Edge>>>,
    /// Sizes and types of the forward call's results, which the gradients must have.
    pub(crate) inputs: RefCell<Vec<(Vec<i64>, DType)>>,
    pub(crate) saved: RefCell<Vec<Option<Tensor>>>,
    /// Instead of what was saved: where it is computed again.
    pub(crate) recomputed: Option<(Rc<Checkpoint>, usize)>,
    /// What is done before it runs.
    pub(crate) before: RefCell<Vec<Hook>>,
    pub(crate) kind: NodeKind,
}

/// What a node does.
pub(crate) enum NodeKind {
    Function(Function),
    /// Adds to the gradient of a leaf.
    Accumulate(Tensor),
}

/// Gradients of the results in, gradients of the arguments out.
pub(crate) type Function =
    Box<dyn Fn(&Eager, &Saved<'_>, &[Option<Tensor>]) -> Vec<Option<Tensor>>>;

/// An input of a node.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) node: Rc<Node>,
    pub(crate) input: usize,
}

/// What a backward function may use.
pub(crate) struct Saved<'a> {
    pub(crate) tensors: &'a [Option<Tensor>],
    pub(crate) needed: Vec<bool>,
}

impl Saved<'_> {
    /// A saved tensor.
    ///
    /// # Panics
    /// If none was saved at this place: an error of the operator's definition.
    pub(crate) fn tensor(&self, at: usize) -> &Tensor {
        self.tensors[at].as_ref().expect("saved where its gradient is needed")
    }

    /// A saved tensor, if it was.
    pub(crate) fn maybe(&self, at: usize) -> Option<&Tensor> {
        self.tensors.get(at).and_then(Option::as_ref)
    }

    /// Returns whether the gradient of this argument is needed (`should_compute_output`).
    pub(crate) fn needs(&self, argument: usize) -> bool {
        self.needed.get(argument).copied().unwrap_or(false)
    }
}

impl Node {
    /// The node that adds to a leaf's gradient.
    pub(crate) fn accumulator(leaf: Tensor) -> Rc<Self> {
        let inputs = vec![(leaf.dims().to_vec(), leaf.dtype())];
        Rc::new(Self {
            name: Cow::Borrowed("torch::autograd::AccumulateGrad"),
            sequence: u64::MAX,
            id: Cell::new(0),
            edges: RefCell::default(),
            inputs: RefCell::new(inputs),
            saved: RefCell::default(),
            recomputed: None,
            before: RefCell::default(),
            kind: NodeKind::Accumulate(leaf),
        })
    }
}

impl Drop for Node {
    /// One after another: a chain of nodes is as long as the model is deep.
    fn drop(&mut self) {
        let mut chain: Vec<Rc<Node>> =
            self.edges.get_mut().drain(..).flatten().map(|edge| edge.node).collect();
        while let Some(node) = chain.pop() {
            if let Some(mut node) = Rc::into_inner(node) {
                chain.extend(node.edges.get_mut().drain(..).flatten().map(|edge| edge.node));
            }
        }
    }
}
