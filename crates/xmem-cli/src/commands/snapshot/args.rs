//! Arguments of `xmem snapshot`.

use crate::choice::choice;
use crate::format::PlainFormat;
use crate::values::share;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;
use xmem::simulator::AddressOrder;
use xmem::{Bytes, TorchVersion};

#[derive(Debug, Args)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct SnapshotArgs {
    #[command(subcommand)]
    pub(crate) command: SnapshotCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Show the contents of a memory snapshot: segments, blocks, history, the largest blocks in use
    Info(SnapshotInfoArgs),
    /// Replay the recorded requests through the simulator, and compare the result with PyTorch's
    Replay(Box<SnapshotReplayArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotFile {
    /// Memory snapshot: a pickle of torch.cuda.memory._dump_snapshot, plain or compressed with
    /// gzip or zstd; `-` for standard input
    #[arg(value_name = "SNAPSHOT", value_hint = ValueHint::FilePath)]
    pub(crate) snapshot: PathBuf,
    /// Reject snapshots that need more memory than this to be read (default: 8GiB, and 250 times the
    /// size of a compressed file)
    #[arg(
        long,
        value_name = "SIZE",
        allow_negative_numbers = true,
        alias = "memory-limit",
        help_heading = "Reading"
    )]
    pub(crate) max_input: Option<Bytes>,
}

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  xmem snapshot info snapshot.pickle\n  \
        xmem snapshot info snapshot.pickle.gz --format json | jq '.devices[0].segments'"
)]
pub(crate) struct SnapshotInfoArgs {
    #[command(flatten)]
    pub(crate) file: SnapshotFile,
    /// Number of the largest blocks to list
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 10)]
    pub(crate) top: usize,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        xmem snapshot replay snapshot.pickle\n  \
        xmem snapshot replay snapshot.pickle --address-order asc   does the address order matter?\n  \
        xmem snapshot replay snapshot.pickle --alloc-conf max_split_size_mb:128\n  \
        xmem snapshot replay snapshot.pickle --capacity 20GiB      does the run fit into 20 GiB?\n\n\
        Exit code: 0 the simulator did the same as PyTorch, 1 it did not, 2 usage error, 3 unreadable,\n\
        or a snapshot without history, 4 nothing was replayed, or the snapshot contradicts itself"
)]
pub(crate) struct SnapshotReplayArgs {
    #[command(flatten)]
    pub(crate) file: SnapshotFile,
    /// Index of the recorded device
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 0)]
    pub(crate) device_index: u32,
    /// PyTorch version, for example 2.6 (default: the newest that writes such snapshots)
    #[arg(long, value_name = "VERSION", value_parser = str::parse::<TorchVersion>)]
    pub(crate) torch: Option<TorchVersion>,
    /// Options as in PYTORCH_CUDA_ALLOC_CONF (default: the options in the snapshot); '' for none
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    pub(crate) alloc_conf: Option<String>,
    /// Order of the addresses of new segments, which decides between free blocks of equal size
    #[arg(long, value_name = "ORDER", value_parser = choice::<AddressOrder>(), default_value = "recorded")]
    pub(crate) address_order: AddressOrder,
    /// Device memory available to the allocator (default: requests fail where they failed in the
    /// recording)
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = Bytes::of_device)]
    pub(crate) capacity: Option<Bytes>,
    /// Value that the program passed to torch.cuda.set_per_process_memory_fraction, from 0 to 1
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true, requires = "capacity", value_parser = share)]
    pub(crate) memory_fraction: Option<f64>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}
