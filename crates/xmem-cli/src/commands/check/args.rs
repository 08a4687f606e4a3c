//! Arguments of `xmem check`.

use crate::config::SettingsArgs;
use crate::device::DeviceArgs;
use crate::estimate::EstimateArgs;
use crate::reading::ReadingArgs;
use crate::values::share_or_size;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use xmem_gate::{LawValue, Margin, Policy};

/// The options that `-h` shows.
pub(crate) const SHORT_HELP: &[&str] = &[
    "traces",
    "device",
    "capacity",
    "request",
    "slurm_job",
    "k8s",
    "margin",
    "policy",
    "format",
    "output",
    "baseline",
    "site",
];

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        xmem check trace.json.zst --device a100-40g --margin 5%\n  \
        xmem check trace.json.zst --request gres/gpu:a100:1\n  \
        xmem check --slurm-job train.sh\n  \
        xmem check trace.json.zst --k8s job.yaml --write\n  \
        xmem check runs --device l4-24g --baseline .xmem/baseline.json --update-baseline\n  \
        xmem check runs --device l4-24g --baseline .xmem/baseline.json --tolerance 1%\n  \
        xmem check runs --device l4-24g --format github\n  \
        xmem check train.law.json --at batch=64 --device t4-16g\n\n\
        Decisions: fits, over-requested (a smaller device of the site is enough), tight (it may run out of\n\
        memory, or needs the margin), does not fit, no verdict.\n\n\
        Exit code: 0 fits, over-requested or tight, 1 does not fit or needs more than its baseline, 2 usage\n\
        error, 3 unreadable or not a trace, 4 no verdict. With several traces the worst one decides: 3, then\n\
        2, 1, 4, 0. With --policy off or warn, and with --format slurm: 0 for every decision."
)]
pub(crate) struct CheckArgs {
    /// Trace files, one for each rank or job: JSON, plain or compressed with gzip or zstd; `-` for standard
    /// input. Also a folder, a glob pattern, or @FILE with one path per line
    #[arg(value_name = "TRACE", value_hint = ValueHint::AnyPath)]
    pub(crate) traces: Vec<PathBuf>,
    /// The value of the number in a law (`xmem fit --law` writes one), which then stands for a trace
    #[arg(long, value_name = "NAME=VALUE", value_parser = at)]
    pub(crate) at: Option<LawValue>,
    /// Treat each TRACE as a literal path (no folders, globs, lists or stdin)
    #[arg(long, help_heading = "Reading")]
    pub(crate) literal_paths: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    #[command(flatten)]
    pub(crate) decision: DecisionArgs,
    #[command(flatten)]
    pub(crate) baseline: BaselineArgs,
    #[command(flatten)]
    pub(crate) estimate: EstimateArgs,
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

fn at(text: &str) -> Result<LawValue, String> {
    text.parse().map_err(|()| "expected a name and a number, for example batch=64".to_owned())
}

/// What the job asks of a cluster.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request, instead of a device")]
pub(crate) struct RequestArgs {
    /// GPUs as Slurm's options or TRES write them: gpu:a100:2, gres/gpu:a100=2, a100:2
    #[arg(long, value_name = "GPUS", conflicts_with_all = ["device", "device_file", "capacity"])]
    pub(crate) request: Option<String>,
    /// Features of nodes, as in Slurm's --constraint, for example a100&nvlink
    #[arg(long, value_name = "FEATURES", requires = "request")]
    pub(crate) constraint: Option<String>,
    /// Partitions in which the job may start, for example gpu,debug
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) partition: Vec<String>,
    /// A job script: GPUs from its #SBATCH lines, traces from its #XMEM lines
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["device", "device_file", "capacity", "request"])]
    pub(crate) slurm_job: Option<PathBuf>,
    /// The options of a submission as JSON, `-` for standard input: what contrib/slurm/cli_filter.lua passes
    #[arg(long, value_name = "FILE", hide_short_help = true, value_hint = ValueHint::FilePath,
          conflicts_with_all = ["device", "device_file", "capacity", "request", "slurm_job", "traces"])]
    pub(crate) slurm_options: Option<PathBuf>,
    /// A manifest of Kubernetes (YAML or JSON): the GPUs that its pods ask for
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "traces",
          conflicts_with_all = ["device", "device_file", "capacity", "request", "slurm_job", "slurm_options"])]
    pub(crate) k8s: Option<PathBuf>,
    /// The namespace whose rules of the site count (default: that of the manifest, else `default`)
    #[arg(long, value_name = "NAME", requires = "k8s",
          conflicts_with_all = ["device", "device_file", "capacity", "request", "slurm_job", "slurm_options"])]
    pub(crate) namespace: Option<String>,
    /// Write what the job needs into the manifest: annotations of its pod templates, nothing else
    #[arg(long, requires = "k8s",
          conflicts_with_all = ["device", "device_file", "capacity", "request", "slurm_job", "slurm_options"])]
    pub(crate) write: bool,
}

