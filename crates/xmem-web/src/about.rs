//! A graph as its page introduces it: what is open, what was noted beside it, and which modules repeat.

use crate::error::SessionError;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use xmem_estimate::{GraphJobError, Source};
use xmem_graph::graph::{Graph, Input, InputRole};
use xmem_graph::{Implementation, Optimizer, Workload};

/// A graph.
#[derive(Debug, Serialize)]
pub(crate) struct About {
    schema: &'static str,
    /// The release of PyTorch that made it.
    torch: Option<String>,
    operators: usize,
    /// Elements of all parameters.
    parameters: u64,
    /// The size of the batch with which it was made, if it is open.
    batch: Option<i64>,
    /// The length of sequences with which it was made, if it is open.
    length: Option<i64>,
    job: Option<JobAbout>,
    /// Modules that can be named together.
    repeated: Vec<RepeatedModule>,
}

/// The job that was noted beside a graph.
#[derive(Debug, Serialize)]
struct JobAbout {
    training: bool,
    optimizers: Vec<String>,
    autocast: Option<&'static str>,
    checkpoints: Vec<String>,
}

/// Modules in a list.
#[derive(Debug, Serialize)]
struct RepeatedModule {
    /// The pattern that names all of them.
    pattern: String,
    count: usize,
}

impl About {
    pub(crate) fn of(source: &Source) -> Result<Self, SessionError> {
        let graph = &source.graph(&Workload::default())?;
        let noted = source.job().map_err(GraphJobError::Graph)?;
        Ok(Self {
            schema: "xmem.page-graph/1",
            torch: graph.torch.clone(),
            operators: graph.body.nodes.len(),
            parameters: parameters(graph),
            batch: source.batch(graph),
            length: source.length(graph),
            job: noted.as_ref().map(JobAbout::of),
            repeated: repeated(graph),
        })
    }
}

impl JobAbout {
    fn of(workload: &Workload) -> Self {
        let optimizers = workload.training.iter().flat_map(|training| &training.optimizers);
        Self {
            training: workload.training.is_some(),
            optimizers: optimizers.map(|(optimizer, _)| spelled(optimizer)).collect(),
            autocast: workload.autocast.map(xmem_graph::DType::name),
            checkpoints: workload.checkpoints.clone(),
        }
    }
}

/// An optimizer as options name it, as far as it differs from torch's defaults.
fn spelled(optimizer: &Optimizer) -> String {
    let default = Optimizer::new(optimizer.class);
    let implementation = match optimizer.implementation {
        Implementation::Foreach => "foreach",
        Implementation::Fused => "fused",
        Implementation::ForLoop => "for-loop",
        _ => "",
    };
    let options = [
        (optimizer.momentum, "momentum"),
        (optimizer.nesterov, "nesterov"),
        (optimizer.weight_decay && !default.weight_decay, "weight-decay"),
        (optimizer.amsgrad, "amsgrad"),
        (optimizer.centered, "centered"),
        (optimizer.capturable, "capturable"),
        (!implementation.is_empty(), implementation),
    ];
    let mut words = optimizer.class.name().to_owned();
    for (_, option) in options.iter().filter(|(is_set, _)| *is_set) {
        words = format!("{words}:{option}");
    }
    words
}

/// The elements of all parameters; one of several names counts once.
fn parameters(graph: &Graph) -> u64 {
    let elements = |input: &Input| {
        let tensor = graph.body.values.get(input.value.0 as usize)?.tensor.as_ref()?;
        let dims = tensor.dims.iter().map(|dim| u64::try_from(dim.value(&graph.symbols)?).ok());
        dims.collect::<Option<Vec<u64>>>()?.into_iter().try_fold(1_u64, u64::checked_mul)
    };
    let is_own = |i: &&Input| matches!(i.role, InputRole::Parameter(_)) && i.same_as.is_none();
    graph.inputs.iter().filter(is_own).filter_map(elements).fold(0, u64::saturating_add)
}

/// Modules whose names are numbers below one parent, the longest list first.
fn repeated(graph: &Graph) -> Vec<RepeatedModule> {
    let mut lists: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for module in graph.body.nodes.iter().flat_map(|node| &node.modules) {
        if let Some((parent, name)) = module.path.rsplit_once('.')
            && name.bytes().all(|byte| byte.is_ascii_digit())
        {
            lists.entry(parent).or_default().insert(name);
        }
    }
    let several = lists.into_iter().filter(|(_, names)| names.len() > 1);
    let mut repeated: Vec<RepeatedModule> = several
        .map(|(parent, names)| RepeatedModule {
            pattern: format!("{parent}.*"),
            count: names.len(),
        })
        .collect();
    repeated.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.pattern.cmp(&b.pattern)));
    repeated
}
