//! The commands. Each is a module with its arguments (`args`), the work (`run`), and what else it needs; what several of
//! them share are modules of the crate.

mod check;
mod completions;
mod config;
mod cudnn_worker;
mod devices;
mod diff;
mod enter_overlay;
mod estimate;
mod eval;
mod explain;
mod export;
mod fit;
mod inspect;
mod look;
mod man;
mod offload;
mod plan;
mod profile;
mod replay;
mod report;
mod run;
mod serve;
mod simulate;
mod snapshot;
mod submit;
mod validate;

use crate::error::{CliError, Explanation};
use crate::exit::Exit;
use crate::global::Global;
use crate::logging::LogFormat;
use check::CheckArgs;
use clap::{Parser, Subcommand};
use completions::CompletionsArgs;
use config::ConfigArgs;
use cudnn_worker::CudnnWorkerArgs;
use devices::DevicesArgs;
use diff::DiffArgs;
use enter_overlay::EnterOverlayArgs;
use estimate::EstimateGraphArgs;
use eval::EvalArgs;
use explain::ExplainArgs;
use export::ExportArgs;
use fit::FitArgs;
use inspect::InspectArgs;
use look::LookArgs;
use offload::OffloadArgs;
use plan::PlanArgs;
use profile::ProfileArgs;
use replay::ReplayArgs;
use report::ReportArgs;
use run::RunArgs;
use serve::ServeArgs;
use simulate::SimulateArgs;
use snapshot::SnapshotArgs;
use std::num::NonZeroUsize;
use submit::SubmitArgs;
use validate::ValidateArgs;

/// The exit code of a command, or the error that ends it.
pub(crate) type Outcome = Result<Exit, CliError>;

/// The options that `-h` shows, of commands that have more than a screen of them.
pub(crate) const SHORT_HELP: [(&str, &[&str]); 13] = [
    ("estimate", estimate::SHORT_HELP),
    ("profile", profile::SHORT_HELP),
    ("eval", eval::SHORT_HELP),
    ("fit", fit::SHORT_HELP),
    ("replay", replay::SHORT_HELP),
    ("check", check::SHORT_HELP),
    ("look", look::SHORT_HELP),
    ("diff", diff::SHORT_HELP),
    ("plan", plan::SHORT_HELP),
    ("offload", offload::SHORT_HELP),
    ("report", report::SHORT_HELP),
    ("simulate", simulate::SHORT_HELP),
    ("validate", validate::SHORT_HELP),
];

/// The explanations of the errors of each command.
pub(crate) const EXPLAINED: [&[Explanation]; 19] = [
    explain::ExplainFailure::EXPLAINED,
    replay::ReplayFailure::EXPLAINED,
    snapshot::EXPLAINED,
    diff::DiffFailure::EXPLAINED,
    report::ReportFailure::EXPLAINED,
    look::LookFailure::EXPLAINED,
    profile::ProfileFailure::EXPLAINED,
    profile::EXPLAINED,
    run::RunFailure::EXPLAINED,
    fit::FitFailure::EXPLAINED,
    estimate::EstimateGraphFailure::EXPLAINED,
    plan::PlanFailure::EXPLAINED,
    offload::OffloadFailure::EXPLAINED,
    simulate::SimulateFailure::EXPLAINED,
    check::CheckFailure::EXPLAINED,
    submit::SubmitFailure::EXPLAINED,
    serve::EXPLAINED,
    config::ConfigCommandFailure::EXPLAINED,
    eval::EvalFailure::EXPLAINED,
];

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
        xmem estimate model.pt2 --device a100-40g        the same from an exported graph, without running\n  \
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

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a training script without a GPU, and record a trace of it
    Profile(Box<ProfileArgs>),
    /// Write the graph of a training script, without running it to its end: torch.export's archive
    Export(Box<ExportArgs>),
    /// Find what makes a job fit on a GPU: the largest batch, and what to change
    Fit(Box<FitArgs>),
    /// Run a command with measures that lower its memory, or on a virtual GPU to the end of its memory
    Run(Box<RunArgs>),
    /// Estimate a job's GPU memory from a trace or a snapshot, and check whether it fits
    Replay(Box<ReplayArgs>),
    /// Estimate a job's GPU memory from the graph of its model, without running anything
    Estimate(Box<EstimateGraphArgs>),
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
    /// Judge estimators by many jobs: errors, failures and verdicts, as in the papers
    Eval(Box<EvalArgs>),
    /// List the known devices
    Devices(DevicesArgs),
    /// Show the settings of `xmem check`, and where each comes from
    Config(ConfigArgs),
    /// Explain an error by its code: the cause, an example and the fix
    Explain(ExplainArgs),
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

impl Cli {
    /// Runs the command.
    pub(crate) fn run(&self) -> Outcome {
        let global = &self.global;
        match &self.command {
            Command::Profile(args) => profile::run(args, global),
            Command::Export(args) => export::run(args, global),
            Command::Run(args) => run::run(args, global),
            Command::Fit(args) => fit::run(args, global),
            Command::Replay(args) => replay::run(args, global),
            Command::Estimate(args) => estimate::run(args, global),
            Command::Check(args) => check::run(args, global),
            Command::Submit(args) => submit::run(args, global),
            Command::Config(args) => config::run(args),
            Command::Serve(args) => serve::run(args),
            Command::Look(args) => look::run(args, global),
            Command::Diff(args) => diff::run(args, global),
            Command::Plan(args) => plan::run(args, global),
            Command::Report(args) => report::run(args, global),
            Command::Offload(args) => offload::run(args, global),
            Command::Simulate(args) => simulate::run(args, global),
            Command::Inspect(args) => inspect::run(args, global),
            Command::Snapshot(args) => snapshot::run(args, global),
            Command::Validate(args) => validate::run(args, global),
            Command::Eval(args) => eval::run(args, global),
            Command::Devices(args) => devices::run(args),
            Command::Explain(args) => explain::run(args),
            Command::Completions(args) => completions::run(args, crate::command()),
            Command::CudnnWorker(args) => cudnn_worker::run(args),
            Command::EnterOverlay(args) => Ok(enter_overlay::run(args)),
            Command::Man => man::run(crate::command()),
        }
    }
}

impl Command {
    /// The form of logs: those of a server are read by programs.
    pub(crate) fn log_format(&self) -> LogFormat {
        match self {
            Self::Serve(_) => LogFormat::Json,
            _ => LogFormat::Text,
        }
    }

    /// The options that are numbers of threads.
    pub(crate) fn thread_counts(&mut self) -> Vec<(&'static str, &mut Option<NonZeroUsize>)> {
        let reading = match self {
            Self::Replay(args) => {
                let (threads, jobs) = (&mut args.reading.threads, &mut args.many.jobs);
                return vec![("--threads", threads), ("--jobs", jobs)];
            }
            Self::Check(args) => &mut args.reading,
            Self::Look(args) => &mut args.reading,
            Self::Diff(args) => &mut args.reading,
            Self::Report(args) => &mut args.reading,
            Self::Plan(args) => &mut args.reading,
            Self::Offload(args) => &mut args.reading,
            Self::Inspect(args) => &mut args.reading,
            Self::Validate(args) => &mut args.reading,
            _ => return Vec::new(),
        };
        vec![("--threads", &mut reading.threads)]
    }
}
