//! The last recorded iteration of a job as a graph of layers, steps and blocks.

use super::kinds::{self, Saves, data_arguments, is_in_place, saves};
use super::operators::{Durations, Outermost, Part, accumulated, outermost};
use super::transformer;
use super::values::{Counts, Expected, Value, Values, Wanted};
use crate::block_size::rounded;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ops::Range;
use xmem_analyzer::{Argument, Profile, Role};
use xmem_offload::{
    Action, BlockRole, Graph, GraphError, GraphStep, Layer, LayerId, LayerKind, StepBlock, StepId,
    Work,
};
use xmem_orchestrator::{Origin, Schedule};
use xmem_timing::{TimeModel, starts_no_kernel};
use xmem_types::{BlockId, Bytes, IterationId, Nanos, OpId, RequestKind};

/// The training step that an offloading policy is simulated on.
#[derive(Clone, Debug)]
pub struct TrainingStep {
    /// The step.
    pub graph: Graph,
    /// The role of each of its blocks.
    pub roles: Vec<Role>,
    /// The recorded iteration that it is.
    pub iteration: IterationId,
    /// The number of recorded iterations; it is the last one.
    pub iterations: usize,
    /// How its tensors were found.
    pub matches: Matches,
    /// The operators of it whose duration was measured.
    pub measured: BTreeSet<String>,
}

/// How the tensors that layers read were found: a trace has no tensor ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Matches {
    /// Tensor arguments for which one block comes into question, by size, shape and gradients.
    pub certain: usize,
    /// Those for which the latest of several was taken.
    pub likely: usize,
    /// Those for which there is none: constants, parts of blocks, weights.
    pub missing: usize,
    /// Bytes that the forward pass leaves to the backward pass.
    pub kept: Bytes,
    /// Those of blocks whose first use in the backward pass is known.
    pub explained: Bytes,
}

/// The last iteration as a graph.
pub(super) fn training_step(
    profile: &Profile,
    schedule: &Schedule,
    model: &TimeModel,
) -> Result<Option<TrainingStep>, GraphError> {
    let Some(last) = profile.iterations.len().checked_sub(1) else { return Ok(None) };
    let iteration = &profile.iterations[last];
    let span = iteration.start..iteration.end;
    let operators = outermost(profile, &span);
    let requests = schedule.times.partition_point(|&at| at < span.start)
        ..schedule.times.partition_point(|&at| at < span.end);
    let mut draft = Draft::new(profile, schedule, &operators, requests);
    let durations = Durations::new(profile, model);
    draft.forward(&operators, &durations);
    draft.backward(&operators);
    let roles = draft.blocks.iter().map(|block| schedule.block(block.scheduled).role).collect();
    let (graph, matches) = draft.finish()?;
    let (iteration, iterations) = (IterationId::new(last), profile.iterations.len());
    let measured = durations.measured();
    Ok(Some(TrainingStep { graph, roles, iteration, iterations, matches, measured }))
}

struct Draft<'a> {
    profile: &'a Profile,
    schedule: &'a Schedule,
    requests: Range<usize>,
    layers: Vec<Layer>,
    /// The first step is before the iteration; the others are those of the operators.
    steps: Vec<GraphStep>,
    blocks: Vec<DraftBlock>,
    /// The blocks of the schedule that take part.
    ids: FxHashMap<BlockId, BlockId>,
    /// True if a layer is in a module that is known.
    has_modules: bool,
    /// The layer that a forward operator is.
    layer_of: FxHashMap<OpId, LayerId>,
    values: Values,
}

/// A node of the backward pass.
#[derive(Clone, Copy, Debug)]
struct Node {
    op: OpId,
    step: StepId,
}

struct DraftBlock {
    block: StepBlock,
    scheduled: BlockId,
    allocated: Nanos,
    freed: Option<(Nanos, StepId)>,
    /// The layers whose backward pass needs it.
    saved_for: Vec<LayerId>,
}

