//! Arguments of `xmem report`.

use crate::choice::{choice, choices};
use crate::commands::offload::policy;
use crate::device::{self, DeviceArgs};
use crate::estimate::EstimateArgs;
use crate::reading::ReadingArgs;
use crate::values::{Offered, Selection};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use xmem::predict::BlockKey;
use xmem::{Bytes, Iterations};
use xmem_studies::offloading::PolicyChoice;
use xmem_view::{RunTable, SvgView};

/// The options that `-h` shows.
pub(crate) const SHORT_HELP: &[&str] = &[
    "traces",
    "device",
    "capacity",
    "format",
    "by",
    "view",
    "output",
    "open",
    "plan",
    "offload",
    "alloc_conf",
];

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        xmem report trace.json.gz --device a100-40g -o report.html --open\n  \
        xmem report before.json.gz after.json.gz -o compared.html\n  \
        xmem report trace.json.gz --device t4-16g --device l4-24g -o devices.html\n  \
        xmem report trace.json.gz --device t4-16g --plan --offload all -o plans.html\n  \
        xmem report trace.json.gz --format folded | flamegraph.pl --countname bytes > peak.svg\n  \
        xmem report trace.json.gz --format folded --by module -o peak.folded\n  \
        xmem report trace.json.gz --format perfetto -o run.pftrace\n  \
        xmem report trace.json.gz --format svg --view both -o run.svg\n  \
        xmem report trace.json.gz --format parquet --table blocks -o blocks.parquet\n\n\
        Exit code: 0 written, 2 usage error, 3 unreadable or not a trace, 4 the recording is damaged."
)]
pub(crate) struct ReportArgs {
    /// Traces, or memory snapshots of a GPU, plain or compressed with gzip or zstd; `-` for standard input. Several
    /// are compared on one page
    #[arg(value_name = "TRACE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) picture: PictureArgs,
    #[command(flatten)]
    pub(crate) device: ReportDeviceArgs,
    #[command(flatten)]
    pub(crate) estimate: EstimateArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

/// The devices of a report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device")]
pub(crate) struct ReportDeviceArgs {
    /// A known GPU, for example a100-40g or rtx3060-12g; `xmem devices` lists them. A page shows several: --device NAME
    /// for each [default: a100-40g]
    #[arg(short, long, value_name = "NAME", value_parser = Offered::new(device::offered), hide_possible_values = true)]
    pub(crate) device: Vec<String>,
    /// A file that describes a GPU
    #[arg(long, value_name = "FILE", conflicts_with = "device", value_hint = ValueHint::FilePath)]
    pub(crate) device_file: Option<PathBuf>,
    /// Total device memory, for example 24GiB; replaces the capacity of --device or --device-file
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = Bytes::of_device, visible_alias = "budget")]
    pub(crate) capacity: Option<Bytes>,
}

impl ReportDeviceArgs {
    /// The choice of the device that is named first, or of none.
    pub(crate) fn first(&self) -> DeviceArgs {
        self.with(self.device.first())
    }

    /// The choice of each further device.
    pub(crate) fn others(&self) -> impl Iterator<Item = DeviceArgs> + '_ {
        self.device.iter().skip(1).map(|name| self.with(Some(name)))
    }

    fn with(&self, device: Option<&String>) -> DeviceArgs {
        let device_file = self.device_file.clone();
        DeviceArgs { device: device.cloned(), device_file, capacity: self.capacity }
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Report")]
pub(crate) struct PictureArgs {
    /// Output format; by default that of the file's ending, else html
    #[arg(short, long, value_enum)]
    pub(crate) format: Option<ReportFormat>,
    /// Property that blocks are grouped by, in folded and svg; the default is stack for folded stacks, role for the timeline,
    /// and module for the treemap
    #[arg(long, value_name = "KEY", value_parser = choice::<BlockKey>())]
    pub(crate) by: Option<BlockKey>,
    /// The picture of --format svg
    #[arg(long, value_name = "VIEW", value_parser = choice::<SvgView>(), default_value = "timeline")]
    pub(crate) view: SvgView,
    /// The table of --format parquet and jsonl
    #[arg(long, value_name = "TABLE", value_parser = choice::<RunTable>(), default_value = "blocks")]
    pub(crate) table: RunTable,
    /// Write to a file, atomically
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Open the file that was written in a browser
    #[arg(long, requires = "output")]
    pub(crate) open: bool,
    /// Plan an iteration statically, and show the plan beside what the allocator does with the same blocks
    #[arg(long)]
    pub(crate) plan: bool,
    /// Simulate offloading policies on the last iteration, and show the memory of each over time: all, or names of none,
    /// serial, vdnn-conv, vdnn-all, vdnn-dyn, superneurons, dymem, save-on-cpu, offload-activations, checkpoint,
    /// host-optimizer
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = policy)]
    pub(crate) offload: Vec<Selection<PolicyChoice>>,
    /// Show the same recordings on this device as well; may be given several times
    #[arg(long, value_name = "NAME", value_parser = Offered::new(device::offered), hide_possible_values = true)]
    pub(crate) against_device: Vec<String>,
    /// Show the same recordings with these allocator options as well (as --alloc-conf); may be given several times
    #[arg(long, value_name = "OPTIONS")]
    pub(crate) against_alloc_conf: Vec<String>,
    /// Only these iterations: N for the first N, or A..B (counted from 0, B excluded)
    #[arg(long, value_name = "RANGE")]
    pub(crate) iterations: Option<Iterations>,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// One HTML page that needs nothing else: overview, timeline, allocator, peak, rules, comparison
    Html,
    /// Folded stacks of the memory at the peak, for flame graphs
    Folded,
    /// Memory over time with operators and modules, for Perfetto (https://ui.perfetto.dev)
    Perfetto,
    /// Memory at the peak and all allocations as stacks, for speedscope (https://www.speedscope.app)
    Speedscope,
    /// Picture for a README or a pull request, light or dark as the reader's system is
    Svg,
    /// Table for data frames (pandas, polars, DuckDB)
    Parquet,
    /// The same table as JSON, a line a row
    Jsonl,
}

choices! {
    BlockKey by name {
        Role => "Parameter, activation, gradient, ...",
        Module => "Module path",
        Line => "Python line of the allocation",
        Op => "Innermost operator",
        Stack => "All operators around the allocation, and its line",
        Size => "Size, by powers of two",
    }
}

choices! {
    SvgView {
        Timeline => PossibleValue::new("timeline").help("Memory over time"),
        Treemap => PossibleValue::new("treemap").help("The memory at the peak, as rectangles"),
        Both => PossibleValue::new("both").help("One above the other"),
    }
}

choices! {
    RunTable {
        Blocks => PossibleValue::new("blocks").help("One row for each block"),
        Moments => PossibleValue::new("moments")
            .help("One row for each allocation and each free: the figures after it"),
        Segments => PossibleValue::new("segments").help("One row for each segment of the allocator"),
    }
}
