//! A training job around a graph: the loop that a script runs.

mod model;
mod notes;

use crate::aten::{Axes, Reduction};
use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::arguments::{Absent, args};
use crate::eager::journal::Journal;
use crate::eager::tensor::Tensor;
use crate::error::GraphError;
use crate::events::{self, Happened};
use crate::graph::{Graph, InputRole, ValueId};
use crate::interpreter::{Course, Deaths, Findings, Interpreter, Settings, Value};
use crate::optimizer::{Optimizer, Running};
use crate::ranks::{Ranks, Sharing};
use model::{Inputs, Model};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// What is done with a graph.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Workload {
    /// Forward, backward and optimizer; without one, forward without gradients.
    pub training: Option<Training>,
    /// Autocast around the forward.
    pub autocast: Option<DType>,
    /// The type that parameters and floating-point inputs are converted to (`model.to(dtype)`).
    pub dtype: Option<DType>,
    /// Iterations that are run.
    pub iterations: u32,
    /// Size of the batch, where the graph leaves it open.
    pub batch: Option<i64>,
    /// Length of sequences, where the graph leaves it open.
    pub length: Option<i64>,
    /// Tensors of models on the device that the graph does not call, such as a moving average of the weights: their sizes and
    /// types.
    pub beside: Vec<(Vec<i64>, DType)>,
    /// Functions with a backward of their own (`torch.autograd.Function`), of which a graph has the operators of forward alone.
    pub autograd_functions: Vec<String>,
    /// Modules whose saved tensors are computed again in backward (`torch.utils.checkpoint`), by the end of their
    /// path; `*` stands for one name.
    pub checkpoints: Vec<String>,
    /// The ranks of a job on several GPUs.
    pub ranks: Option<Ranks>,
}

/// The part of training.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Training {
    /// The optimizers, each with its parameters by group; none for all that need gradients.
    pub optimizers: Vec<(Optimizer, Vec<Vec<String>>)>,
    /// Parameters that need no gradient.
    pub frozen: BTreeSet<String>,
    /// What one iteration does, in order.
    pub order: Vec<Event>,
    /// Cleared gradients are freed (`set_to_none=True`).
    pub set_to_none: bool,
    /// For each backward pass, the number of results of the graph that it begins with, in their order.
    pub losses: Vec<usize>,
    /// The loss of the first result, where the graph does not end in one.
    pub loss: Option<Loss>,
    /// What the loop has names for while the next iteration begins.
    pub keeps: Keeps,
}

/// What names of the loop keep alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Keeps {
    /// Results of the model that the loss is computed of, until backward is over.
    pub results: bool,
    /// Loss and results until the next iteration has its own, as names of a loop in a module do.
    pub into_next: bool,
    /// Results of the model that the loss is computed of, until the next pass has its own.
    pub results_into_next: bool,
}

/// Something that an iteration does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// `zero_grad()` of an optimizer, or of all.
    ZeroGrad(Option<usize>),
    /// Forward, as far as the next loss needs.
    Forward,
    /// Backward of a loss, after the forward that it needs, if that has not been.
    Backward(usize),
    /// `clip_grad_norm_`.
    ClipGradients,
    /// `step()` of an optimizer.
    Step(usize),
}

/// A loss that is computed of the model's first result and a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// `F.cross_entropy` with classes as targets; classes are the last dimension of sequences, else the second.
    CrossEntropy,
    /// `F.mse_loss`.
    Mse,
    /// `F.binary_cross_entropy_with_logits`.
    BinaryCrossEntropy,
    /// The sum of all results.
    Sum,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            training: None,
            autocast: None,
            dtype: None,
            iterations: 3,
            batch: None,
            length: None,
            beside: Vec::new(),
            autograd_functions: Vec::new(),
            checkpoints: Vec::new(),
            ranks: None,
        }
    }
}

