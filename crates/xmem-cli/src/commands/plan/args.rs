//! Arguments of `xmem plan`.

use crate::choice::{choice, choices};
use crate::device::PlanDeviceArgs;
use crate::estimate::EstimateArgs;
use crate::reading::ReadingArgs;
use crate::values::{Selection, count, duration, selection};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;
use xmem_studies::planner::Planner;
use xmem_studies::planning::{DnnMemPolicies, Interruption, PlanScope};

/// The options that `-h` shows.
pub(crate) const SHORT_HELP: &[&str] =
    &["input", "planner", "scope", "time", "format", "output", "svg", "against", "device"];

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "A table is CSV with the columns id,lower,upper,size: half-open lifetimes, in the format of minimalloc.\n\n\
        Examples:\n  \
        xmem plan trace.json.gz                              one iteration: what a plan would save\n  \
        xmem plan trace.json.gz --scope all --planner all    every block, with every planner\n  \
        xmem plan ops.json --planner bestfit,exact --time 30s\n  \
        xmem plan A.1048576.csv --format json --offsets -o plan.json\n  \
        xmem plan trace.json.gz --against other.json.gz       does another run follow the plan?\n  \
        xmem plan trace.json.gz --interrupt 'aten::*dropout*'  without the memory of some operators\n  \
        xmem plan trace.json.gz --svg heap.svg --series fragmentation.csv\n\n\
        Exit code: 0 planned, 2 usage error, 3 unreadable or nothing to plan, 4 the recording is damaged."
)]
pub(crate) struct PlanArgs {
    /// Recording (a trace or a memory snapshot with history), list of operations (as of `xmem
    /// simulate`) or table of blocks (CSV), plain or compressed with gzip or zstd; `-` for standard
    /// input
    #[arg(value_name = "INPUT", value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) planning: PlanningArgs,
    #[command(flatten)]
    pub(crate) answer: PlanAnswerArgs,
    #[command(flatten)]
    pub(crate) device: PlanDeviceArgs,
    #[command(flatten)]
    pub(crate) estimate: EstimateArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Planning")]
pub(crate) struct PlanningArgs {
    /// Planners: auto, all, or names, for example bestfit,exact
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "auto", value_parser = planner)]
    pub(crate) planner: Vec<Selection<Planner>>,
    /// Blocks of a recording that are planned
    #[arg(long, value_name = "SCOPE", value_parser = choice::<PlanScope>(), default_value = "iteration")]
    pub(crate) scope: PlanScope,
    /// Leave requests out of the plan that change from run to run, and let the allocator serve them: START..END
    /// (ticks), a phase (data, forward, backward, zero_grad, optimizer_step), or the name of an operator, in which `*`
    /// stands for any characters
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    pub(crate) interrupt: Vec<Interruption>,
    /// When the tensors of a category of DNNMem's estimate are allocated and released; weights=start:exit and demand:death
    /// for all others unless given, for example weight_gradients=start:exit
    #[arg(long, value_name = "CATEGORY=start|demand[:exit|death],...", value_delimiter = ',')]
    pub(crate) dnnmem: Vec<DnnMemPolicies>,
    /// Time that each planner may search, for example 5s or 2m
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) time: Duration,
    /// Steps that each planner may search: the same plans on every machine, if the time is enough
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count::<u64>)]
    pub(crate) nodes: Option<u64>,
    /// Seed of planners that try orders at random
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Answer")]
pub(crate) struct PlanAnswerArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = PlanFormat::Text)]
    pub(crate) format: PlanFormat,
    /// Write the answer to a file, atomically
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// With json: list the blocks, and the offset of each in each plan
    #[arg(long)]
    pub(crate) offsets: bool,
    /// Draw heap maps as SVG: the best plan and the allocator side by side
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) svg: Option<PathBuf>,
    /// Write the best plan as hints for an allocator: the offset of each request by its ordinal (JSON)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) export_hints: Option<PathBuf>,
    /// Let the iterations of another recording, or another list, follow the best plan, and show what is
    /// planned again
    #[arg(long, value_name = "INPUT", value_hint = ValueHint::FilePath)]
    pub(crate) against: Option<PathBuf>,
    /// Write fragmentation over time as CSV: the best plan and the allocators
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) series: Option<PathBuf>,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    /// Human-readable
    Text,
    /// One indented document
    Json,
    /// The heap map of the best plan: one row for each block
    Csv,
}

choices! {
    PlanScope {
        Iteration => PossibleValue::new("iteration").help("What one iteration makes and frees"),
        All => PossibleValue::new("all").help("Every block"),
    }
}

/// Reads a value of `--planner`.
fn planner(name: &str) -> Result<Selection<Planner>, String> {
    selection(name, || Planner::names().collect::<Vec<_>>().join(", "))
}
