//! The choice of the simulated allocator.

use crate::choice::{choice, choices};
use crate::values::share;
use clap::Args;
use clap::builder::PossibleValue;
use xmem::TorchVersion;
use xmem::predict::AllocatorKind;
use xmem::simulator::AddressOrder;

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Allocator")]
pub(crate) struct AllocatorArgs {
    /// PyTorch version that will run on the GPU, for example 2.6 (default: the version in the
    /// input, else 2.11)
    #[arg(long, value_name = "VERSION", value_parser = str::parse::<TorchVersion>)]
    pub(crate) torch: Option<TorchVersion>,
    /// Options as in PYTORCH_CUDA_ALLOC_CONF, for example expandable_segments:True (default: the
    /// options in the input); '' for none
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    pub(crate) alloc_conf: Option<String>,
    /// Allocator to simulate (default: as chosen by the options)
    #[arg(long, value_name = "NAME", value_parser = choice::<AllocatorKind>(), ignore_case = true)]
    pub(crate) allocator: Option<AllocatorKind>,
    #[command(flatten)]
    pub(crate) rest: AllocatorRest,
}

/// The same for a command that answers for each of several allocators.
#[derive(Debug, Args)]
#[command(next_help_heading = "Allocator")]
pub(crate) struct AllocatorsArgs {
    /// PyTorch version that will run on the GPU, for example 2.6 (default: the version in the
    /// input, else 2.11); repeatable
    #[arg(long, value_name = "VERSION", value_parser = str::parse::<TorchVersion>)]
    torch: Vec<TorchVersion>,
    /// Options as in PYTORCH_CUDA_ALLOC_CONF, for example expandable_segments:True (default: the
    /// options in the input); '' for none; repeatable
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    alloc_conf: Vec<String>,
    /// Allocator to simulate (default: as chosen by the options); repeatable
    #[arg(long, value_name = "NAME", value_parser = choice::<AllocatorKind>(), ignore_case = true)]
    allocator: Vec<AllocatorKind>,
    #[command(flatten)]
    rest: AllocatorRest,
}

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Allocator")]
pub(crate) struct AllocatorRest {
    /// Value that the program passes to torch.cuda.set_per_process_memory_fraction, from 0 to 1
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true, value_parser = share)]
    pub(crate) memory_fraction: Option<f64>,
    /// Order of the addresses of new segments, which decides between free blocks of equal size
    /// (default: driver; for a list of operations the order in the list, else asc)
    #[arg(long, value_name = "ORDER", value_parser = choice::<AddressOrder>())]
    pub(crate) address_order: Option<AddressOrder>,
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

/// Each given value, or `None` once if there are no values.
fn each_or_none<T: Clone>(given: &[T]) -> Vec<Option<T>> {
    if given.is_empty() { vec![None] } else { given.iter().cloned().map(Some).collect() }
}

choices! {
    AllocatorKind by name {
        Native => "PyTorch's caching allocator",
        Uncached => "PyTorch with PYTORCH_NO_CUDA_MEMORY_CACHING=1",
        MallocAsync => "PyTorch with backend:cudaMallocAsync (an approximation)",
        Bfc => "TensorFlow's BFC allocator",
        BfcGrowth => "TensorFlow's BFC allocator with allow_growth",
    }
}

choices! {
    AddressOrder {
        Driver => PossibleValue::new("driver")
            .help("As observed from the CUDA driver: from the top down, in granules of 32 MiB"),
        Ascending => PossibleValue::new("asc").alias("ascending").help("From the bottom up"),
        Descending => PossibleValue::new("desc").alias("descending").help("From the top down"),
        Recorded => PossibleValue::new("recorded").hide(true).help("The recorded addresses"),
    }
}
