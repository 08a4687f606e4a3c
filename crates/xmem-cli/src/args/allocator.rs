//! Which allocator is simulated.

use super::fraction;
use clap::{Args, ValueEnum};
use xmem::TorchVersion;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Allocator")]
pub(crate) struct AllocatorArgs {
    /// PyTorch version that will run on the GPU, like 2.6 (default: the one that the input names,
    /// else 2.11)
    #[arg(long, value_name = "VERSION", value_parser = str::parse::<TorchVersion>)]
    pub(crate) torch: Option<TorchVersion>,
    /// Options as in PYTORCH_CUDA_ALLOC_CONF, like expandable_segments:True (default: those that
    /// the input names); '' for none
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    pub(crate) alloc_conf: Option<String>,
    /// Which allocator (default: what the options choose)
    #[arg(long, value_name = "NAME", value_enum, ignore_case = true)]
    pub(crate) allocator: Option<AllocatorName>,
    #[command(flatten)]
    pub(crate) rest: AllocatorRest,
}

/// The same where an answer is given for each of several.
#[derive(Debug, Args)]
#[command(next_help_heading = "Allocator")]
pub(crate) struct AllocatorsArgs {
    /// PyTorch version that will run on the GPU, like 2.6 (default: the one that the input names,
    /// else 2.11); repeatable
    #[arg(long, value_name = "VERSION", value_parser = str::parse::<TorchVersion>)]
    torch: Vec<TorchVersion>,
    /// Options as in PYTORCH_CUDA_ALLOC_CONF, like expandable_segments:True (default: those that
    /// the input names); '' for none; repeatable
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    alloc_conf: Vec<String>,
    /// Which allocator (default: what the options choose); repeatable
    #[arg(long, value_name = "NAME", value_enum, ignore_case = true)]
    allocator: Vec<AllocatorName>,
    #[command(flatten)]
    rest: AllocatorRest,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Allocator")]
pub(crate) struct AllocatorRest {
    /// The program calls torch.cuda.set_per_process_memory_fraction with this, from 0 to 1
    #[arg(long, value_name = "FRACTION", value_parser = fraction)]
    pub(crate) memory_fraction: Option<f64>,
    /// Addresses of new segments, which decide between free blocks of equal size (default: driver;
    /// for a list of operations what it says, else asc)
    #[arg(long, value_name = "ORDER", value_enum)]
    pub(crate) address_order: Option<Order>,
}

impl AllocatorsArgs {
    /// Every combination.
    pub(crate) fn each(&self) -> Vec<AllocatorArgs> {
        let mut all = Vec::new();
        for torch in each_or_none(&self.torch) {
            for allocator in each_or_none(&self.allocator) {
                for alloc_conf in each_or_none(&self.alloc_conf) {
                    let rest = self.rest.clone();
                    all.push(AllocatorArgs { torch, alloc_conf, allocator, rest });
                }
            }
        }
        all
    }
}

/// Each that was given; none, once, if nothing was.
fn each_or_none<T: Clone>(given: &[T]) -> Vec<Option<T>> {
    if given.is_empty() { vec![None] } else { given.iter().cloned().map(Some).collect() }
}

/// Names of the allocators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AllocatorName {
    /// PyTorch's caching allocator
    Native,
    /// PyTorch with PYTORCH_NO_CUDA_MEMORY_CACHING=1
    Uncached,
    /// PyTorch with backend:cudaMallocAsync, approximately
    #[value(name = "cudaMallocAsync")]
    CudaMallocAsync,
    /// TensorFlow's
    TfBfc,
    /// TensorFlow's with allow_growth
    TfBfcGrowth,
}

/// Names of the address orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// As CUDA's driver does, from the top down
    Driver,
    /// From the bottom up
    #[value(alias = "ascending")]
    Asc,
    /// From the top down
    #[value(alias = "descending")]
    Desc,
    /// Where the recording had them
    #[value(hide = true)]
    Recorded,
}
