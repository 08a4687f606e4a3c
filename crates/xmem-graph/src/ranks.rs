//! A job on several GPUs, each with a process and a batch of its own, that share a model: all have all of it
//! (`DistributedDataParallel`), or each has a shard (`fully_shard`, FSDP2). What a rank makes beside a job on one GPU is
//! acted around the graph: buckets, buffers of collectives, shards.

mod blocks;
mod broadcast;
mod replicated;
mod sharded;
mod spans;

use crate::dtype::DType;
use crate::eager::Eager;
use crate::eager::tensor::Tensor;
use crate::interpreter::{Around, Value};
use std::rc::Rc;

pub use blocks::blocks;
pub(crate) use replicated::Reducer;
pub(crate) use sharded::{Sharded, ShardedParameter};
pub(crate) use spans::Spans;

/// The ranks of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ranks {
    /// The number of processes, each with a GPU.
    pub count: u32,
    /// How they share the model.
    pub sharing: Sharing,
}

/// How ranks share a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sharing {
    /// `DistributedDataParallel` with its defaults.
    Replicated {
        /// `gradient_as_bucket_view=True`.
        gradient_as_bucket_view: bool,
    },
    /// `fully_shard`.
    Sharded(FullyShard),
}

/// Arguments of `fully_shard`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FullyShard {
    /// Modules that are sharded one by one, by the end of their path; `*` stands for one name. The model is sharded last.
    pub modules: Vec<String>,
    /// `reshard_after_forward` of these modules.
    pub reshard_after_forward: bool,
    /// `MixedPrecisionPolicy(param_dtype=…, reduce_dtype=torch.float32)`.
    pub param_dtype: Option<DType>,
}

impl FullyShard {
    /// These modules and the model, with the defaults of `fully_shard`.
    #[must_use]
    pub const fn of(modules: Vec<String>) -> Self {
        Self { modules, reshard_after_forward: true, param_dtype: None }
    }
}

impl Ranks {
    /// So many ranks.
    #[must_use]
    pub const fn new(count: u32, sharing: Sharing) -> Self {
        Self { count, sharing }
    }

    /// Machines, with eight GPUs each if there are more.
    pub(crate) const fn nodes(&self) -> u32 {
        self.count.div_ceil(8)
    }
}

/// What is done around the modules that are wrapped.
pub(crate) enum Wrapping {
    Replicated(Rc<Reducer>),
    Sharded(Rc<Sharded>),
}

impl Around for Wrapping {
    fn before(&self, eager: &Eager, at: usize, values: &mut [Option<Value>]) {
        match self {
            Self::Replicated(reducer) => reducer.before(eager, at),
            Self::Sharded(sharded) => sharded.before(eager, at, values),
        }
    }

    fn after(&self, eager: &Eager, at: usize, values: &mut [Option<Value>]) {
        match self {
            Self::Replicated(reducer) => reducer.after(eager, at),
            Self::Sharded(sharded) => sharded.after(eager, at, values),
        }
    }
}

/// Bytes of a tensor's elements.
fn bytes(tensor: &Tensor) -> u64 {
    u64::try_from(tensor.elements()).unwrap_or(0).saturating_mul(tensor.dtype().size())
}

/// Returns whether a path is that of a module, or below it.
fn is_below(path: &str, module: &str) -> bool {
    let rest = path.strip_prefix(module);
    module.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
