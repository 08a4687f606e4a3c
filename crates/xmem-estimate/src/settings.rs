//! What is done with a graph: the notes of `xmem export`, changed by settings.

use crate::error::GraphJobError;
use crate::loss::LossChoice;
use crate::source::Source;
use std::borrow::Cow;
use xmem_graph::graph::InputRole;
use xmem_graph::{
    DType, FullyShard, Graph, Optimizer, OptimizerClass, Ranks, Sharing, Training, Workload, blocks,
};

/// Settings of a job. What is left out is as it was noted beside the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobSettings {
    /// Training, or forward alone.
    pub purpose: Option<Purpose>,
    /// An optimizer of torch.optim with its options, as [`Optimizer::parse`] reads it.
    pub optimizer: Option<String>,
    /// The loss of the model's first result, where the graph does not end in one.
    pub loss: Option<LossChoice>,
    /// Forward and backward passes for each step of the optimizer.
    pub accumulation: Option<u32>,
    /// The type of autocast around the forward; `off` for none.
    pub autocast: Option<String>,
    /// The type of parameters and floating-point inputs.
    pub dtype: Option<String>,
    /// Modules whose activations are computed again in backward, by the end of their path, beside those that are noted.
    pub checkpoints: Vec<String>,
    /// Parameters that need no gradient, by a prefix of their path.
    pub frozen: Vec<String>,
    /// Size of the batch, where the graph leaves it open.
    pub batch: Option<u32>,
    /// Length of sequences, where the graph leaves it open.
    pub length: Option<u32>,
    /// The ranks of a job on several GPUs.
    pub ranks: Option<RankSettings>,
}

/// The ranks of a job on several GPUs. Without [`fully_shard`](Self::fully_shard), each has the whole model
/// (`DistributedDataParallel`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankSettings {
    /// GPUs, each with a process and a batch.
    pub count: u32,
    /// `gradient_as_bucket_view` of `DistributedDataParallel`.
    pub gradient_as_bucket_view: bool,
    /// Modules that `fully_shard` divides, by the end of their path; an empty list for the blocks of the model.
    pub fully_shard: Option<Vec<String>>,
    /// The type in which FSDP gathers parameters; gradients are summed in float32.
    pub param_dtype: Option<String>,
    /// Gathered parameters stay until backward (`reshard_after_forward=False`).
    pub keeps_gathered: bool,
}

/// What a model is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Forward, backward and optimizer.
    Training,
    /// Forward without gradients.
    Inference,
}

impl JobSettings {
    /// The job that is noted beside a graph, with these settings.
    ///
    /// # Errors
    /// If the notes are damaged, nothing says what is done with the model, or a name is not known.
    pub fn workload(&self, source: &Source) -> Result<Workload, GraphJobError> {
        let noted = source.job().map_err(GraphJobError::Graph)?;
        let trains = self.purpose == Some(Purpose::Training)
            || self.optimizer.is_some()
            || self.loss.is_some();
        let mut workload = match noted {
            Some(noted) => noted,
            None if trains || self.purpose.is_some() => Workload::default(),
            None => return Err(GraphJobError::NoJob),
        };
        if self.purpose == Some(Purpose::Inference) {
            workload.training = None;
        } else if trains && workload.training.is_none() {
            workload.training = Some(Training::new(Optimizer::new(OptimizerClass::AdamW)));
        }
        if let Some(training) = &mut workload.training {
            self.change(training, source)?;
        }
        match self.autocast.as_deref() {
            None => {}
            Some("off" | "none") => workload.autocast = None,
            Some(name) => workload.autocast = Some(dtype(name)?),
        }
        if let Some(name) = &self.dtype {
            workload.dtype = Some(dtype(name)?);
        }
        workload.checkpoints.extend(self.checkpoints.iter().cloned());
        self.set_sizes(&mut workload);
        if let Some(ranks) = &self.ranks {
            workload.ranks = Some(self.ranks(ranks, source)?);
        }
        Ok(workload)
    }

    fn ranks(&self, ranks: &RankSettings, source: &Source) -> Result<Ranks, GraphJobError> {
        let Some(modules) = &ranks.fully_shard else {
            let gradient_as_bucket_view = ranks.gradient_as_bucket_view;
            return Ok(Ranks::new(ranks.count, Sharing::Replicated { gradient_as_bucket_view }));
        };
        let modules =
            if modules.is_empty() { blocks(self.graph(source)?.as_ref()) } else { modules.clone() };
        let mut options = FullyShard::of(modules);
        options.reshard_after_forward = !ranks.keeps_gathered;
        options.param_dtype = ranks.param_dtype.as_deref().map(dtype).transpose()?;
        Ok(Ranks::new(ranks.count, Sharing::Sharded(options)))
    }

    fn change(&self, training: &mut Training, source: &Source) -> Result<(), GraphJobError> {
        if let Some(optimizer) = &self.optimizer {
            let optimizer = Optimizer::parse(optimizer).map_err(GraphJobError::Settings)?;
            training.optimizers.iter_mut().for_each(|(known, _)| *known = optimizer.clone());
        }
        training.loss = self.loss.map(LossChoice::loss).or(training.loss);
        if let Some(passes) = self.accumulation {
            training.accumulate(passes);
        }
        if self.frozen.is_empty() {
            return Ok(());
        }
        for input in &self.graph(source)?.inputs {
            if let InputRole::Parameter(path) = &input.role
                && self.frozen.iter().any(|prefix| is_below(path, prefix))
            {
                training.frozen.insert(path.clone());
            }
        }
        Ok(())
    }

    /// The graph at the sizes that are asked for.
    fn graph<'s>(&self, source: &'s Source) -> Result<Cow<'s, Graph>, GraphJobError> {
        let mut sized = Workload::default();
        self.set_sizes(&mut sized);
        source.graph(&sized).map_err(GraphJobError::of_acting)
    }

    fn set_sizes(&self, workload: &mut Workload) {
        workload.batch = self.batch.map(i64::from);
        workload.length = self.length.map(i64::from);
    }
}

/// Returns whether a parameter is that of a module, or below it. Paths may begin with the name of the program's model.
fn is_below(path: &str, prefix: &str) -> bool {
    let starts = |path: &str| {
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    starts(path) || path.split_once('.').is_some_and(|(_, rest)| starts(rest))
}

fn dtype(name: &str) -> Result<DType, GraphJobError> {
    let known = DType::named(name).filter(|dtype| dtype.is_floating_point());
    known.ok_or_else(|| GraphJobError::UnknownType { name: name.to_owned() })
}
