//! The tensors of a model on the device, and what wraps them on several GPUs.

use super::Workload;
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::args;
use crate::eager::tensor::Tensor;
use crate::error::GraphError;
use crate::graph::{Graph, InputRole};
use crate::interpreter::{Around, Settings};
use crate::ranks::{FullyShard, Reducer, Sharded, ShardedParameter, Sharing, Spans, Wrapping};
use std::collections::{BTreeMap, BTreeSet};

/// What says how large inputs are.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a> {
    pub(super) graph: &'a Graph,
    pub(super) workload: &'a Workload,
    pub(super) settings: &'a Settings,
}

/// Parameters, buffers and constants.
pub(super) struct Model {
    /// By their place among the inputs.
    tensors: BTreeMap<usize, Tensor>,
    /// Shards of parameters that are divided, by that place.
    shards: BTreeMap<usize, Tensor>,
    /// Tensors of other models on the device, which live as long.
    _beside: Vec<Tensor>,
    wrapping: Option<Wrapping>,
}

impl Inputs<'_> {
    /// Sizes and type of an input.
    pub(super) fn shape(&self, at: usize) -> Result<(Vec<i64>, DType), GraphError> {
        let info = &self.graph.body.values[self.graph.inputs[at].value.0 as usize];
        let unknown = || GraphError::Size {
            value: info.name.clone(),
            reason: "the graph does not say it".to_owned(),
        };
        let tensor = info.tensor.as_ref().ok_or_else(unknown)?;
        let dims: Option<Vec<i64>> = tensor.dims.iter().map(|d| self.settings.value(d)).collect();
        let dtype = match self.workload.dtype {
            Some(dtype) if tensor.dtype.is_floating_point() => dtype,
            _ => tensor.dtype,
        };
        Ok((dims.ok_or_else(unknown)?, dtype))
    }
}

impl Model {
    /// Moves the models to the device, and wraps them for the job's ranks.
    pub(super) fn build(eager: &Eager, inputs: &Inputs<'_>) -> Result<Self, GraphError> {
        let tensors = placed(eager, inputs)?;
        let mut model = Self {
            tensors,
            shards: BTreeMap::new(),
            _beside: beside(eager, inputs.workload),
            wrapping: None,
        };
        if let Some(ranks) = &inputs.workload.ranks {
            match &ranks.sharing {
                Sharing::Replicated { gradient_as_bucket_view } => {
                    model.replicate(eager, inputs.graph, *gradient_as_bucket_view);
                }
                Sharing::Sharded(options) => {
                    model.shard(eager, inputs.graph, ranks.count, options)?;
                }
            }
        }
        Ok(model)
    }

    /// What the graph is given for an input of the model.
    pub(super) fn tensor(&self, at: usize) -> Option<&Tensor> {
        self.tensors.get(&at)
    }

    /// What the rank has of it: the shard, if it is divided.
    pub(super) fn own(&self, at: usize) -> Option<&Tensor> {
        self.shards.get(&at).or_else(|| self.tensor(at))
    }

    /// The parameters that are divided, module by module.
    pub(super) fn sharded(&self) -> Vec<&[ShardedParameter]> {
        match &self.wrapping {
            Some(Wrapping::Sharded(sharded)) => sharded.parameters().collect(),
            _ => Vec::new(),
        }
    }

    /// What is done around the modules of the graph.
    pub(super) fn around(&self) -> Option<&dyn Around> {
        self.wrapping.as_ref().map(|wrapping| wrapping as &dyn Around)
    }

    /// Wraps the models in `DistributedDataParallel`.
    fn replicate(&mut self, eager: &Eager, graph: &Graph, gradient_as_bucket_view: bool) {
        let of = |is_wanted: fn(&InputRole) -> bool| -> Vec<Tensor> {
            let inputs = graph.inputs.iter().enumerate();
            let own = inputs.filter(|(_, input)| input.same_as.is_none() && is_wanted(&input.role));
            own.filter_map(|(at, _)| self.tensors.get(&at).cloned()).collect()
        };
        let parameters = of(|role| matches!(role, InputRole::Parameter(_)));
        let buffers = of(|role| matches!(role, InputRole::Buffer(_)));
        let spans = Spans::of(graph, &[]);
        let reducer = Reducer::new(eager, spans, (&parameters, buffers), gradient_as_bucket_view);
        self.wrapping = Some(Wrapping::Replicated(reducer));
    }

    /// Calls `fully_shard` for modules and models.
    fn shard(
        &mut self,
        eager: &Eager,
        graph: &Graph,
        ranks: u32,
        options: &FullyShard,
    ) -> Result<(), GraphError> {
        let spans = Spans::of(graph, &options.modules);
        for pattern in &options.modules {
            if !spans.modules.iter().any(|path| crate::interpreter::matches(pattern, path)) {
                return Err(GraphError::NoModule { pattern: pattern.clone() });
            }
        }
        let mut places: Vec<Vec<usize>> = vec![Vec::new(); spans.modules.len()];
        let mut taken: Vec<Vec<Tensor>> = vec![Vec::new(); spans.modules.len()];
        for (at, input) in graph.inputs.iter().enumerate() {
            if let InputRole::Parameter(path) = &input.role
                && input.same_as.is_none()
                && let Some(tensor) = self.tensors.remove(&at)
            {
                let owner = spans.owner(path);
                places[owner].push(at);
                taken[owner].push(tensor);
            }
        }
        // Other names of tied weights are of the tensors that are divided now.
        self.tensors.retain(|&at, _| {
            let input = &graph.inputs[at];
            input.same_as.is_none() || !matches!(input.role, InputRole::Parameter(_))
        });
        let sharded = Sharded::new(eager, spans, ranks, options, taken);
        for (places, parameters) in places.iter().zip(sharded.parameters()) {
            for (&at, ShardedParameter { shard, whole, .. }) in places.iter().zip(parameters) {
                self.tensors.insert(at, whole.clone());
                self.shards.insert(at, shard.clone());
            }
        }
        for (at, input) in graph.inputs.iter().enumerate() {
            if let Some(first) = input.same_as
                && let (Some(whole), Some(shard)) =
                    (self.tensors.get(&first), self.shards.get(&first))
            {
                let (whole, shard) = (whole.clone(), shard.clone());
                self.tensors.insert(at, whole);
                self.shards.insert(at, shard);
            }
        }
        self.wrapping = Some(Wrapping::Sharded(sharded));
        Ok(())
    }

