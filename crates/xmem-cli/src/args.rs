//! What can be said on the command line. Parsing does nothing else.

mod allocator;
mod other;
mod profile;
mod replay;
mod shared;
mod simulate;
mod snapshot;
mod validate;

pub(crate) use allocator::{AllocatorArgs, AllocatorName, AllocatorRest, AllocatorsArgs, Order};
pub(crate) use other::{CompletionsArgs, CudnnWorkerArgs, DevicesArgs, InspectArgs};
pub(crate) use profile::ProfileArgs;
pub(crate) use replay::{
    AnswerArgs, DeviceArgs, OptimizerKind, ReplayArgs, ReplayFormat, WhatIfArgs, ZeroGrad,
};
pub(crate) use shared::{CudnnArgs, CudnnSource, Format, PlainFormat, ReadingArgs, fraction};
pub(crate) use simulate::{SegmentsWhen, SimulateArgs};
pub(crate) use snapshot::{SnapshotArgs, SnapshotCommand, SnapshotInfoArgs, SnapshotReplayArgs};
pub(crate) use validate::ValidateArgs;

use clap::{ArgAction, Args, Parser, Subcommand};

/// How much GPU memory does a PyTorch training job need, when, and because of what?
///
/// xmem reads the CPU profiler trace of a job, turns it into what the same job asks of a GPU, and
/// replays that through an exact model of PyTorch's CUDA caching allocator.
#[derive(Debug, Parser)]
#[command(
    name = "xmem",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "Examples:\n  \
        xmem profile -- python train.py                  record a trace of this script\n  \
        xmem replay trace.json.gz --device rtx3060-12g   will the job fit on this GPU?\n  \
        xmem inspect trace.json.gz                       what is in this trace?\n  \
        xmem simulate ops.json                           what does the allocator make of this?\n  \
        xmem snapshot info snapshot.pickle               what is in this memory snapshot?\n  \
        xmem devices                                     which GPUs are known?\n\n\
        Traces of torch.profiler itself do as well: on the CPU, with profile_memory=True, \
        record_shapes=True and with_stack=True, then export_chrome_trace."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Say more on standard error: time taken by each stage; twice for everything
    #[arg(short, long, action = ArgAction::Count, global = true, conflicts_with = "quiet")]
    verbose: u8,
    /// Say less: no progress, and of a text answer only the verdict
    #[arg(short, long, global = true)]
    quiet: bool,
}

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Quiet,
    Normal,
    Stages,
    Everything,
}

impl Global {
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, 1) => Verbosity::Stages,
            (false, _) => Verbosity::Everything,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a training script without a GPU, and record a trace of it
    Profile(Box<ProfileArgs>),
    /// Estimate a job's GPU memory from its CPU trace, and judge whether it fits
    Replay(Box<ReplayArgs>),
    /// Run a plain list of allocations and frees through the allocator
    Simulate(Box<SimulateArgs>),
    /// Show what is in a trace, and what is missing from it
    Inspect(InspectArgs),
    /// Look into a memory snapshot, or run it again
    Snapshot(SnapshotArgs),
    /// Hold the estimate of a trace against a memory snapshot of the same job
    Validate(Box<ValidateArgs>),
    /// List the known devices
    Devices(DevicesArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Answer questions to cuDNN on standard input
    #[command(name = xmem_cudnn::WORKER, hide = true)]
    CudnnWorker(CudnnWorkerArgs),
    /// Print the manual page
    #[command(hide = true)]
    Man,
}
