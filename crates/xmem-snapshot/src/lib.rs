//! PyTorch's CUDA memory snapshots, read without Python and without trust, and written so that
//! PyTorch's own tools open them.
//!
//! `torch.cuda.memory._dump_snapshot` writes a pickle: segments and blocks as they are at that
//! moment, and, if `_record_memory_history` was on, every event before. A pickle is a program; the
//! machine here knows only the instructions that build plain data, and refuses, by name and byte
//! offset, whatever would load or call Python code.
//!
//! Reading has two steps: `pickle` turns bytes into an arena in which a value that the file
//! mentions a thousand times exists once; `schema` turns the arena into the [`Snapshot`]. What
//! happened on a device, as requests for an allocator to replay, is [`Snapshot::requests`].
//!
//! Writing goes straight from a [`Snapshot`], read or made by a program, to the pickle.
//!
//! Left to others: replaying, comparing, drawing, and opening files: bytes come in.
#![forbid(unsafe_code)]

mod budget;
mod build;
mod doubts;
mod equality;
mod error;
mod frames;
mod history;
mod inflate;
mod model;
mod pickle;
pub mod predicted;
mod releases;
mod schema;
mod settings;
mod site;
mod steps;
mod structure;
mod writing;

pub use budget::Limits;
pub use error::{Compression, SnapshotError};
pub use frames::{Frame, FrameId, FrameTable, StackId};
pub use history::{DeviceUsage, RecordedRequests, Usage};
pub use inflate::is_pickle;
pub use model::{
    Action, Annotation, AnnotationStage, BlockState, DeviceIndex, EntryIndex, PoolId, Segment,
    SegmentKind, Snapshot, SnapshotBlock, StreamHandle, TraceEntry,
};
pub use predicted::Purpose;
pub use settings::{AllocatorSettings, Setting};
pub use site::{CallPart, Site};
pub use steps::{DeviceAnswer, HistoryStep, ReleaseChoice, Reuse, StepKind};
pub use structure::Structure;

use std::io;
use xmem_types::Diagnostics;

/// Reads a memory snapshot: the bytes of a pickle, protocol 2 to 5, as written by
/// `torch.cuda.memory._dump_snapshot` (torch/cuda/memory.py) or by the C++ pickler of
/// `_memory_snapshot_pickled` (torch/csrc/cuda/memory_snapshot.cpp), of any PyTorch version; as it
/// is, or compressed with gzip or zstd, distinguished by content.
///
/// An oddity that is readable (unknown keys, blocks that do not fill their segment) is returned in
/// the diagnostics.
///
/// # Errors
/// [`SnapshotError`] if the bytes are no pickle, are cut off, damaged or malformed, hold an
/// instruction that a snapshot does not need, describe something else than a snapshot, or exceed
/// `limits`.
pub fn read(bytes: &[u8], limits: &Limits) -> Result<(Snapshot, Diagnostics), SnapshotError> {
    let mut budget = budget::Budget::new(limits);
    let pickle = inflate::inflate(bytes, &mut budget)?;
    let tree = pickle::read(&pickle, limits, &mut budget)?;
    schema::decode(&tree, &mut budget)
}

/// Writes a memory snapshot as a pickle of protocol 4, which `torch/cuda/_memory_viz.py`, the
/// memory_viz page and [`read`] open.
///
/// A shared value is written once; the same snapshot gives the same bytes. Times are written in
/// microseconds, rounded down. An [`Action::Other`] with the name of a known action, and a compile
/// context of `N/A`, are what they look like to a reader.
///
/// ```
/// use xmem_snapshot::{
///     Action, SnapshotBlock, BlockState, DeviceIndex, Segment, SegmentKind, Snapshot, TraceEntry, write,
/// };
/// use xmem_types::{Addr, Bytes};
///
/// let mut snapshot = Snapshot::default();
/// let frame = snapshot.frame("aten::addmm", "nn.Module: Linear_0", 0);
/// let stack = snapshot.stack(&[frame]);
/// let (device, address) = (DeviceIndex(0), Addr(0x7f00_0000_0000));
/// for (action, size) in [(Action::SegmentAlloc, 2 << 20), (Action::Alloc, 1000)] {
///     let entry = TraceEntry::new(action, address, Bytes(size));
///     snapshot.record(device, TraceEntry { stack, ..entry });
/// }
/// let used = SnapshotBlock {
///     address,
///     size: Bytes(1024),
///     requested: Some(Bytes(1000)),
///     state: BlockState::ActiveAllocated,
///     stack,
/// };
/// let free = SnapshotBlock {
///     address: Addr(address.0 + 1024),
///     size: Bytes((2 << 20) - 1024),
///     state: BlockState::Inactive,
///     ..used
/// };
/// snapshot.segments.push(Segment::new(device, address, SegmentKind::Small, vec![used, free]));
///
/// let mut file = Vec::new();
/// write(&snapshot, &mut file)?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The error of `to`; [`io::ErrorKind::InvalidInput`] for a text of 4 GiB or more.
///
/// # Panics
/// If the snapshot holds ids that are not from its own tables.
pub fn write(snapshot: &Snapshot, to: impl io::Write) -> io::Result<()> {
    writing::write(snapshot, io::BufWriter::new(to))
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
