//! The graph of gradients: nodes with what they saved, and the engine that runs them
//! (torch/csrc/autograd/engine.cpp, function.h, input_buffer.cpp, functions/accumulate_grad.h).

use super::Eager;
use super::arguments::{Args, args};
use super::tensor::{Edge, Node, NodeKind, Saved, Tensor};
use crate::dtype::DType;
use crate::events::{CallKind, Sequence};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;

/// A forward call that gradients flow through.
pub(crate) struct Recorded<'a> {
    /// Arguments that may need a gradient, in order.
    pub(crate) arguments: &'a [&'a Tensor],
    /// Results.
    pub(crate) results: &'a [&'a Tensor],
}

impl Eager {
    /// Returns whether a call with these arguments is noted.
    pub(crate) fn records(&self, arguments: &[&Tensor]) -> bool {
        self.grad_mode.get()
            && arguments.iter().any(|t| t.requires_grad() && t.dtype().is_differentiable())
    }

    /// Notes a call, so that [`backward`](Self::backward) comes through it. `save` gives the tensors that
    /// the backward function needs, given which arguments need gradients.
    pub(crate) fn record(
        &self,
        name: impl Into<Cow<'static, str>>,
        call: &Recorded<'_>,
        save: impl FnOnce(&[bool]) -> Vec<Option<Tensor>>,
        function: impl Fn(&Eager, &Saved<'_>, &[Option<Tensor>]) -> Vec<Option<Tensor>> + 'static,
    ) {
        if !self.records(call.arguments) {
            return;
        }
        let differentiable = |t: &Tensor| t.dtype().is_differentiable();
        let edges: Vec<Option<Edge>> = call
            .arguments
            .iter()
            .map(|t| if differentiable(t) { t.edge() } else { None })
            .collect();
        let needed: Vec<bool> = edges.iter().map(Option::is_some).collect();
        let mut saved: Vec<Option<Tensor>> =
            save(&needed).into_iter().map(|t| t.map(|t| t.detached())).collect();
        let recomputed = self.packed(&mut saved);
        let inputs = call.results.iter().map(|t| (t.dims().to_vec(), t.dtype())).collect();
        let node = Rc::new(Node {
            name: name.into(),
            sequence: self.next_sequence(),
            id: Cell::new(0),
            edges: RefCell::new(edges),
            inputs: RefCell::new(inputs),
            saved: RefCell::new(saved),
            recomputed,
            before: RefCell::default(),
            kind: NodeKind::Function(Box::new(function)),
        });
        for (input, result) in call.results.iter().enumerate() {
            if differentiable(result) {
                result.set_history(Edge { node: Rc::clone(&node), input });
            }
        }
    }

    /// `loss.backward()`.
    pub(crate) fn backward(&self, loss: &Tensor) {
        let Some(root) = loss.edge() else { return };
        let grad_mode = self.grad_mode.replace(false);
        let gradient = self.call("aten::ones_like", args![loss], || {
            self.call("aten::empty_like", args![loss], || {
                self.empty_strided(loss.dims().to_vec(), loss.strides().to_vec(), loss.dtype())
            })
        });
        Engine::new(&root.node).run(self, &root, gradient.clone());
        drop(gradient);
        self.grad_mode.set(grad_mode);
    }
}

/// One run of backward.
struct Engine {
    /// By id of a node: edges into it that have not been followed.
    awaited: Vec<usize>,
    buffers: BTreeMap<u64, Vec<Option<Tensor>>>,
    ready: BinaryHeap<Task>,
    arrivals: u64,
}

/// A node whose gradients are complete.
struct Task {
    node: Rc<Node>,
    gradients: Vec<Option<Tensor>>,
    arrival: u64,
}

impl Task {
    fn rank(&self) -> (u64, std::cmp::Reverse<u64>) {
        (self.node.sequence, std::cmp::Reverse(self.arrival))
    }
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Task {}

impl PartialOrd for Task {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Task {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl Engine {
    /// Counts the edges into each node (`compute_dependencies`).
    fn new(root: &Rc<Node>) -> Self {
        // Id 0 is for nodes that were not met.
        let mut awaited = vec![0, 0];
        root.id.set(1);
        let mut nodes = vec![Rc::clone(root)];
        let mut at = 0;
        while let Some(node) = nodes.get(at).cloned() {
            at += 1;
            for edge in node.edges.borrow().iter().flatten() {
                let id = edge.node.id.get();
                // Ids of an earlier run may stand there still.
                let known = usize::try_from(id).ok().filter(|&id| {
                    id > 0 && nodes.get(id - 1).is_some_and(|n| Rc::ptr_eq(n, &edge.node))
                });
                if let Some(id) = known {
                    awaited[id] += 1;
                } else {
                    nodes.push(Rc::clone(&edge.node));
                    edge.node.id.set(nodes.len() as u64);
                    awaited.push(1);
                }
            }
        }
        Self { awaited, buffers: BTreeMap::new(), ready: BinaryHeap::new(), arrivals: 0 }
    }

    fn run(mut self, eager: &Eager, root: &Edge, gradient: Tensor) {
        let mut gradients = vec![None; root.node.inputs.borrow().len()];
        gradients[root.input] = Some(gradient);
        self.push(Rc::clone(&root.node), gradients);
        while let Some(task) = self.ready.pop() {
            self.evaluate(eager, task);
        }
        let last = eager.at_end_of_backward.take();
        last.into_iter().for_each(|callback| callback(eager));
    }

    fn push(&mut self, node: Rc<Node>, gradients: Vec<Option<Tensor>>) {
        self.arrivals += 1;
        self.ready.push(Task { node, gradients, arrival: self.arrivals });
    }

