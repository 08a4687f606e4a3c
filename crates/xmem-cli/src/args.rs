//! Arguments of the command line. Parsing them has no other effect.

mod allocator;
mod check;
mod diff;
mod look;
mod offload;
mod other;
mod plan;
mod profile;
mod replay;
mod report;
mod serve;
mod shared;
mod short_help;
mod simulate;
mod snapshot;
mod validate;

pub(crate) use allocator::{AllocatorArgs, AllocatorName, AllocatorRest, AllocatorsArgs, Order};
pub(crate) use check::{
    CheckArgs, CheckFormat, ConfigArgs, ConfigFormat, SettingsArgs, SubmitArgs,
};
pub(crate) use diff::{DiffArgs, DiffFormat, DiffKey, FigureName};
pub(crate) use look::LookArgs;
pub(crate) use offload::{
    OffloadArgs, OffloadFormat, OrderName, PlacementSelection, PolicySelection,
};
pub(crate) use other::{
    CompletionsArgs, CudnnWorkerArgs, DevicesArgs, EnterOverlayArgs, InspectArgs,
};
pub(crate) use plan::{PlanArgs, PlanDeviceArgs, PlanFormat, PlannerChoice, Scope};
pub(crate) use profile::{ProfileArgs, RankChoice};
pub(crate) use replay::{
    AnswerArgs, Collectives, DeviceArgs, OptimizerKind, OtherJob, Rate, ReplayArgs, ReplayFormat,
    VaryArgs, WhatIfArgs, ZeroGrad,
};
pub(crate) use report::{KeyName, PictureArgs, ReportArgs, ReportFormat, TableName, ViewName};
pub(crate) use serve::ServeArgs;
pub(crate) use shared::{CudnnArgs, Format, PlainFormat, ReadingArgs, count, fraction};
pub(crate) use short_help::on_one_screen;
pub(crate) use simulate::{SegmentsWhen, SimulateArgs};
pub(crate) use snapshot::{SnapshotArgs, SnapshotCommand, SnapshotInfoArgs, SnapshotReplayArgs};
pub(crate) use validate::ValidateArgs;

use clap::{ArgAction, Args, Parser, Subcommand};

/// Predict the GPU memory of a PyTorch training job from a CPU profiler trace
///
/// xmem reads the CPU profiler trace of a job, derives the memory requests of the same job on a
/// GPU, and replays them through an exact model of PyTorch's CUDA caching allocator.
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
        xmem inspect trace.json.gz                       show the contents of a trace\n  \
        xmem look trace.json.gz -d t4-16g                browse its memory in the terminal\n  \
        xmem diff main.json.gz branch.json.gz -d t4-16g  what grew?\n  \
        xmem plan trace.json.gz                          how little memory could it be?\n  \
        xmem offload trace.json.gz --device t4-16g       what would offloading to the host buy?\n  \
        xmem simulate ops.json                           run allocations and frees by hand\n  \
        xmem snapshot info snapshot.pickle               show the contents of a memory snapshot\n  \
        xmem devices                                     list the known GPUs\n\n\
        Traces recorded with torch.profiler work as well: on the CPU, with profile_memory=True, \
        record_shapes=True and with_stack=True, then export_chrome_trace."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Global {
    /// Print the time of each stage on standard error; -vv prints all log messages
    #[arg(short, long, action = ArgAction::Count, global = true, conflicts_with = "quiet", hide_short_help = true)]
    verbose: u8,
    /// Print no progress, and only the verdict of a text answer
    #[arg(short, long, global = true)]
    quiet: bool,
}

/// The amount of output.
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
    /// Estimate a job's GPU memory from a trace or a snapshot, and check whether it fits
    Replay(Box<ReplayArgs>),
    /// Decide whether a job may start: on a device, or for a request to a cluster
    Check(Box<CheckArgs>),
    /// Check a job, and run the command that submits it to Slurm
    Submit(SubmitArgs),
    /// Decide about the pods of a Kubernetes cluster: an admission webhook
    Serve(ServeArgs),
    /// Look at a predicted run in the terminal: over time, by name, block by block
    Look(Box<LookArgs>),
    /// Compare the memory of two runs, by name: what grew
    Diff(Box<DiffArgs>),
    /// Compare what an allocator takes with what a static plan of the same blocks needs
    Plan(Box<PlanArgs>),
    /// Simulate what moving saved tensors to the host would save in memory, and cost in time
    Offload(Box<OffloadArgs>),
    /// Write a run as a file to look at: an HTML page, a picture, flame graphs, tables
    Report(Box<ReportArgs>),
    /// Run a list of allocations and frees through the simulated allocator
    Simulate(Box<SimulateArgs>),
    /// Show the contents of a trace, and what is missing from it
    Inspect(InspectArgs),
    /// Show or replay a memory snapshot
    Snapshot(SnapshotArgs),
    /// Compare the estimate of a trace with a memory snapshot of the same job
    Validate(Box<ValidateArgs>),
    /// List the known devices
    Devices(DevicesArgs),
    /// Show the settings of `xmem check`, and where each comes from
    Config(ConfigArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Serve queries to cuDNN on standard input
    #[command(name = xmem_cudnn::WORKER, hide = true)]
    CudnnWorker(CudnnWorkerArgs),
    /// Run a command whose writes are kept out of the files of the user
    #[command(name = xmem_overlay::ENTER, hide = true)]
    EnterOverlay(EnterOverlayArgs),
    /// Print the manual page
    #[command(hide = true)]
    Man,
}