    /// The parameters of an optimizer's groups, by name; all that need gradients if no group has any.
    pub(super) fn groups(&self, graph: &Graph, names: &[Vec<String>]) -> Vec<Vec<Tensor>> {
        let mut by_name = BTreeMap::new();
        let mut all = Vec::new();
        for (at, input) in graph.inputs.iter().enumerate() {
            if let (InputRole::Parameter(name), Some(tensor)) = (&input.role, self.own(at))
                && tensor.requires_grad()
            {
                by_name.insert(name.as_str(), tensor.clone());
                if !all.iter().any(|known: &Tensor| known.identity() == tensor.identity()) {
                    all.push(tensor.clone());
                }
            }
        }
        let listed: Vec<Vec<Tensor>> = names
            .iter()
            .map(|group| {
                group.iter().filter_map(|name| by_name.get(name.as_str()).cloned()).collect()
            })
            .collect();
        if listed.iter().all(Vec::is_empty) { vec![all] } else { listed }
    }
}

/// Parameters and buffers, module by module as `Module._apply` moves them: a module's children first.
fn placed(eager: &Eager, inputs: &Inputs<'_>) -> Result<BTreeMap<usize, Tensor>, GraphError> {
    let frozen = inputs.workload.training.as_ref().map(|t| &t.frozen);
    let order = placement_order(inputs.graph);
    let mut model: BTreeMap<usize, Tensor> = BTreeMap::new();
    for &at in &order {
        let (dims, dtype) = inputs.shape(at)?;
        let tensor = eager.without_gradients(|| eager.empty_called(&dims, dtype));
        if let InputRole::Parameter(name) = &inputs.graph.inputs[at].role {
            eager.call("aten::detach", args![tensor], || ());
            let asked = inputs.graph.body.values[inputs.graph.inputs[at].value.0 as usize]
                .tensor
                .as_ref()
                .is_some_and(|t| t.requires_grad);
            if asked && frozen.is_some_and(|frozen| !frozen.contains(name)) {
                tensor.set_requires_grad();
            }
        }
        model.insert(at, tensor);
    }
    for (name, input) in inputs.graph.inputs.iter().enumerate() {
        if let Some(tensor) = input.same_as.and_then(|at| model.get(&at)).cloned() {
            model.insert(name, tensor);
        }
    }
    for at in order {
        eager.mark("to_device", &model[&at]);
    }
    Ok(model)
}

fn beside(eager: &Eager, workload: &Workload) -> Vec<Tensor> {
    let made: Vec<Tensor> = eager.without_gradients(|| {
        let sizes = workload.beside.iter();
        sizes.map(|(dims, dtype)| eager.empty_called(dims, *dtype)).collect()
    });
    for tensor in &made {
        eager.mark("to_device", tensor);
    }
    made
}

/// Places of parameters, buffers and constants among the inputs, in the order in which `model.to(device)` moves
/// them (torch/nn/modules/module.py, `_apply`): children in the order of their first tensor, then a module's own
/// parameters, then its buffers.
fn placement_order(graph: &Graph) -> Vec<usize> {
    #[derive(Default)]
    struct Module<'a> {
        children: Vec<(&'a str, Module<'a>)>,
        parameters: Vec<usize>,
        buffers: Vec<usize>,
    }
    impl<'a> Module<'a> {
        fn child(&mut self, name: &'a str) -> &mut Self {
            let at =
                self.children.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                    self.children.push((name, Module::default()));
                    self.children.len() - 1
                });
            &mut self.children[at].1
        }

        fn order(&self, out: &mut Vec<usize>) {
            for (_, child) in &self.children {
                child.order(out);
            }
            out.extend(&self.parameters);
            out.extend(&self.buffers);
        }
    }
    let mut root = Module::default();
    let mut constants = Vec::new();
    // A tied weight has the place of the first of its names.
    let mut placed = BTreeSet::new();
    for (name, input) in graph.inputs.iter().enumerate() {
        let at = input.same_as.unwrap_or(name);
        if !placed.insert(at) {
            continue;
        }
        let (path, is_parameter) = match &input.role {
            InputRole::Parameter(path) => (path, true),
            InputRole::Buffer(path) => (path, false),
            InputRole::Constant(_) => {
                constants.push(at);
                continue;
            }
            InputRole::Batch => continue,
        };
        let mut module = &mut root;
        if let Some((modules, _)) = path.rsplit_once('.') {
            for name in modules.split('.') {
                module = module.child(name);
            }
        }
        if is_parameter { module.parameters.push(at) } else { module.buffers.push(at) }
    }
    let mut order = Vec::new();
    root.order(&mut order);
    order.extend(constants);
    order
}