impl Workload {
    /// The type of 16 bits that the job gives the model's tensors.
    fn narrow_type(&self) -> Option<DType> {
        let of_ranks = self.ranks.as_ref().and_then(|ranks| match &ranks.sharing {
            Sharing::Sharded(options) => options.param_dtype,
            Sharing::Replicated { .. } => None,
        });
        of_ranks.or(self.dtype).filter(|dtype| dtype.size() == 2)
    }
}

impl Training {
    /// Training with an optimizer, as PyTorch's tutorials write it.
    #[must_use]
    pub fn new(optimizer: Optimizer) -> Self {
        Self {
            optimizers: vec![(optimizer, Vec::new())],
            frozen: BTreeSet::new(),
            order: vec![Event::ZeroGrad(None), Event::Forward, Event::Backward(0), Event::Step(0)],
            set_to_none: true,
            losses: vec![1],
            loss: None,
            // Without a loop around it, the outermost module of a graph is the model: what it has names for dies in it.
            keeps: Keeps { results: false, into_next: true, results_into_next: false },
        }
    }

    /// The number of results that a backward pass begins with.
    fn results_of(&self, loss: usize) -> usize {
        self.losses.get(loss).copied().unwrap_or(1).max(1)
    }

    /// Sets the number of equal passes in an iteration.
    pub fn accumulate(&mut self, passes: u32) {
        let is_pass = |event: &Event| matches!(event, Event::Forward | Event::Backward(_));
        let Some(first) = self.order.iter().position(is_pass) else { return };
        let pass: Vec<Event> = self.order.iter().copied().filter(is_pass).collect();
        self.order.retain(|event| !is_pass(event));
        let passes: Vec<Event> =
            std::iter::repeat_n(pass, passes.max(1) as usize).flatten().collect();
        self.order.splice(first..first, passes);
    }
}

/// What a graph does, as PyTorch's profiler records what a CPU did.
#[derive(Debug)]
#[non_exhaustive]
pub struct ActedRun {
    journal: Journal,
    notes: String,
    /// Operators that have no definition: counted by the sizes of their results.
    pub unknown_operators: Vec<String>,
    /// Operators whose results have other sizes than the graph says.
    pub different_sizes: Vec<String>,
}

impl ActedRun {
    /// The members of the recording beside its events, each with the JSON text of its value.
    #[must_use]
    pub fn members(&self) -> [(&'static str, &str); 5] {
        [
            ("schemaVersion", "1"),
            ("with_stack", "0"),
            ("profile_memory", "1"),
            ("record_shapes", "1"),
            ("xmem_recording", &self.notes),
        ]
    }

    /// The events, in order of their start.
    pub fn events(&self) -> impl ExactSizeIterator<Item = Happened<'_>> {
        self.journal.events()
    }

    /// The recording as PyTorch's profiler writes it (Kineto's JSON).
    #[must_use]
    pub fn trace_text(&self) -> String {
        events::json(&self.members(), self.events(), self.journal.now())
    }
}

/// Runs a graph without values.
///
/// # Errors
/// If a size is not known, a tensor too large for any machine, or there is no loss to train with.
pub fn act(graph: &Graph, workload: &Workload) -> Result<ActedRun, GraphError> {
    let settings = Settings {
        symbols: Rc::new(RefCell::new(symbols(graph, workload)?)),
        checkpoints: workload.checkpoints.clone(),
        narrow: workload.narrow_type(),
    };
    let eager = Eager::new();
    let mut findings = Findings::default();
    let mut job = Job::new(&eager, graph, workload, &settings)?;
    job.run(&mut findings)?;
    let notes = notes::of(&job, &findings);
    drop(job);
    if eager.is_too_large() {
        return Err(GraphError::Huge);
    }
    Ok(ActedRun {
        journal: eager.into_journal(),
        notes,
        unknown_operators: findings.unknown.into_iter().collect(),
        different_sizes: findings.different.into_iter().collect(),
    })
}