/// What is decided, and how it is said.
#[derive(Debug, Args)]
#[command(next_help_heading = "Decision")]
pub(crate) struct DecisionArgs {
    /// Device memory that is to stay free: a share such as 5%, or a size such as 2GiB
    #[arg(long, value_name = "MARGIN", value_parser = share_or_size::<Margin>)]
    pub(crate) margin: Option<Margin>,
    /// What follows for a job that does not fit: off and warn exit with 0
    #[arg(long, value_name = "POLICY", value_parser = str::parse::<Policy>)]
    pub(crate) policy: Option<Policy>,
    /// Withhold the verdict at any doubt about the integrity of a trace, not only if it is damaged
    #[arg(long)]
    pub(crate) strict: bool,
    /// Withhold the verdict for a job that fits, as far as it was recorded, if its script was not recorded to its end: what
    /// it does later, such as an evaluation, may need more
    #[arg(long)]
    pub(crate) require_coverage: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = CheckFormat::Text)]
    pub(crate) format: CheckFormat,
    /// Write the answer to a file, atomically
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// The comparison with an earlier commit.
#[derive(Debug, Args)]
#[command(next_help_heading = "Baseline")]
pub(crate) struct BaselineArgs {
    /// Compare the peaks with those in this file, and exit with 1 if one grew
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) baseline: Option<PathBuf>,
    /// Growth that is accepted: a share such as 1%, or a size
    #[arg(long, value_name = "TOLERANCE", value_parser = share_or_size::<Margin>)]
    pub(crate) tolerance: Option<Margin>,
    /// Write the peaks into the file of --baseline instead; those of other traces stay
    #[arg(long)]
    pub(crate) update_baseline: bool,
}

/// Answers that are kept.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cache")]
pub(crate) struct CacheArgs {
    /// Read and replay every trace, whatever is kept
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Take a trace of the same path, size and modification time for the same trace, without reading it.
    /// For your own convenience: whoever writes the file can set its time
    #[arg(long, conflicts_with = "no_cache")]
    pub(crate) trust_mtime: bool,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// Human-readable
    Text,
    /// One document; for several traces an array
    Json,
    /// Workflow commands of GitHub Actions: annotations of the run
    Github,
    /// A table with details, for a summary or a comment
    Markdown,
    /// JUnit's XML
    Junit,
    /// The memory in MiB that the job needs on each GPU, with the margin: nvidia.com/gpumem of a vGPU
    Gpumem,
    /// A ResourceClaimTemplate of Kubernetes for GPUs with that much memory
    Dra,
    /// The resources of a SkyPilot task: the GPUs on which it fits, among all or those of --device
    Skypilot,
    /// Lines of key=value for contrib/slurm/cli_filter.lua. Errors are lines, too: the job is let through
    Slurm,
}
