//! `fully_shard`: a rank has a shard of each parameter, gathers those of a module before it runs, and sums gradients into
//! shards when they are complete (torch/distributed/fsdp/_fully_shard/_fsdp_state.py, _fsdp_param_group.py, _fsdp_collectives.py).

use super::FullyShard;
use super::spans::{Span, Spans};
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::args;
use crate::eager::tensor::Tensor;
use crate::interpreter::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The streams on which FSDP allocates what it gathers and the gradients that it has summed (`FSDPCommContext`).
const GATHERING: u32 = 1;
const REDUCING: u32 = 2;

/// A parameter that is divided along its first dimension.
pub(crate) struct ShardedParameter {
    /// What the rank has, and the optimizer works on.
    pub(crate) shard: Tensor,
    /// What the module works on, while it has memory.
    pub(crate) whole: Tensor,
    /// Elements of the largest shard.
    padded: i64,
}

/// The models of a rank, with their modules that are sharded one by one.
pub(crate) struct Sharded {
    spans: Spans,
    ranks: i64,
    options: FullyShard,
    groups: Vec<Group>,
    /// What the modules of a model share, by model.
    models: BTreeMap<usize, Shared>,
    /// What calls that run have other tensors for.
    outside: RefCell<Vec<Outside>>,
    me: std::rc::Weak<Self>,
}

/// Values, by their place, that a call has other tensors for until it ends.
struct Outside {
    end: usize,
    values: Vec<(usize, Value)>,
}

/// `FSDPParamGroup`.
struct Group {
    parameters: Vec<ShardedParameter>,
    state: Cell<State>,
    is_whole: Cell<bool>,
    gathered: RefCell<Option<Tensor>>,
    /// Its places in the order of forward calls.
    places: RefCell<Vec<usize>>,
}

/// `TrainingState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Forward,
    PreBackward,
    PostBackward,
}

/// `FSDPCommContext`.
#[derive(Default)]
struct Shared {
    order: RefCell<Vec<usize>>,
    /// What was gathered for the last module of forward.
    gathered: RefCell<Option<Tensor>>,
    /// What was summed last.
    reduced: RefCell<Option<Tensor>>,
    awaits_end: Cell<bool>,
}

impl Sharded {
    /// Shards the parameters of models that are on the device, module by module. `parameters` are those of each module of
    /// `spans`.
    pub(crate) fn new(
        eager: &Eager,
        spans: Spans,
        ranks: u32,
        options: &FullyShard,
        parameters: Vec<Vec<Tensor>>,
    ) -> Rc<Self> {
        let ranks = i64::from(ranks.max(1));
        let models = (0..spans.modules.len())
            .filter(|&module| spans.is_model(module))
            .map(|module| (module, Shared::default()));
        let models = models.collect();
        let groups = parameters.into_iter().map(|parameters| {
            let made: Vec<ShardedParameter> = parameters
                .iter()
                .map(|parameter| ShardedParameter::of(eager, parameter, ranks, options.param_dtype))
                .collect();
            // The parameters die when all of the module are sharded.
            drop(parameters);
            Group {
                parameters: made,
                state: Cell::new(State::Idle),
                is_whole: Cell::new(false),
                gathered: RefCell::default(),
                places: RefCell::default(),
            }
        });
        let groups = groups.collect();
        Rc::new_cyclic(|me| Self {
            spans,
            ranks,
            options: options.clone(),
            groups,
            models,
            outside: RefCell::default(),
            me: me.clone(),
        })
    }

