//! `DistributedDataParallel`: gradients are copied into buckets, which are summed over all ranks
//! (torch/nn/parallel/distributed.py; torch/csrc/distributed/c10d/reducer.cpp).

use super::Spans;
use super::broadcast::{broadcast, buckets, elements};
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::args;
use crate::eager::journal::Begun;
use crate::eager::tensor::Tensor;
use std::cell::RefCell;
use std::rc::Rc;

/// Limits of the first bucket and of the others (`kDefaultFirstBucketBytes`, `bucket_cap_mb`).
const LIMITS: [u64; 2] = [1 << 20, 25 << 20];

/// The reducer of a rank, with what `DistributedDataParallel.forward` does before the model.
pub(crate) struct Reducer {
    spans: Spans,
    /// Parameters that need gradients, in the model's order.
    parameters: Vec<Tensor>,
    buffers: Vec<Tensor>,
    gradient_as_bucket_view: bool,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    buckets: Vec<Bucket>,
    /// Parameters in the order in which their gradients were complete, until the buckets follow it.
    arrived: Vec<usize>,
    is_rebuilt: bool,
    forward: Option<Begun>,
}

struct Bucket {
    members: Vec<usize>,
    sum: Tensor,
    /// Gradients that it waits for.
    awaited: usize,
}

impl Reducer {
    /// Wraps models that are on the device.
    pub(crate) fn new(
        eager: &Eager,
        spans: Spans,
        (parameters, buffers): (&[Tensor], Vec<Tensor>),
        gradient_as_bucket_view: bool,
    ) -> Rc<Self> {
        eager.without_gradients(|| {
            let all: Vec<Tensor> = parameters.iter().chain(&buffers).cloned().collect();
            broadcast(eager, &all);
        });
        let parameters: Vec<Tensor> =
            parameters.iter().filter(|p| p.requires_grad()).cloned().collect();
        let reducer = Rc::new(Self {
            spans,
            parameters,
            buffers,
            gradient_as_bucket_view,
            state: RefCell::default(),
        });
        // One for each type, as nothing is known of the order of gradients.
        reducer
            .build(eager, buckets(&reducer.parameters, 0..reducer.parameters.len(), &[u64::MAX]));
        for (at, parameter) in reducer.parameters.iter().enumerate() {
            let owner = Rc::downgrade(&reducer);
            parameter.when_accumulated(Rc::new(move |eager| {
                if let Some(reducer) = owner.upgrade() {
                    reducer.arrived(eager, at);
                }
            }));
        }
        reducer
    }

    /// `Reducer::initialize_buckets`.
    fn build(&self, eager: &Eager, members: Vec<Vec<usize>>) {
        self.state.borrow_mut().buckets.clear();
        let made = members.into_iter().map(|members| {
            let dtype = self.parameters[members[0]].dtype();
            let sum = eager.without_gradients(|| {
                eager.empty_called(&[elements(&self.parameters, &members)], dtype)
            });
            eager.mark("on_device", &sum);
            Bucket { awaited: members.len(), members, sum }
        });
        let made = made.collect();
        self.state.borrow_mut().buckets = made;
    }

    /// `Reducer::mark_variable_ready`.
    fn arrived(&self, eager: &Eager, parameter: usize) {
        let mut state = self.state.borrow_mut();
        if !state.is_rebuilt {
            state.arrived.push(parameter);
        }
        let owner = state.buckets.iter_mut().find(|b| b.members.contains(&parameter));
        let Some(bucket) = owner else { return };
        let tensor = &self.parameters[parameter];
        if let Some(gradient) = tensor.grad() {
            eager.call("torch::distributed::reducer::mul_out", args![gradient], || ());
            if self.gradient_as_bucket_view {
                let strides = tensor.strides().to_vec();
                tensor.set_grad(Some(bucket.sum.view(tensor.dims().to_vec(), strides).detached()));
            }
        }
        bucket.awaited -= 1;
        if bucket.awaited == 0 {
            bucket.awaited = bucket.members.len();
            eager.call("c10d::allreduce_", args![bucket.sum], || ());
        }
    }

    /// `DistributedDataParallel._pre_forward`.
    fn pre_forward(&self, eager: &Eager) {
        let arrived = {
            let mut state = self.state.borrow_mut();
            let is_due = !state.is_rebuilt && !state.arrived.is_empty();
            state.is_rebuilt |= is_due;
            if is_due { std::mem::take(&mut state.arrived) } else { Vec::new() }
        };
        eager.without_gradients(|| {
            if !arrived.is_empty() {
                let order = buckets(&self.parameters, arrived, &LIMITS);
                self.agree(eager, order.len());
                self.build(eager, order);
            }
            if !self.buffers.is_empty() {
                broadcast(eager, &self.buffers);
            }
        });
    }

    /// `Reducer::sync_bucket_indices`.
    fn agree(&self, eager: &Eager, count: usize) {
        let size = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let indices = eager.empty_called(&[size(self.parameters.len() + 1)], DType::I32);
        eager.call("c10d::broadcast_", args![indices], || ());
        let sizes = eager.empty_called(&[size(count)], DType::I32);
        eager.call("c10d::broadcast_", args![sizes], || ());
    }

    /// Before a node.
    pub(super) fn before(&self, eager: &Eager, at: usize) {
        for _ in self.spans.calls.iter().filter(|call| call.nodes.start == at) {
            let call = eager.opened("DistributedDataParallel.forward");
            self.state.borrow_mut().forward = Some(call);
            self.pre_forward(eager);
        }
    }

    /// After the node before `at`.
    pub(super) fn after(&self, eager: &Eager, at: usize) {
        for _ in self.spans.calls.iter().filter(|call| call.nodes.end == at) {
            if let Some(call) = self.state.borrow_mut().forward.take() {
                eager.left(&call);
            }
        }
    }
}