fn symbols(graph: &Graph, workload: &Workload) -> Result<BTreeMap<String, i64>, GraphError> {
    let mut symbols = graph.symbols.clone();
    let mut set = |name: Option<&str>, value: Option<i64>, what: &'static str| {
        let Some(value) = value else { return Ok(()) };
        let name = name.ok_or(GraphError::Fixed { what })?;
        symbols.insert(name.to_owned(), value);
        Ok(())
    };
    set(graph.batch_symbol(), workload.batch, "the batch size")?;
    set(graph.length_symbol(), workload.length, "the length of sequences")?;
    Ok(symbols)
}

struct Job<'a> {
    eager: &'a Eager,
    graph: &'a Graph,
    workload: &'a Workload,
    settings: &'a Settings,
    /// Last uses of the graph's values.
    deaths: Arc<Deaths>,
    model: Model,
    optimizers: Vec<Running<'a>>,
}

impl<'a> Job<'a> {
    fn new(
        eager: &'a Eager,
        graph: &'a Graph,
        workload: &'a Workload,
        settings: &'a Settings,
    ) -> Result<Self, GraphError> {
        let keeps_results = workload.training.as_ref().is_some_and(|t| t.keeps.results);
        let inputs = Inputs { graph, workload, settings };
        let model = Model::build(eager, &inputs)?;
        let training = workload.training.iter().flat_map(|training| &training.optimizers);
        let optimizers = training
            .map(|(optimizer, names)| Running::new(eager, optimizer, model.groups(graph, names)));
        Ok(Self {
            eager,
            graph,
            workload,
            settings,
            deaths: Arc::new(Deaths::of(&graph.body, keeps_results)),
            optimizers: optimizers.collect(),
            model,
        })
    }