impl<'a> Draft<'a> {
    fn new(
        profile: &'a Profile,
        schedule: &'a Schedule,
        operators: &[Outermost],
        requests: Range<usize>,
    ) -> Self {
        let empty = || GraphStep { work: Work::Other, duration: Nanos::ZERO, actions: Vec::new() };
        let mut draft = Self {
            profile,
            schedule,
            requests: requests.clone(),
            layers: Vec::new(),
            steps: (0..=operators.len()).map(|_| empty()).collect(),
            blocks: Vec::new(),
            ids: FxHashMap::default(),
            has_modules: false,
            layer_of: FxHashMap::default(),
            values: Values::default(),
        };
        draft.resident(requests.start);
        for row in requests {
            let (request, time) = (schedule.requests[row], schedule.times[row]);
            // What happens between two operators happens at the end of the first.
            let step = operators.partition_point(|operator| operator.start <= time);
            match request.kind {
                RequestKind::Alloc { size, .. } => draft.allocate(request.block, size, time, step),
                RequestKind::Free => draft.free(request.block, time, step),
            }
        }
        draft
    }

    /// What was allocated before the iteration and is still there.
    fn resident(&mut self, before: usize) {
        let mut live: Vec<BlockId> = Vec::new();
        let mut sizes: FxHashMap<BlockId, Bytes> = FxHashMap::default();
        for request in &self.schedule.requests[..before] {
            match request.kind {
                RequestKind::Alloc { size, .. } => {
                    live.push(request.block);
                    sizes.insert(request.block, size);
                }
                RequestKind::Free => {
                    sizes.remove(&request.block);
                }
            }
        }
        for block in live {
            if let Some(&size) = sizes.get(&block) {
                self.allocate(block, size, Nanos::MIN, 0);
            }
        }
        for id in 0..self.blocks.len() {
            let block = &self.blocks[id].block;
            if block.role == BlockRole::Data {
                let value = Value {
                    block: BlockId::new(id),
                    size: block.size,
                    dims: None,
                    made_by: None,
                    expected: Expected::Unknown,
                    is_whole: true,
                };
                self.values.all.push(value);
            }
        }
    }

    fn allocate(&mut self, scheduled: BlockId, size: Bytes, time: Nanos, step: usize) {
        let id = BlockId::new(self.blocks.len());
        self.ids.insert(scheduled, id);
        let role = match self.schedule.block(scheduled).role {
            Role::Parameter | Role::Buffer => BlockRole::Persistent,
            Role::Gradient => BlockRole::Gradient,
            Role::OptimizerState => BlockRole::OptimizerState,
            _ => BlockRole::Data,
        };
        let block = StepBlock {
            size: rounded(size),
            role,
            writers: Vec::new(),
            readers: Vec::new(),
            backward: Vec::new(),
        };
        self.blocks.push(DraftBlock {
            block,
            scheduled,
            allocated: time,
            freed: None,
            saved_for: Vec::new(),
        });
        self.steps[step].actions.push(Action::Alloc(id));
    }

    fn free(&mut self, scheduled: BlockId, time: Nanos, step: usize) {
        let Some(&id) = self.ids.get(&scheduled) else { return };
        let block = &mut self.blocks[id.index()];
        if block.freed.is_some() {
            return;
        }
        block.freed = Some((time, StepId::new(step)));
        self.steps[step].actions.push(Action::Free(id));
        if self.is_workspace(scheduled, time) {
            self.blocks[id.index()].block.role = BlockRole::Workspace;
        }
    }

    /// True for memory that a convolution's operator takes and gives back.
    fn is_workspace(&self, scheduled: BlockId, freed: Nanos) -> bool {
        let op = match self.schedule.block(scheduled).origin {
            Origin::Recorded(block) => self.profile.block(block).op,
            Origin::Added { op, .. } => Some(op),
            _ => None,
        };
        op.is_some_and(|op| {
            self.profile.op_name(op).contains("conv") && freed <= self.profile.op_end(op)
        })
    }

