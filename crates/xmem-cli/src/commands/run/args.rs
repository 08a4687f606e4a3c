//! Arguments of `xmem run`.

use crate::choice::choice;
use crate::device;
use crate::measures::{Changes, list_of_changes};
use crate::values::{Offered, count, count_up_to};
use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use xmem::Bytes;
use xmem_recorder::OverlayChoice;

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Without --virtual-gpu, the command runs on the GPU that is there, as without xmem, but with the measures or the plan.\n\
        On a virtual GPU (PyTorch's CUDA build), nothing is computed, and memory ends where that of the device does:\n\
        torch.OutOfMemoryError is raised where it would be. What the script writes is kept out of your files then.\n\n\
        Examples:\n  \
        xmem run --with checkpointing=2,fused -- python train.py\n  \
        xmem run --virtual-gpu rtx4090-24g -- python train.py --batch-size 8\n  \
        xmem run --plan auto --report run.json -- python train.py\n  \
        xmem run --cpu --plan auto -- python infer.py\n\n\
        Exit code: that of the command; 2 usage error, 3 it could not be run."
)]
pub(crate) struct RunArgs {
    /// Command with its arguments: what follows its first word is the command's
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    /// Measures that lower the memory of the job: a list such as checkpointing=2,fused, as `xmem fit` finds them
    #[arg(long, value_name = "MEASURES", value_parser = list_of_changes(), hide_possible_values = true)]
    pub(crate) with: Option<Changes>,
    /// Give requests for memory the addresses of a static memory plan: a file of `xmem plan --export-hints`, a recording of
    /// the job, or `auto`, which records the job on a virtual GPU first; with --cpu, it plans what the job does in its first
    /// iterations
    #[arg(long, value_name = "FILE|auto", value_hint = ValueHint::FilePath)]
    pub(crate) plan: Option<PathBuf>,
    /// With --plan, follow it in the memory of tensors on the CPU
    #[arg(long, requires = "plan", conflicts_with = "virtual_gpu")]
    pub(crate) cpu: bool,
    /// With --plan, write the last plan that was followed to this file, for a later run (JSON)
    #[arg(long, value_name = "FILE", requires = "plan", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub(crate) export_hints: Option<PathBuf>,
    /// With --plan, write what became of it to this file (JSON)
    #[arg(long, value_name = "FILE", requires = "plan", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub(crate) report: Option<PathBuf>,
    /// With --plan, check that no memory is given out twice
    #[arg(long, requires = "plan", hide_short_help = true)]
    pub(crate) check_plan: bool,
    /// Run on a virtual GPU of this name, to the end of its memory; `xmem devices` lists the names
    #[arg(long, value_name = "NAME", value_parser = Offered::new(device::offered), hide_possible_values = true)]
    pub(crate) virtual_gpu: Option<String>,
    /// Memory that PyTorch can take on the virtual GPU, for example 20GiB, instead of what the device leaves beside its context
    #[arg(long, value_name = "SIZE", requires = "virtual_gpu", allow_negative_numbers = true, value_parser = Bytes::of_device)]
    pub(crate) capacity: Option<Bytes>,
    /// Number of virtual GPUs that the command sees
    #[arg(long, value_name = "N", requires = "virtual_gpu", default_value = "1", value_parser = count_up_to::<64>)]
    pub(crate) gpus: NonZeroU32,
    /// Number of processes of a distributed job, of which one runs alone, as with `xmem profile --ranks`
    #[arg(long, value_name = "N", requires = "virtual_gpu", conflicts_with = "gpus", value_parser = count::<NonZeroU32>, hide_short_help = true)]
    pub(crate) ranks: Option<NonZeroU32>,
    /// The rank that runs with --ranks
    #[arg(
        long,
        value_name = "RANK",
        requires = "ranks",
        default_value_t = 0,
        hide_short_help = true
    )]
    pub(crate) rank: u32,
    /// Machines over which --ranks are spread; each has N/M GPUs
    #[arg(long, value_name = "M", requires = "ranks", default_value = "1", value_parser = count::<NonZeroU32>, hide_short_help = true)]
    pub(crate) nodes: NonZeroU32,
    /// On a virtual GPU, let the script write to this file or folder, or to `all`
    #[arg(long, value_name = "PATH", requires = "virtual_gpu", value_hint = ValueHint::AnyPath)]
    pub(crate) let_write: Vec<PathBuf>,
    /// On a virtual GPU, how writes are kept out of your files: by a mount namespace, or by a library that is preloaded
    #[arg(long, value_name = "HOW", value_parser = choice::<OverlayChoice>(), default_value = "auto", hide_short_help = true)]
    pub(crate) overlay: OverlayChoice,
    /// On a virtual GPU, load zeros for weights that are not on this machine
    #[arg(long, requires = "virtual_gpu", hide_short_help = true)]
    pub(crate) without_weights: bool,
}