    fn inputs(&self) -> Inputs<'a> {
        Inputs { graph: self.graph, workload: self.workload, settings: self.settings }
    }

    fn run(&mut self, findings: &mut Findings) -> Result<(), GraphError> {
        let mut kept = Kept::default();
        let eager = self.eager;
        for iteration in 0..self.workload.iterations {
            let result = eager.annotated(format!("ProfilerStep#{iteration}"), || {
                match &self.workload.training {
                    Some(training) => self.train(training, &mut kept, findings),
                    None => eager.without_gradients(|| self.infer(&mut kept, findings)),
                }
            });
            result?;
        }
        // The recording ends in the loop, where its names are still bound.
        eager.close();
        Ok(())
    }

    /// The batch of an iteration: made on the host, moved to the device.
    fn batch(&self) -> Result<Vec<Value>, GraphError> {
        let mut batch = Vec::new();
        for (at, input) in self.graph.inputs.iter().enumerate() {
            if input.role != InputRole::Batch {
                continue;
            }
            if self.graph.body.values[input.value.0 as usize].tensor.is_none() {
                batch.push(Value::None);
                continue;
            }
            let (dims, dtype) = self.inputs().shape(at)?;
            let tensor = self.eager.empty_called(&dims, dtype);
            let arguments =
                args![tensor, dtype.number(), 0_i64, Absent, Absent, false, false, Absent];
            self.eager.call("aten::to", arguments, || ());
            self.eager.mark("to_device", &tensor);
            batch.push(Value::Tensor(tensor));
        }
        Ok(batch)
    }

    /// The graph with a batch, before its first operator.
    fn begun(&self, batch: &[Value]) -> Course {
        let mut batch = batch.iter();
        let inputs = (0..self.graph.inputs.len()).map(|at| match self.model.tensor(at) {
            Some(tensor) => Value::Tensor(tensor.clone()),
            None => batch.next().cloned().unwrap_or(Value::None),
        });
        Course::of(self.graph, &self.deaths, inputs.collect())
    }

    /// Runs on, as far as these results need.
    fn forward(
        &self,
        course: &mut Course,
        outputs: Range<usize>,
        findings: &mut Findings,
    ) -> Result<Vec<Value>, GraphError> {
        let mut interpreter =
            Interpreter::new(self.eager, self.settings, findings).around(self.model.around());
        match self.workload.autocast.filter(|_| !self.graph.body.has_autocast()) {
            Some(dtype) => {
                self.eager.autocast(Some(dtype), || interpreter.advance(course, outputs))
            }
            None => interpreter.advance(course, outputs),
        }
    }

    /// The loss of the first result, with a target that is made for it.
    fn loss(&self, loss: Loss, outputs: &[Value]) -> Result<Tensor, GraphError> {
        let result = outputs.iter().find_map(|value| match value {
            Value::Tensor(tensor) if tensor.requires_grad() => Some(tensor),
            _ => None,
        });
        let result = result.ok_or(GraphError::NoLoss)?;
        let e = self.eager;
        let compute = || {
            let target = |dims: &[i64], dtype: DType| {
                let target = e.empty_called(dims, dtype);
                e.mark("to_device", &target);
                target
            };
            match loss {
                Loss::Sum => e.sum(result, &Axes::All, false, None),
                Loss::Mse => {
                    let target = target(result.dims(), result.dtype());
                    let names = ("aten::mse_loss", "MseLossBackward0", "aten::mse_loss_backward");
                    e.pointwise_loss(names, (result, &target), Reduction::Mean)
                }
                Loss::BinaryCrossEntropy => {
                    let target = target(result.dims(), result.dtype());
                    e.bce_with_logits((result, &target), (None, None), Reduction::Mean)
                }
                Loss::CrossEntropy => {
                    // (batch, length, classes) is flattened, as language models do.
                    let logits = if result.rank() == 3 {
                        e.view(result, &[-1, result.dim(-1)])
                    } else {
                        result.clone()
                    };
                    let logits = if self.workload.autocast.is_some() {
                        e.to_dtype(&logits, DType::F32)
                    } else {
                        logits
                    };
                    let dims: Vec<i64> = logits
                        .dims()
                        .iter()
                        .enumerate()
                        .filter(|(at, _)| *at != 1)
                        .map(|(_, &d)| d)
                        .collect();
                    let target = target(&dims, DType::I64);
                    e.cross_entropy((&logits, &target), None, Reduction::Mean, (-100, 0.0))
                }
            }
        };
        Ok(compute())
    }

    fn infer(&self, kept: &mut Kept, findings: &mut Findings) -> Result<(), GraphError> {
        let batch = self.batch()?;
        kept.batch.clone_from(&batch);
        let mut course = self.begun(&batch);
        drop(batch);
        let all = 0..self.graph.body.outputs.len();
        kept.results = self.forward(&mut course, all, findings)?;
        Ok(())
    }

    fn train(
        &mut self,
        training: &Training,
        kept: &mut Kept,
        findings: &mut Findings,
    ) -> Result<(), GraphError> {
        let mut pass = Pass::default();
        for (at, event) in training.order.iter().enumerate() {
            match *event {
                Event::ZeroGrad(of) => {
                    let cleared = self.optimizers.iter().enumerate();
                    cleared
                        .filter(|(at, _)| of.is_none_or(|of| of == *at))
                        .for_each(|(_, optimizer)| optimizer.zero_grad(training.set_to_none));
                }
                Event::ClipGradients => self.clip(),
                Event::Step(optimizer) => {
                    if let Some(optimizer) = self.optimizers.get_mut(optimizer) {
                        optimizer.step();
                    }
                }
                Event::Forward => {
                    let next = training.order[at..].iter().find_map(|event| match event {
                        Event::Backward(loss) => Some(*loss),
                        _ => None,
                    });
                    self.run_to(training, next.unwrap_or(0), (&mut pass, kept), findings)?;
                }
                Event::Backward(loss) => {
                    if pass.ready.is_none() {
                        self.run_to(training, loss, (&mut pass, kept), findings)?;
                    }
                    self.backward(training, loss, &mut pass)?;
                }
            }
        }
        if !training.keeps.into_next {
            *kept = Kept::default();
        }
        if training.keeps.results_into_next {
            kept.of_models = pass.course.take().map(Course::into_results).unwrap_or_default();
        }
        Ok(())
    }

    /// Forward as far as a loss needs: on in the graph that runs, or in a new one, with a batch of its own, if the loss
    /// is not later in that one.
    fn run_to(
        &self,
        training: &Training,
        loss: usize,
        (pass, kept): (&mut Pass, &mut Kept),
        findings: &mut Findings,
    ) -> Result<(), GraphError> {
        if pass.last.is_none_or(|last| last >= loss) {
            let batch = self.batch()?;
            kept.batch.clone_from(&batch);
            if training.keeps.results_into_next
                && let Some(course) = pass.course.take()
            {
                kept.of_models = course.into_results();
            }
            pass.course = Some(self.begun(&batch).after(std::mem::take(&mut kept.of_models)));
        }
        pass.last = Some(loss);
        let Some(course) = &mut pass.course else { return Ok(()) };
        let before: usize = training.losses.iter().take(loss).sum();
        let is_last = loss + 1 >= training.losses.len();
        let end = if is_last {
            self.graph.body.outputs.len()
        } else {
            before + training.results_of(loss)
        };
        let mut outputs = self.forward(course, before..end, findings)?;
        if let Some(loss) = training.loss {
            outputs.insert(0, Value::Tensor(self.loss(loss, &outputs)?));
        }
        kept.results.clone_from(&outputs);
        pass.ready = Some(outputs);
        Ok(())
    }

    /// Backward of a loss that forward has reached.
    fn backward(
        &self,
        training: &Training,
        loss: usize,
        pass: &mut Pass,
    ) -> Result<(), GraphError> {
        let outputs = pass.ready.take().unwrap_or_default();
        let losses = outputs.iter().filter_map(|value| match value {
            Value::Tensor(t) if t.elements() == 1 && t.requires_grad() => Some(t.clone()),
            _ => None,
        });
        let losses: Vec<Tensor> = losses.take(training.results_of(loss)).collect();
        drop(outputs);
        if losses.is_empty() {
            return Err(GraphError::NoLoss);
        }
        losses.iter().for_each(|loss| self.eager.backward(loss));
        Ok(())
    }

    /// `torch.nn.utils.clip_grad_norm_` (torch/nn/utils/clip_grad.py).
    fn clip(&self) {
        let e = self.eager;
        let gradients: Vec<Tensor> = self.optimizers.iter().flat_map(Running::gradients).collect();
        let Some(first) = gradients.first() else { return };
        e.without_gradients(|| {
            let norms: Vec<Tensor> = e.call("aten::_foreach_norm", args![gradients, 2.0], || {
                let norm = |g: &Tensor| {
                    e.call("aten::linalg_vector_norm", args![g, 2.0, Absent, false], || {
                        e.empty(&[], g.dtype())
                    })
                };
                gradients.iter().map(norm).collect()
            });
            let stacked = e.stack(&norms, 0);
            let total = e.call("aten::linalg_vector_norm", args![stacked, 2.0], || {
                e.empty(&[], first.dtype())
            });
            drop((norms, stacked));
            let shifted = e.call("aten::add", args![total, 1e-6], || e.like(&total));
            let factor = e.call("aten::mul", args![shifted, 1.0], || e.like(&shifted));
            let clamped = e.call("aten::clamp", args![factor, Absent, 1.0], || e.like(&factor));
            drop((shifted, factor));
            e.call("aten::_foreach_mul_", args![gradients, clamped], || ());
        });
    }
}

/// A pass through the graph.
#[derive(Default)]
struct Pass {
    course: Option<Course>,
    /// The last loss that it was run to.
    last: Option<usize>,
    /// Results up to that loss, until backward.
    ready: Option<Vec<Value>>,
}

/// What the names of the loop refer to.
#[derive(Default)]
struct Kept {
    batch: Vec<Value>,
    results: Vec<Value>,
    /// Results of the models in the last pass.
    of_models: BTreeMap<ValueId, Value>,
}