    /// The forward pass: layers, and the tensors that they read and write.
    fn forward(&mut self, operators: &[Outermost], durations: &Durations<'_>) {
        let mut nodes: FxHashMap<OpId, Vec<Node>> = FxHashMap::default();
        for (row, operator) in operators.iter().enumerate() {
            if let Part::Backward(Some(forward)) = operator.part {
                let node = Node { op: operator.op, step: StepId::new(row + 1) };
                nodes.entry(forward).or_default().push(node);
            }
        }
        for (row, operator) in operators.iter().enumerate() {
            let step = StepId::new(row + 1);
            self.steps[step.index()].duration = durations.of(operator.op);
            match operator.part {
                Part::Forward => {
                    let none = Vec::new();
                    let nodes = nodes.get(&operator.op).unwrap_or(&none);
                    self.operator(operator, step, nodes);
                }
                Part::Optimizer => self.steps[step.index()].work = Work::Optimizer,
                Part::Backward(_) | Part::Other => {}
            }
        }
    }

    fn operator(&mut self, operator: &Outermost, step: StepId, nodes: &[Node]) {
        let blocks = &self.blocks;
        self.values.retain(|block| {
            blocks[block.index()].freed.is_none_or(|(time, _)| time > operator.start)
        });
        let name = self.profile.op_name(operator.op);
        let made = self.made_by(operator, step);
        let guess = kinds::kind(name, 2);
        let wanted = self.wanted(operator.op, data_arguments(guess, name));
        let mut read: Vec<usize> = Vec::new();
        for wanted in &wanted {
            let blocks = &self.blocks;
            let is_saved = |block: BlockId| {
                let freed = blocks[block.index()].freed;
                freed.is_some_and(|(_, step)| nodes.iter().any(|node| node.step == step))
            };
            read.extend(self.values.find(wanted, &read, is_saved));
        }
        let changes = is_in_place(name) && !read.is_empty();
        if changes {
            self.order_changed(&mut read);
        }
        if read.is_empty() && made.is_empty() || starts_no_kernel(name) && made.is_empty() {
            self.view(name, &read);
            return;
        }
        let kind = kinds::kind(name, read.len());
        let layer = LayerId::new(self.layers.len());
        let mut inputs: Vec<LayerId> =
            read.iter().filter_map(|&row| self.values.all[row].made_by).collect();
        inputs.sort_unstable();
        inputs.dedup();
        let module = self.module(&made);
        self.has_modules |= !module.is_empty();
        let layer_kind = kinds::within(module, name, kind);
        let name_of_layer = match module {
            "" => kinds::bare(name).to_owned(),
            module => format!("{module}: {}", kinds::bare(name)),
        };
        self.layers.push(Layer { name: name_of_layer, kind: layer_kind, inputs });
        self.layer_of.insert(operator.op, layer);
        self.steps[step.index()].work = Work::Forward(layer);

        let mut added: Vec<Vec<u64>> =
            nodes.iter().flat_map(|node| accumulated(self.profile, node.op)).collect();
        let saves = saves(name, kind);
        for &row in &read {
            let value = &mut self.values.all[row];
            let shape = value.dims.clone();
            let again = added.iter().position(|dims| Some(dims) == shape.as_ref());
            value.expected = match again {
                Some(at) => {
                    added.remove(at);
                    Expected::Yes
                }
                // Without a backward pass nothing is known.
                None if nodes.is_empty() => Expected::Unknown,
                None => Expected::No,
            };
            let block = &mut self.blocks[value.block.index()];
            block.block.readers.push(step);
            if saves == Saves::Inputs && !changes {
                block.saved_for.push(layer);
            }
        }
        self.results(layer, step, kind, &read, &made, changes, saves);
    }

