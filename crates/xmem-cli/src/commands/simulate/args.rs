//! Arguments of `xmem simulate`.

use crate::allocator::AllocatorArgs;
use crate::choice::{choice, choices};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use xmem::Bytes;
use xmem_report::json::SegmentDetail;

/// The options that `-h` shows.
pub(crate) const SHORT_HELP: &[&str] =
    &["ops", "capacity", "torch", "alloc_conf", "allocator", "format", "output", "segments"];

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "The list is JSON: [{\"op\":\"alloc\",\"id\":1,\"size\":1048576}, {\"op\":\"free\",\"id\":1}], or an object\n\
        with such `ops` and any of conf, torch, env, capacity, total, address_order, events; the\n\
        allocator page of the guide lists all operations. With -v, text has one line per operation.\n\n\
        Examples:\n  \
        xmem simulate ops.json\n  \
        xmem simulate ops.json --capacity 12GiB --alloc-conf expandable_segments:True -v\n  \
        xmem simulate ops.json.zst --torch 2.6 --format json --segments every -o result.json\n  \
        my-generator | xmem simulate - --format jsonl --segments none\n\n\
        Exit code: 0 even if allocations failed, 2 usage error, 3 unreadable or not such a list."
)]
pub(crate) struct SimulateArgs {
    /// List of operations: JSON, plain or compressed with gzip or zstd; `-` for standard input
    #[arg(value_name = "OPS", value_hint = ValueHint::FilePath)]
    pub(crate) operations: PathBuf,
    /// Follow the plan of this file, as `xmem plan --export-hints` writes it: requests that are as large as
    /// planned get their planned address, the others are served by PyTorch's allocator. OPS may be a
    /// recording then, each iteration of which is a run
    #[arg(long, value_name = "HINTS", value_hint = ValueHint::FilePath, conflicts_with_all = ["capacity", "total", "segments"])]
    pub(crate) plan: Option<PathBuf>,
    /// Device memory available to the allocator, for example 12GiB (default: as in the list, else
    /// the total)
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = Bytes::of_device, help_heading = "Device")]
    pub(crate) capacity: Option<Bytes>,
    /// Total memory that the device reports (default: as in the list, else that of an A100 with 40
    /// GB)
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = Bytes::of_device, help_heading = "Device")]
    pub(crate) total: Option<Bytes>,
    #[command(flatten)]
    pub(crate) allocator: AllocatorArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = SimulateFormat::Text, help_heading = "Answer")]
    pub(crate) format: SimulateFormat,
    /// Write the answer to a file, atomically
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Answer")]
    pub(crate) output: Option<PathBuf>,
    /// With json and jsonl: operations after which the segments are listed, block by block (default:
    /// end)
    #[arg(long, value_name = "WHEN", value_parser = choice::<SegmentDetail>(), help_heading = "Answer")]
    pub(crate) segments: Option<SegmentDetail>,
    /// Reject lists with more text than this (default: 1GiB, and 250 times the size of a compressed
    /// file)
    #[arg(
        long,
        value_name = "SIZE",
        allow_negative_numbers = true,
        alias = "inflate-limit",
        help_heading = "Reading"
    )]
    pub(crate) max_input: Option<Bytes>,
}

/// The output format of an answer about many operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimulateFormat {
    /// Human-readable
    Text,
    /// One document
    Json,
    /// One document per line, for each operation
    Jsonl,
}

choices! {
    SegmentDetail {
        Every => PossibleValue::new("every").help("After every operation"),
        End => PossibleValue::new("end").help("After the last operation"),
        None => PossibleValue::new("none").help("Never"),
    }
}
