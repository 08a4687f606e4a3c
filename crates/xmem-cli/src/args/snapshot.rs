//! `xmem snapshot`.

use super::{Order, PlainFormat};
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;
use xmem::{Bytes, TorchVersion};

#[derive(Debug, Args)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct SnapshotArgs {
    #[command(subcommand)]
    pub(crate) command: SnapshotCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Show what is in a memory snapshot: segments, blocks, history, the largest blocks in use
    Info(SnapshotInfoArgs),
    /// Run the recorded requests again through the simulator, and compare it with PyTorch
    Replay(Box<SnapshotReplayArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotFile {
    /// Memory snapshot: a pickle of torch.cuda.memory._dump_snapshot, plain or compressed with
    /// gzip or zstd; `-` is standard input
    #[arg(value_name = "SNAPSHOT", value_hint = ValueHint::FilePath)]
    pub(crate) snapshot: PathBuf,
    /// Refuse snapshots that need more memory than this to be read
    #[arg(long, value_name = "SIZE", default_value = "8GiB", help_heading = "Reading")]
    pub(crate) memory_limit: Bytes,
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
    /// How many of the largest blocks to list
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        xmem snapshot replay snapshot.pickle\n  \
        xmem snapshot replay snapshot.pickle --address-order asc   do addresses matter?\n  \
        xmem snapshot replay snapshot.pickle --alloc-conf max_split_size_mb:128\n  \
        xmem snapshot replay snapshot.pickle --capacity 20GiB      would it have run in this?\n\n\
        Exit code: 0 the simulator did what PyTorch did, 1 it did not, 2 wrong usage,\n\
        3 unreadable, or a snapshot without history"
)]
pub(crate) struct SnapshotReplayArgs {
    #[command(flatten)]
    pub(crate) file: SnapshotFile,
    /// Which of the recorded devices
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) device_index: u32,
    /// PyTorch version, like 2.6 (default: the newest that writes such snapshots)
    #[arg(long, value_name = "VERSION", value_parser = str::parse::<TorchVersion>)]
    pub(crate) torch: Option<TorchVersion>,
    /// Options as in PYTORCH_CUDA_ALLOC_CONF (default: those in the snapshot); '' for none
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    pub(crate) alloc_conf: Option<String>,
    /// Addresses of new segments, which decide between free blocks of equal size
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = Order::Recorded)]
    pub(crate) address_order: Order,
    /// Device memory for the allocator (default: the device refuses where it was seen to)
    #[arg(long, value_name = "SIZE")]
    pub(crate) capacity: Option<Bytes>,
    /// The program called torch.cuda.set_per_process_memory_fraction with this, from 0 to 1
    #[arg(long, value_name = "FRACTION", requires = "capacity", value_parser = super::fraction)]
    pub(crate) memory_fraction: Option<f64>,
    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}
