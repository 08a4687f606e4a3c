//! Runs `xmem snapshot`.

use super::args::{SnapshotArgs, SnapshotCommand, SnapshotInfoArgs, SnapshotReplayArgs};
use super::error::RerunFailure;
use crate::commands::Outcome;
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::PlainFormat;
use crate::global::{Global, Verbosity};
use crate::input::Kind;
use crate::reading::ReadingFailure;
use crate::{input, output, style};
use std::path::Path;
use xmem::Bytes;
use xmem::simulator::AddressOrder;
use xmem::types::{Diagnostics, InputLimits};
use xmem_eval::{
    Addresses, DeviceIndex, Limits, RerunOptions, RerunVerdict, Snapshot, SnapshotFacts,
};
use xmem_report::json::{self, SnapshotInfoDocument, SnapshotReplayDocument};
use xmem_report::text;

/// Runs the command.
pub(crate) fn run(args: &SnapshotArgs, global: &Global) -> Outcome {
    match &args.command {
        SnapshotCommand::Info(args) => info(args),
        SnapshotCommand::Replay(args) => replay(args, global),
    }
}

fn info(args: &SnapshotInfoArgs) -> Outcome {
    let (snapshot, notes) = read(&args.file.snapshot, args.file.max_input)?;
    let facts = SnapshotFacts::of(&snapshot, &notes, args.top);
    let name = input::name(&args.file.snapshot);
    let page = match args.format {
        PlainFormat::Json => json::pretty(&SnapshotInfoDocument::new(&name, &facts)),
        PlainFormat::Text => text::snapshot_info(&name, &facts, &style::of_output(None)),
    };
    output::write(page.as_bytes(), None)?;
    Ok(Exit::Fits)
}

fn replay(args: &SnapshotReplayArgs, global: &Global) -> Outcome {
    let (snapshot, _) = read(&args.file.snapshot, args.file.max_input)?;
    let name = input::name(&args.file.snapshot);
    let options = RerunOptions {
        device: DeviceIndex(args.device_index),
        torch: args.torch,
        conf: args.alloc_conf.clone(),
        addresses: match args.address_order {
            AddressOrder::Recorded => Addresses::Recorded,
            order => Addresses::Order(order),
        },
        capacity: args.capacity,
        memory_fraction: args.memory_fraction,
    };
    let rerun =
        xmem_eval::rerun(&snapshot, &options).map_err(|source| RerunFailure::new(&name, source))?;
    let style = style::of_output(None);
    let page = match (args.format, global.verbosity()) {
        (PlainFormat::Json, _) => json::pretty(&SnapshotReplayDocument::new(&name, &rerun)),
        (PlainFormat::Text, Verbosity::Quiet) => text::snapshot_replay_brief(&name, &rerun, &style),
        (PlainFormat::Text, _) => text::snapshot_replay(&name, &rerun, &style),
    };
    output::write(page.as_bytes(), None)?;
    Ok(match rerun.verdict() {
        RerunVerdict::Exact => Exit::Fits,
        RerunVerdict::Different => Exit::Differs,
        RerunVerdict::Withheld => Exit::Withheld,
    })
}

/// Reads a snapshot file, with diagnostics about odd content; `max` is the value of `--max-input`.
pub(crate) fn read(path: &Path, max: Option<Bytes>) -> Result<(Snapshot, Diagnostics), CliError> {
    let bytes = input::read_raw(path, Kind::Snapshot, max)?;
    let InputLimits { size, ratio } = Kind::Snapshot.limits(max);
    let limits = Limits { memory: size, ratio, ..Limits::default() };
    xmem_eval::read_snapshot(&bytes, &limits).map_err(|source| {
        ReadingFailure::Snapshot { path: path.to_owned(), source: Box::new(source) }.into()
    })
}