    /// The parameters of each module, in the order in which they were given.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &[ShardedParameter]> {
        self.groups.iter().map(|group| group.parameters.as_slice())
    }

    /// Before a node.
    pub(super) fn before(&self, eager: &Eager, at: usize, values: &mut [Option<Value>]) {
        for call in self.spans.calls.iter().filter(|call| call.nodes.start == at) {
            self.pre_forward(eager, call, values);
        }
    }

    /// After the node before `at`.
    pub(super) fn after(&self, eager: &Eager, at: usize, values: &mut [Option<Value>]) {
        for call in self.spans.calls.iter().rev().filter(|call| call.nodes.end == at) {
            self.post_forward(eager, call, values);
        }
    }

    fn shared(&self, module: usize) -> &Shared {
        &self.models[&self.spans.model_of(module)]
    }

    /// A name of PyTorch's with the module behind it (`FSDPParamGroup._with_fqn`).
    fn named(&self, name: &str, module: usize) -> String {
        match self.spans.name(module) {
            Some(path) => format!("FSDP::{name} ({path})"),
            None => format!("FSDP::{name}"),
        }
    }

    /// `FSDPState._pre_forward`.
    fn pre_forward(&self, eager: &Eager, call: &Span, values: &mut [Option<Value>]) {
        let group = &self.groups[call.module];
        if group.state.get() == State::PreBackward {
            return;
        }
        if self.spans.is_model(call.module) {
            eager.annotated("FSDP::root_pre_forward", || ());
        }
        if let Some(dtype) = self.options.param_dtype {
            cast_inputs(eager, call, values, dtype);
        }
        eager.annotated(self.named("pre_forward", call.module), || {
            group.state.set(State::Forward);
            self.unshard(eager, call.module);
            self.wait(eager, call.module);
            self.register_post_backward(eager, call, values);
        });
    }

    /// `FSDPState._post_forward`.
    fn post_forward(&self, eager: &Eager, call: &Span, values: &mut [Option<Value>]) {
        let group = &self.groups[call.module];
        if group.state.get() == State::PreBackward {
            return;
        }
        let is_model = self.spans.is_model(call.module);
        eager.annotated(self.named("post_forward", call.module), || {
            if !is_model && self.options.reshard_after_forward {
                self.reshard(call.module);
            }
            let mut order = self.shared(call.module).order.borrow_mut();
            group.places.borrow_mut().push(order.len());
            order.push(call.module);
            group.state.set(State::Idle);
        });
        for id in &call.outputs {
            if let Some(Some(Value::Tensor(tensor))) = values.get(id.0 as usize) {
                let (me, module) = (self.me.clone(), call.module);
                tensor.before_gradient(Rc::new(move |eager| {
                    if let Some(sharded) = me.upgrade() {
                        sharded.pre_backward(eager, module);
                    }
                }));
            }
        }
        if is_model {
            self.shared(call.module).gathered.take();
        }
        let mut outside = self.outside.borrow_mut();
        if let Some(at) = outside.iter().rposition(|of| of.end == call.nodes.end) {
            for (id, value) in outside.swap_remove(at).values {
                values[id] = Some(value);
            }
        }
    }

    /// `FSDPParamGroup.unshard`.
    fn unshard(&self, eager: &Eager, module: usize) {
        let group = &self.groups[module];
        let is_there = group.is_whole.get() || group.gathered.borrow().is_some();
        if is_there || group.parameters.is_empty() || self.ranks == 1 {
            return;
        }
        let gathered = eager.annotated(self.named("all_gather", module), || {
            let own: i64 = group.parameters.iter().map(|p| p.padded).sum();
            eager.on_stream(GATHERING, || {
                let dtype = group.parameters[0].whole.dtype();
                let is_cast = group.parameters.iter().any(|p| p.shard.dtype() != dtype);
                // Shards are cast into one flat tensor, which dies when it is copied.
                let flat = is_cast.then(|| eager.empty_called(&[own], dtype));
                let all = eager.empty_called(&[own.saturating_mul(self.ranks)], dtype);
                eager.call("fsdp::all_gather_copy_in", args![all], || ());
                eager.call("c10d::_allgather_base_", args![all], || ());
                drop(flat);
                all
            })
        });
        *group.gathered.borrow_mut() = Some(gathered);
    }

    /// `FSDPParamGroup.wait_for_unshard`.
    fn wait(&self, eager: &Eager, module: usize) {
        let group = &self.groups[module];
        let Some(gathered) = group.gathered.take() else { return };
        let is_forward = group.state.get() == State::Forward;
        let shared = self.shared(module);
        // The function has a name for it until its end.
        let before = if is_forward { shared.gathered.take() } else { None };
        eager.annotated(self.named("all_gather_copy_out", module), || {
            group.parameters.iter().for_each(|p| p.whole.allocate());
            eager.call("fsdp::split_with_sizes_copy", args![gathered], || ());
        });
        group.is_whole.set(true);
        if is_forward {
            // It is freed when the next module has its own.
            *shared.gathered.borrow_mut() = Some(gathered);
        }
        drop(before);
    }

    /// `FSDPParamGroup._to_sharded`.
    fn reshard(&self, module: usize) {
        let group = &self.groups[module];
        if self.ranks > 1 && group.is_whole.replace(false) {
            group.parameters.iter().for_each(|p| p.whole.release());
        }
    }

    /// `FSDPParamGroup._register_post_backward_hook`.
    fn register_post_backward(&self, eager: &Eager, call: &Span, values: &mut [Option<Value>]) {
        let mut arguments = Vec::new();
        for &(id, is_used_later) in &call.inputs {
            let at = id.0 as usize;
            if let Some(Some(Value::Tensor(tensor))) = values.get(at)
                && eager.records(&[tensor])
            {
                arguments.push((at, is_used_later, tensor.clone()));
            }
        }
        let mut kept = Vec::new();
        let results: Vec<Tensor> = arguments
            .iter()
            .map(|(_, _, tensor)| tensor.view(tensor.dims().to_vec(), tensor.strides().to_vec()))
            .collect();
        let given: Vec<&Tensor> = arguments.iter().map(|(.., tensor)| tensor).collect();
        let (me, module) = (self.me.clone(), call.module);
        let made: Vec<&Tensor> = results.iter().collect();
        eager.record(
            "RegisterPostBackwardFunctionBackward",
            &crate::eager::autograd::Recorded { arguments: &given, results: &made },
            |_| Vec::new(),
            move |eager, _, gradients| {
                if let Some(sharded) = me.upgrade() {
                    sharded.post_backward(eager, module);
                }
                gradients.to_vec()
            },
        );
        for ((at, is_used_later, tensor), result) in arguments.into_iter().zip(results) {
            if is_used_later {
                kept.push((at, Value::Tensor(tensor)));
            }
            values[at] = Some(Value::Tensor(result));
        }
        if !kept.is_empty() {
            self.outside.borrow_mut().push(Outside { end: call.nodes.end, values: kept });
        }
    }

    /// `FSDPState._pre_backward`.
    fn pre_backward(&self, eager: &Eager, module: usize) {
        let shared = self.shared(module);
        if !shared.awaits_end.replace(true) {
            let (me, model) = (self.me.clone(), self.spans.model_of(module));
            eager.after_backward(Rc::new(move |eager| {
                if let Some(sharded) = me.upgrade() {
                    sharded.end_of_backward(eager, model);
                }
            }));
        }
        let group = &self.groups[module];
        if group.state.get() == State::PreBackward {
            return;
        }
        eager.annotated(self.named("pre_backward", module), || {
            group.state.set(State::PreBackward);
            self.unshard(eager, module);
            self.wait(eager, module);
            // The module before this one in forward is the next one in backward.
            let place = group.places.borrow_mut().pop();
            let before = place.and_then(|place| place.checked_sub(1));
            let next = before.and_then(|place| shared.order.borrow().get(place).copied());
            if let Some(next) = next {
                eager.annotated(
                    format!("FSDP::backward_prefetch for {}", self.spans.name(next).unwrap_or("")),
                    || self.unshard(eager, next),
                );
            }
        });
    }

    /// `FSDPParamGroup.post_backward`.
    fn post_backward(&self, eager: &Eager, module: usize) {
        let group = &self.groups[module];
        group.state.set(State::PostBackward);
        eager.annotated(self.named("post_backward_accumulate", module), || ());
        let mut gradients = Vec::new();
        eager.annotated(self.named("post_backward_reshard", module), || {
            for parameter in &group.parameters {
                if let Some(gradient) = parameter.whole.grad() {
                    parameter.whole.set_grad(None);
                    gradients.push((parameter, gradient));
                }
            }
            self.reshard(module);
        });
        if gradients.is_empty() {
            return;
        }
        let last = gradients.last().map(|(_, gradient)| gradient.clone());
        let name = self.named("post_backward_reduce", module);
        eager.annotated(name, || self.reduce(eager, module, gradients));
        // `foreach_reduce` has a name for it.
        drop(last);
    }

    /// `foreach_reduce`.
    fn reduce(
        &self,
        eager: &Eager,
        module: usize,
        mut gradients: Vec<(&ShardedParameter, Tensor)>,
    ) {
        let shared = self.shared(module);
        shared.reduced.take();
        let of_gradients = gradients[0].1.dtype();
        let dtype = if self.options.param_dtype.is_some() { DType::F32 } else { of_gradients };
        let parameters: Vec<&ShardedParameter> = gradients.iter().map(|(p, _)| *p).collect();
        let own: i64 = parameters.iter().map(|p| p.padded).sum();
        let input = eager.empty_called(&[own.saturating_mul(self.ranks)], dtype);
        eager.call("fsdp::chunk_cat", args![input], || ());
        // `list.clear` begins at the end.
        while gradients.pop().is_some() {}
        eager.on_stream(REDUCING, || {
            let summed = eager.empty_called(&[own], dtype);
            eager.call("c10d::_reduce_scatter_base_", args![summed, input], || ());
            let kept = parameters[0].shard.dtype();
            let summed = if kept == dtype { summed } else { eager.to_dtype(&summed, kept) };
            for parameter in &parameters {
                let shard = &parameter.shard;
                let gradient =
                    summed.view(shard.dims().to_vec(), shard.strides().to_vec()).detached();
                match shard.grad() {
                    Some(present) => {
                        eager.call("aten::add_", args![present, gradient, 1_i64], || ());
                    }
                    None => shard.set_grad(Some(gradient)),
                }
            }
        });
        *shared.reduced.borrow_mut() = Some(input);
    }

    /// `FSDPState._root_post_backward_final_callback`.
    fn end_of_backward(&self, eager: &Eager, model: usize) {
        let shared = &self.models[&model];
        shared.awaits_end.set(false);
        eager.annotated("FSDP::root_post_backward_callback", || {
            for (module, group) in self.groups.iter().enumerate().rev() {
                if self.spans.model_of(module) != model {
                    continue;
                }
                // Those without an input that needs a gradient.
                if group.is_whole.get() {
                    self.post_backward(eager, module);
                }
                group.state.set(State::Idle);
                group.gathered.take();
                group.places.borrow_mut().clear();
            }
            shared.order.borrow_mut().clear();
            shared.reduced.take();
        });
    }
}