    /// Puts the tensor first that an operator changes: of those of the same size, one that nobody has read (autograd
    /// forbids to change what is saved), and of several the one that is kept.
    fn order_changed(&self, read: &mut [usize]) {
        let value = |row: usize| &self.values.all[row];
        let freed = |row: usize| {
            let block = &self.blocks[value(row).block.index()];
            let is_unread = block.block.readers.last() <= block.block.writers.last();
            (is_unread, block.freed.map_or(Nanos::MAX, |(time, _)| time))
        };
        let size = value(read[0]).size;
        let same = (0..read.len()).filter(|&at| value(read[at]).size == size);
        // The first of equal ones.
        let kept = same.rev().max_by_key(|&at| freed(read[at])).unwrap_or(0);
        read.swap(0, kept);
    }

    #[expect(clippy::too_many_arguments, reason = "the facts of one operator")]
    fn results(
        &mut self,
        layer: LayerId,
        step: StepId,
        kind: LayerKind,
        read: &[usize],
        made: &[BlockId],
        changes: bool,
        saves: Saves,
    ) {
        let first = read.first().map(|&row| self.values.all[row].clone());
        if let Some(changed) = first.clone().filter(|_| changes) {
            let block = &mut self.blocks[changed.block.index()];
            block.block.writers.push(step);
            // It writes what it has read.
            block.block.readers.pop();
            if saves != Saves::Neither {
                block.saved_for.push(layer);
            }
            self.values.all.retain(|value| value.block != changed.block);
            let value = Value { made_by: Some(layer), expected: Expected::Yes, ..changed };
            self.values.all.push(value);
        }
        let keeps_shape =
            matches!(kind, LayerKind::Act | LayerKind::Norm | LayerKind::Dropout | LayerKind::Join);
        // A dropout makes its mask first.
        let same_size = |block: &BlockId| {
            let size = self.blocks[block.index()].block.size;
            keeps_shape && first.as_ref().is_some_and(|first| first.size == size)
        };
        let result = made.iter().position(same_size).unwrap_or(0);
        for (position, &block) in made.iter().enumerate() {
            let is_result = position == result && !changes;
            let draft = &mut self.blocks[block.index()];
            draft.block.writers.push(step);
            // Beside its result, an operator makes what its own backward pass needs: indices, masks, statistics.
            if !is_result || saves == Saves::Result {
                draft.saved_for.push(layer);
            }
            let size = draft.block.size;
            let shape = first.as_ref().filter(|first| keeps_shape && first.size == size);
            self.values.all.push(Value {
                block,
                size,
                dims: shape.and_then(|first| first.dims.clone()),
                made_by: Some(layer),
                expected: if is_result { Expected::Yes } else { Expected::No },
                is_whole: true,
            });
        }
    }

    /// A view stands for its tensor from then on.
    fn view(&mut self, name: &str, read: &[usize]) {
        let Some(&row) = read.first() else { return };
        let is_part = ["chunk", "expand", "narrow", "select", "slice", "split", "unbind"]
            .iter()
            .any(|part| kinds::bare(name).starts_with(part));
        let value = self.values.all[row].clone();
        let view = Value {
            dims: None,
            expected: if is_part { Expected::Unknown } else { Expected::Yes },
            is_whole: value.is_whole && !is_part,
            ..value
        };
        self.values.all[row].expected = Expected::Unknown;
        self.values.all.push(view);
    }

    /// The blocks that an operator makes and leaves behind, in order.
    fn made_by(&self, operator: &Outermost, step: StepId) -> Vec<BlockId> {
        let actions = self.steps[step.index()].actions.iter();
        let made = actions.filter_map(|action| match action {
            Action::Alloc(block) => Some(*block),
            Action::Free(_) => None,
        });
        made.filter(|block| {
            let block = &self.blocks[block.index()];
            let lasts = block.freed.is_none_or(|(time, _)| time > operator.end);
            // What is allocated after it, before the next operator, is not its own.
            let is_inside = block.allocated <= operator.end;
            lasts && is_inside && block.block.role == BlockRole::Data
        })
        .collect()
    }

