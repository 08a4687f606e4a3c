//! `xmem.job.json` of an archive that `xmem export` wrote: what the script does with the model.

use crate::dtype::DType;
use crate::error::GraphError;
use crate::optimizer::{Implementation, Optimizer};
use crate::training::{Event, Keeps, Training, Workload};
use serde::Deserialize;

/// The file, as far as it is read.
#[derive(Deserialize)]
struct JobFile {
    schema: String,
    #[serde(default)]
    optimizer: Vec<OptimizerEntry>,
    zero_grad: Option<ZeroGradEntry>,
    autocast: Option<AutocastEntry>,
    #[serde(default)]
    losses: Vec<LossEntry>,
    #[serde(default)]
    order: Vec<EventEntry>,
    #[serde(default)]
    checkpointing: Vec<CheckpointEntry>,
    #[serde(default)]
    frozen: Vec<String>,
    #[serde(default)]
    beside: Vec<BesideEntry>,
    #[serde(default)]
    autograd_functions: Vec<String>,
    keeps: Option<KeepsEntry>,
}

#[derive(Deserialize)]
struct BesideEntry {
    dims: Vec<u32>,
    dtype: String,
}

#[derive(Deserialize)]
struct LossEntry {
    outputs: usize,
}

#[derive(Deserialize)]
struct EventEntry {
    event: String,
    loss: Option<usize>,
    optimizer: Option<usize>,
}

#[derive(Deserialize)]
struct CheckpointEntry {
    module: Option<String>,
}

#[derive(Deserialize)]
struct OptimizerEntry {
    class: String,
    #[serde(default)]
    defaults: Defaults,
    #[serde(default)]
    groups: Vec<Group>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Defaults {
    momentum: Option<Setting>,
    nesterov: Option<Setting>,
    weight_decay: Option<Setting>,
    amsgrad: Option<Setting>,
    centered: Option<Setting>,
    maximize: Option<Setting>,
    foreach: Option<bool>,
    fused: Option<bool>,
    capturable: Option<Setting>,
}

/// A flag, or a number of which only matters whether it is zero.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Setting {
    Flag(bool),
    Number(f64),
}

impl Setting {
    fn is_on(self) -> bool {
        match self {
            Self::Flag(flag) => flag,
            Self::Number(number) => number != 0.0,
        }
    }
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    parameters: Vec<String>,
}

#[derive(Deserialize)]
struct ZeroGradEntry {
    #[serde(default = "yes")]
    set_to_none: bool,
}

const fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct AutocastEntry {
    dtype: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KeepsEntry {
    loss: bool,
    outputs: bool,
    outputs_at_backward: bool,
}

/// The schema that is read.
const SCHEMA: &str = "xmem.graph-job/1";

impl Workload {
    /// Reads the file beside a graph.
    ///
    /// # Errors
    /// If it is no file of `xmem export`, or names an optimizer that is not known.
    pub fn from_job(text: &str) -> Result<Self, GraphError> {
        let file: JobFile = serde_json::from_str(text)
            .map_err(|e| GraphError::Format(format!("xmem.job.json: {e}")))?;
        if file.schema != SCHEMA {
            return Err(GraphError::Format(format!(
                "xmem.job.json has schema `{}`, and `{SCHEMA}` is read: export the job with this xmem",
                file.schema
            )));
        }
        let autocast = file.autocast.as_ref().and_then(|a| DType::named(&a.dtype));
        let mut workload = Self { autocast, ..Self::default() };
        let paths = file.checkpointing.into_iter().filter_map(|c| c.module);
        workload.checkpoints = paths.collect();
        let beside = file.beside.into_iter().filter_map(|tensor| {
            let dims = tensor.dims.into_iter().map(i64::from).collect();
            Some((dims, DType::named(&tensor.dtype)?))
        });
        workload.beside = beside.collect();
        workload.autograd_functions = file.autograd_functions;
        if file.optimizer.is_empty() {
            return Ok(workload);
        }
        let mut optimizers = Vec::new();
        for entry in &file.optimizer {
            let groups = entry.groups.iter().map(|g| g.parameters.clone()).collect();
            optimizers.push((optimizer(entry)?, groups));
        }
        let mut training = Training::new(optimizers[0].0.clone());
        training.optimizers = optimizers;
        training.frozen = file.frozen.into_iter().collect();
        training.set_to_none = file.zero_grad.is_none_or(|z| z.set_to_none);
        if !file.losses.is_empty() {
            training.losses = file.losses.iter().map(|l| l.outputs).collect();
        }
        let count = training.losses.len();
        let order: Vec<Event> = file.order.iter().filter_map(|entry| event(entry, count)).collect();
        if order.iter().any(|event| matches!(event, Event::Backward(_))) {
            training.order = order;
        }
        training.keeps.results = true;
        if let Some(keeps) = file.keeps {
            training.keeps = Keeps {
                results: keeps.outputs_at_backward || keeps.outputs,
                into_next: keeps.loss || keeps.outputs,
                results_into_next: keeps.outputs,
            };
        }
        workload.training = Some(training);
        Ok(workload)
    }
}

/// An event; equal passes of an accumulation have one loss in the graph.
fn event(entry: &EventEntry, losses: usize) -> Option<Event> {
    Some(match entry.event.as_str() {
        "zero-grad" => Event::ZeroGrad(entry.optimizer),
        "forward" => Event::Forward,
        "backward" => Event::Backward(entry.loss.unwrap_or(0) % losses.max(1)),
        "clip-grad" => Event::ClipGradients,
        "step" => Event::Step(entry.optimizer.unwrap_or(0)),
        _ => return None,
    })
}

fn optimizer(entry: &OptimizerEntry) -> Result<Optimizer, GraphError> {
    let mut optimizer = Optimizer::parse(&entry.class)?;
    let is = |setting: Option<Setting>| setting.is_some_and(Setting::is_on);
    let d = &entry.defaults;
    optimizer.momentum = is(d.momentum);
    optimizer.nesterov = is(d.nesterov);
    optimizer.weight_decay = d.weight_decay.map_or(optimizer.weight_decay, Setting::is_on);
    optimizer.amsgrad = is(d.amsgrad);
    optimizer.centered = is(d.centered);
    optimizer.maximize = is(d.maximize);
    optimizer.capturable = is(d.capturable);
    optimizer.implementation = match (d.fused, d.foreach) {
        (Some(true), _) => Implementation::Fused,
        (_, Some(true)) => Implementation::Foreach,
        (_, Some(false)) => Implementation::ForLoop,
        _ => Implementation::Default,
    };
    Ok(optimizer)
}