    /// `Engine::evaluate_function`.
    fn evaluate(&mut self, eager: &Eager, task: Task) {
        let Task { node, gradients, .. } = task;
        let sequence = match node.kind {
            NodeKind::Function(_) => Some(Sequence::Backward(node.sequence)),
            NodeKind::Accumulate(_) => None,
        };
        let frame = format!("autograd::engine::evaluate_function: {}", node.name);
        eager.within(CallKind::Operator, frame, Args::default(), sequence, || {
            let hooks = node.before.borrow().clone();
            hooks.iter().for_each(|hook| hook(eager));
            let outputs = call(eager, &node, gradients, sequence);
            node.saved.borrow_mut().clear();
            let edges = node.edges.borrow().clone();
            for (edge, output) in edges.into_iter().zip(outputs) {
                let Some(edge) = edge else { continue };
                self.deliver(eager, edge, output);
            }
        });
    }

    fn deliver(&mut self, eager: &Eager, edge: Edge, gradient: Option<Tensor>) {
        let id = edge.node.id.get();
        let size = edge.node.inputs.borrow().len();
        let buffer = self.buffers.entry(id).or_insert_with(|| vec![None; size]);
        if let Some(slot) = buffer.get_mut(edge.input) {
            match (slot.take(), gradient) {
                (Some(old), Some(new)) => *slot = Some(sum(eager, old, new)),
                (old, new) => *slot = old.or(new),
            }
        }
        let Some(awaited) = usize::try_from(id).ok().and_then(|id| self.awaited.get_mut(id)) else {
            return;
        };
        *awaited = awaited.saturating_sub(1);
        if *awaited == 0 {
            let gradients = self.buffers.remove(&id).unwrap_or_default();
            self.push(edge.node, gradients);
        }
    }
}

/// Adds two gradients of one tensor (input_buffer.cpp, `accumulate`): in place if nothing else refers to the first.
fn sum(eager: &Eager, old: Tensor, new: Tensor) -> Tensor {
    if old.is_dense() && old.is_sole_owner() {
        eager.call("aten::add_", args![old, new, 1_i64], || ());
        old
    } else {
        eager.call("aten::add", args![old, new, 1_i64], || {
            eager.elementwise(&[&old, &new], old.dtype())
        })
    }
}

/// `call_function`: the node, then checks of what it returned; the incoming gradients die at its end.
fn call(
    eager: &Eager,
    node: &Rc<Node>,
    gradients: Vec<Option<Tensor>>,
    sequence: Option<Sequence>,
) -> Vec<Option<Tensor>> {
    let mut arguments = Args::default();
    for gradient in &gradients {
        super::arguments::Argument::write(gradient, &mut arguments);
    }
    let mut outputs = match &node.kind {
        NodeKind::Accumulate(leaf) => {
            let gradient = gradients.into_iter().next().flatten();
            eager.within(CallKind::Operator, node.name.clone(), arguments, sequence, || {
                if let Some(gradient) = gradient {
                    accumulate(eager, leaf, gradient);
                }
            });
            if let Some(hook) = leaf.accumulated() {
                hook(eager);
            }
            return Vec::new();
        }
        NodeKind::Function(function) => {
            eager.within(CallKind::Operator, node.name.clone(), arguments, sequence, || {
                if gradients.iter().all(Option::is_none) {
                    return Vec::new();
                }
                if let Some((checkpoint, first)) = &node.recomputed {
                    eager.unpack((checkpoint, *first), &mut node.saved.borrow_mut());
                }
                let saved = node.saved.borrow();
                let needed = node.edges.borrow().iter().map(Option::is_some).collect();
                function(eager, &Saved { tensors: &saved, needed }, &gradients)
            })
        }
    };
    outputs.resize(node.edges.borrow().len(), None);
    for (edge, output) in node.edges.borrow().iter().zip(&mut outputs) {
        // Nobody asked for the others.
        if let (Some(edge), Some(gradient)) = (edge, output.take()) {
            let inputs = edge.node.inputs.borrow();
            let (dims, dtype) = &inputs[edge.input];
            *output = Some(validated(eager, gradient, dims, *dtype));
        }
    }
    outputs
}

/// A gradient with the sizes and the type of its tensor (engine.cpp, `validate_outputs`).
fn validated(eager: &Eager, gradient: Tensor, dims: &[i64], dtype: DType) -> Tensor {
    let gradient = if gradient.dims() == dims { gradient } else { eager.sum_to(&gradient, dims) };
    if gradient.dtype() == dtype { gradient } else { eager.to_dtype(&gradient, dtype) }
}

/// `AccumulateGrad::accumulateGrad`: the first gradient is stored without a copy if nothing else refers to it and its
/// strides are those of the leaf. Later ones are added in place.
fn accumulate(eager: &Eager, leaf: &Tensor, gradient: Tensor) {
    let present = leaf.grad();
    if let Some(present) = present {
        eager.call("aten::add_", args![present, gradient, 1_i64], || ());
        return;
    }
    let as_leaf = if leaf.is_dense() { gradient.lies_as(leaf) } else { gradient.is_contiguous() };
    if gradient.owners() == 1 && as_leaf {
        let kept = eager.call("aten::detach", args![gradient], || {
            eager.call("detach", args![gradient], || gradient.detached())
        });
        drop(gradient);
        leaf.set_grad(Some(kept));
        return;
    }
    let copy = eager.call("aten::clone", args![gradient, super::arguments::Absent], || {
        let copy = eager.call("aten::empty_strided", args![leaf.dims(), leaf.strides()], || {
            eager.strided(leaf.dims().to_vec(), leaf.strides().to_vec(), gradient.dtype())
        });
        eager.call("aten::copy_", args![copy, gradient, false], || ());
        copy
    });
    leaf.set_grad(Some(copy));
}