    fn wanted(&self, op: OpId, most: usize) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for argument in &self.profile.arguments(op).list {
            match argument {
                Argument::Tensor(tensor) if !tensor.dims.is_empty() => wanted
                    .push(Wanted { dims: tensor.dims.clone(), sizes: vec![Bytes(tensor.bytes())] }),
                Argument::TensorList(list) => {
                    wanted.extend(list.iter().filter(|dims| !dims.is_empty()).map(|dims| {
                        let elements = dims.iter().fold(1u64, |n, &d| n.saturating_mul(d));
                        let size = |bytes| Bytes(elements.saturating_mul(bytes));
                        Wanted { dims: dims.clone(), sizes: vec![size(4), size(2)] }
                    }));
                }
                _ => {}
            }
        }
        wanted.truncate(most);
        wanted
    }

    /// The path of the module that makes blocks; empty if it is not known.
    fn module(&self, made: &[BlockId]) -> &'a str {
        let made = made.first().map(|block| self.blocks[block.index()].scheduled);
        let module = made.map(|id| self.schedule.place(self.profile, id).module);
        module.map_or("", |module| self.profile.text(module))
    }

    /// The backward pass: the steps of each layer, and the blocks that they need.
    fn backward(&mut self, operators: &[Outermost]) {
        let mut steps_of: Vec<Vec<StepId>> = vec![Vec::new(); self.layers.len()];
        for (row, operator) in operators.iter().enumerate() {
            if let Part::Backward(Some(forward)) = operator.part
                && let Some(&layer) = self.layer_of.get(&forward)
            {
                let step = StepId::new(row + 1);
                self.steps[step.index()].work = Work::Backward(layer);
                steps_of[layer.index()].push(step);
            }
        }
        for block in &mut self.blocks {
            let last = block.freed.map_or(StepId::new(self.steps.len() - 1), |(_, step)| step);
            let mut uses: Vec<StepId> = block
                .saved_for
                .iter()
                .flat_map(|layer| steps_of[layer.index()].iter().copied())
                .filter(|&step| step <= last)
                .collect();
            // Autograd drops what a node has saved when the node is done.
            let freed_by = block.freed.map(|(_, step)| step);
            let is_node = freed_by
                .is_some_and(|step| matches!(self.steps[step.index()].work, Work::Backward(_)));
            let layer = freed_by.and_then(|step| self.steps[step.index()].work.layer());
            let of = block.block.readers.iter().chain(&block.block.writers);
            let is_own = of.map(|step| self.steps[step.index()].work.layer()).any(|l| l == layer);
            if is_node && (!uses.is_empty() || is_own) {
                uses.extend(freed_by);
            }
            uses.sort_unstable();
            uses.dedup();
            let block = &mut block.block;
            block.backward = uses;
            for uses in [&mut block.writers, &mut block.readers] {
                uses.retain(|&step| step <= last);
                uses.dedup();
            }
        }
    }

    fn finish(self) -> Result<(Graph, Matches), GraphError> {
        let first = self.steps.iter().position(|step| matches!(step.work, Work::Backward(_)));
        let (mut kept, mut explained) = (Bytes::ZERO, Bytes::ZERO);
        if let Some(first) = first.map(StepId::new) {
            let kept_ones = self.blocks.iter().filter(|block| {
                let written = block.block.writers.first().is_some_and(|&step| step < first);
                let lasts = block.freed.is_some_and(|(_, step)| step >= first);
                written && lasts && block.block.role == BlockRole::Data
            });
            for block in kept_ones {
                kept += block.block.size;
                if !block.block.backward.is_empty() {
                    explained += block.block.size;
                }
            }
        }
        debug_assert!(self.requests.start <= self.requests.end, "a range of requests");
        let Counts { certain, likely, missing } = self.values.counts;
        let matches = Matches { certain, likely, missing, kept, explained };
        let blocks = self.blocks.into_iter().map(|draft| draft.block).collect();
        let mut layers = self.layers;
        if !self.has_modules {
            transformer::name_kinds(&mut layers);
        }
        Ok((Graph::new(layers, self.steps, blocks)?, matches))
    }
}
