//! The predicted run event by event: every block with its lifetime, address and origin, every segment, and the memory
//! after each request. What pictures of a run are made of.
//!
//! Left to others: the pictures (`xmem-view`).

mod left_out;
mod names;
mod run_log;
mod stacked;
mod tree;

pub use left_out::{MAX_LEFT_OUT, TimelineFailure, TimelineLeftOut};
pub use names::{PathId, TextId};
pub use stacked::{Stacked, StackedGroup};
pub use tree::TreeNode;

use names::Names;
use std::ops::Range;
use xmem_analyzer::{Phase, Role, ScriptPart};
use xmem_simulator::{PoolKind, PrivatePoolId};
use xmem_types::{Addr, BlockId, Bytes, IterationId, Nanos, StreamId};

/// The levels of names that are told apart, so that a damaged trace makes no tree of any depth.
const DEEPEST: usize = 256;

/// The memory of a predicted run. A moment is the state after one request of the program, an allocation or a free;
/// moments are numbered from 0, in program order.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The figures at each moment.
    pub moments: Vec<TimelineMoment>,
    /// The blocks, in the order of their allocation. Requests for no bytes have none.
    pub blocks: Vec<TimelineBlock>,
    /// The ranges of device memory that the allocator obtained, in that order; of expandable segments, each range that
    /// was mapped.
    pub segments: Vec<TimelineSegment>,
    /// The phases of the run, without gaps.
    pub phases: Vec<MomentSpan>,
    /// The moments among which the peaks are looked for.
    pub within: Range<u32>,
    /// The first moment of the highest allocated bytes.
    pub peak: u32,
    /// The first moment of the highest reserved bytes.
    pub reserved_peak: u32,
    /// The request that the device cannot serve, if there is one. Unless the timeline ends there, the rest is that of a
    /// device with space for all.
    pub out_of_memory: Option<u32>,
    /// What that request meets on the device.
    pub at_failure: Option<MemoryAtFailure>,
    /// The largest recorded blocks that each rule left out, [`MAX_LEFT_OUT`] at most, by rule and then by size.
    pub left_out: Vec<TimelineLeftOut>,
    /// The allocations that failed in the recorded job, in order: the run does not have them.
    pub failures: Vec<TimelineFailure>,
    names: Names,
}

/// The figures after a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimelineMoment {
    /// The time of the request in the trace; nanoseconds since its first event.
    pub time: Nanos,
    /// Bytes of blocks handed out.
    pub allocated: Bytes,
    /// The same with blocks that are freed and wait for another stream.
    pub active: Bytes,
    /// Bytes that the program requested, of blocks handed out.
    pub requested: Bytes,
    /// Bytes of segments.
    pub reserved: Bytes,
}

/// A block, from its allocation to the end of its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineBlock {
    /// Its number in the prediction.
    pub id: BlockId,
    /// Bytes that the program requests.
    pub requested: Bytes,
    /// Bytes that it occupies.
    pub size: Bytes,
    /// Its address.
    pub addr: Addr,
    /// The range that it lies in, by its row in [`Timeline::segments`]; none for an allocator without segments.
    pub segment: Option<u32>,
    /// The stream that it was requested on.
    pub stream: StreamId,
    /// The moment of its allocation.
    pub start: u32,
    /// The moment at which the program frees it; none if it does not.
    pub freed: Option<u32>,
    /// The moment at which its memory is free for others; later than `freed` if other streams use it.
    pub end: Option<u32>,
    /// The role.
    pub role: Role,
    /// The evidence for the role; empty where a rule added the block.
    pub evidence: &'static str,
    /// The rule that added, resized or retimed it.
    pub rule: Option<&'static str>,
    /// The bytes that were recorded on the CPU, if the block is from the recording.
    pub recorded: Option<Bytes>,
    /// Phase of its allocation.
    pub phase: Phase,
    /// Iteration of its allocation; none before the first.
    pub iteration: Option<IterationId>,
    /// Operators and annotations around the allocation, from the outermost in.
    pub path: PathId,
    /// The innermost operator; an empty text where unknown.
    pub op: TextId,
    /// Module path (`GPT2_0 > Block_3 > MLP_0`), or the name of a parameter; an empty text where unknown.
    pub module: TextId,
    /// Python line (`train.py(12): forward`); an empty text where unknown.
    pub line: TextId,
}

/// A range of device memory that an allocator holds for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineSegment {
    /// The start address.
    pub addr: Addr,
    /// Its size.
    pub size: Bytes,
    /// The stream whose requests it serves.
    pub stream: StreamId,
    /// The pool it belongs to.
    pub pool: PoolKind,
    /// The private pool it belongs to; none for the default ones.
    pub private_pool: Option<PrivatePoolId>,
    /// True if it is part of an expandable segment.
    pub expandable: bool,
    /// The moment of the request for which it was obtained.
    pub start: u32,
    /// The moment of the request during which it was released; none if it was not.
    pub end: Option<u32>,
}

