//! PyTorch's CUDA memory snapshots, read without Python and without trust.
//!
//! `torch.cuda.memory._dump_snapshot` writes a pickle: segments and blocks as they are at that
//! moment, and, if `_record_memory_history` was on, every event before. A pickle is a program; the
//! machine here knows only the instructions that build plain data, and refuses, by name and byte
//! offset, whatever would load or call Python code.
//!
//! Reading has two steps: `pickle` turns bytes into an arena in which a value that the file mentions
//! a thousand times exists once; `schema` turns the arena into the [`Snapshot`]. What happened on a
//! device, as requests for an allocator to replay, is [`Snapshot::requests`].
//!
//! Left to others: replaying, comparing, drawing, and opening files: bytes come in.
#![forbid(unsafe_code)]

mod budget;
mod error;
mod frames;
mod history;
mod model;
mod pickle;
mod schema;
mod settings;

pub use budget::Limits;
pub use error::SnapshotError;
pub use frames::{Frame, FrameId, FrameTable, StackId};
pub use history::{Course, DeviceUsage, RecordedRequests};
pub use model::{
    Action, Annotation, AnnotationStage, Block, BlockState, DeviceIndex, EntryIndex, PoolId,
    Segment, SegmentKind, Snapshot, StreamHandle, TraceEntry,
};
pub use settings::{AllocatorSettings, Setting};

use xmem_types::Diagnostics;

/// Reads a memory snapshot: the bytes of an uncompressed pickle, protocol 2 to 5, as written by
/// `torch.cuda.memory._dump_snapshot` (torch/cuda/memory.py) or by the C++ pickler of
/// `_memory_snapshot_pickled` (torch/csrc/cuda/memory_snapshot.cpp), of any PyTorch version.
///
/// What is odd but readable (unknown keys, blocks that do not fill their segment) is told in the
/// diagnostics.
///
/// # Errors
/// [`SnapshotError`] if the bytes are no pickle, are cut off or malformed, hold an instruction that
/// a snapshot does not need, describe something else than a snapshot, or exceed `limits`.
pub fn read(bytes: &[u8], limits: &Limits) -> Result<(Snapshot, Diagnostics), SnapshotError> {
    let mut budget = budget::Budget::new(limits);
    let tree = pickle::read(bytes, limits, &mut budget)?;
    schema::decode(&tree, &mut budget)
}