impl ShardedParameter {
    /// `FSDPParam._init_sharded_param`, of the first rank.
    fn of(eager: &Eager, parameter: &Tensor, ranks: i64, dtype: Option<DType>) -> Self {
        let mut dims = parameter.dims().to_vec();
        // A scalar cannot be divided; FSDP refuses it.
        if let Some(first) = dims.first_mut() {
            *first = first.saturating_add(ranks - 1) / ranks;
        }
        let shard = eager.without_gradients(|| eager.empty_called(&dims, parameter.dtype()));
        eager.mark("on_device", &shard);
        let padded = shard.elements();
        let dtype = dtype.unwrap_or(parameter.dtype());
        let whole = eager.within_storage(parameter.dims(), padded.saturating_mul(ranks), dtype);
        if ranks == 1 {
            whole.allocate();
        }
        if parameter.requires_grad() {
            shard.set_requires_grad();
            whole.set_requires_grad();
        }
        Self { shard, whole, padded }
    }
}

/// `MixedPrecisionPolicy(cast_forward_inputs=True)`.
fn cast_inputs(eager: &Eager, call: &Span, values: &mut [Option<Value>], dtype: DType) {
    for (id, _) in &call.inputs {
        if let Some(slot) = values.get_mut(id.0 as usize)
            && let Some(Value::Tensor(tensor)) = slot
            && tensor.dtype().is_floating_point()
            && tensor.dtype() != dtype
        {
            *slot = Some(Value::Tensor(eager.to_dtype(tensor, dtype)));
        }
    }
}