/// The memory of a device that cannot serve a request, after the allocator has released what it could. On a device with
/// space for all, the same blocks may have other places
/// and sizes, and more segments are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryAtFailure {
    /// The blocks that are held or wait for another stream.
    pub blocks: Vec<HeldBlock>,
    /// The segments.
    pub segments: Vec<TimelineSegment>,
}

/// A block where it is on a device that cannot serve a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldBlock {
    /// Its row in [`Timeline::blocks`].
    pub row: u32,
    /// Its address.
    pub addr: Addr,
    /// Its size, which depends on the free piece that it was made of.
    pub size: Bytes,
}

/// Moments of one phase, or of one part of the script behind the recorded iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentSpan {
    /// The phase.
    pub phase: Phase,
    /// The part of the script, behind the recorded iterations.
    pub part: Option<ScriptPart>,
    /// The iteration; none before the first.
    pub iteration: Option<IterationId>,
    /// Its moments.
    pub moments: Range<u32>,
}

impl MomentSpan {
    /// The name of the part, else of the phase.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.part {
            Some(part) => part.name(),
            None => self.phase.name(),
        }
    }
}

/// What blocks are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKey {
    /// Their role.
    Role,
    /// Their module path.
    Module,
    /// The Python line of the allocation.
    Line,
    /// The innermost operator of the allocation.
    Op,
    /// All operators and annotations around the allocation, then the line.
    Stack,
    /// Their size, by powers of two.
    Size,
}

impl BlockKey {
    /// Every key.
    pub const ALL: [Self; 6] =
        [Self::Role, Self::Module, Self::Line, Self::Op, Self::Stack, Self::Size];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Role => "role",
            Self::Module => "module",
            Self::Line => "line",
            Self::Op => "op",
            Self::Stack => "stack",
            Self::Size => "size",
        }
    }
}

impl TimelineBlock {
    /// Returns whether the program holds the block at a moment: whether `allocated` counts it.
    #[must_use]
    pub fn is_allocated_at(&self, moment: u32) -> bool {
        self.start <= moment && self.freed.is_none_or(|freed| moment < freed)
    }
}

impl Timeline {
    /// A text.
    ///
    /// # Panics
    /// If it is of another timeline.
    #[must_use]
    pub fn text(&self, id: TextId) -> &str {
        self.names.text(id)
    }

    /// A path, from the outermost in.
    ///
    /// # Panics
    /// If it is of another timeline.
    #[must_use]
    pub fn path(&self, id: PathId) -> &[TextId] {
        self.names.path(id)
    }

    /// Every text, by number; the first is empty.
    #[must_use]
    pub fn texts(&self) -> &[String] {
        self.names.texts()
    }

    /// Every path, by number; the first is empty.
    #[must_use]
    pub fn paths(&self) -> &[Vec<TextId>] {
        self.names.paths()
    }

    /// The rows of the blocks that the program holds at a moment, in the order of their allocation.
    pub fn allocated_at(&self, moment: u32) -> impl Iterator<Item = usize> {
        let until = self.blocks.partition_point(|block| block.start <= moment);
        (0..until).filter(move |&row| self.blocks[row].is_allocated_at(moment))
    }

    /// A number that blocks with the same names by `key` share.
    fn group_by(block: &TimelineBlock, key: BlockKey) -> u64 {
        match key {
            BlockKey::Role => block.role as u64,
            BlockKey::Module => u64::from(block.module.0),
            BlockKey::Line => u64::from(block.line.0),
            BlockKey::Op => u64::from(block.op.0),
            BlockKey::Stack => u64::from(block.path.0) << 32 | u64::from(block.line.0),
            BlockKey::Size => u64::from(block.size.get().max(1).ilog2()),
        }
    }

    /// The names that a block has by `key`, from the outermost in, at most 256; none where it is not known.
    #[must_use]
    pub fn names(&self, block: &TimelineBlock, key: BlockKey) -> Vec<String> {
        let text = |id: TextId| self.text(id);
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        match key {
            BlockKey::Role => vec![block.role.name().to_owned()],
            BlockKey::Module => {
                text(block.module).split(" > ").take(DEEPEST).filter_map(known).collect()
            }
            BlockKey::Line => known(text(block.line)).into_iter().collect(),
            BlockKey::Op => known(text(block.op)).into_iter().collect(),
            BlockKey::Stack => {
                let path = self.path(block.path).iter().take(DEEPEST).map(|&id| text(id));
                path.chain([text(block.line)]).filter_map(known).collect()
            }
            BlockKey::Size => vec![size_class(block.size)],
        }
    }
}

/// `1 MiB to 2 MiB`: from a power of two to the next.
fn size_class(size: Bytes) -> String {
    let low = 1_u64 << size.get().max(1).ilog2();
    format!("{} to {}", Bytes(low), Bytes(low.saturating_mul(2)))
}
