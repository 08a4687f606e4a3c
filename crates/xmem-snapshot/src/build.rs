//! Making a snapshot: what a program that simulates an allocator needs.

use crate::frames::{Frame, FrameId, FrameTable, StackId};
use crate::model::{
    Action, BlockState, DeviceIndex, PoolId, Segment, SegmentKind, Snapshot, SnapshotBlock,
    StreamHandle, TraceEntry,
};
use xmem_types::{Addr, Bytes, Interner, StreamId, Sym};

impl Default for Snapshot {
    /// Nothing but the default stream.
    fn default() -> Self {
        Self {
            segments: Vec::new(),
            device_traces: Vec::new(),
            allocator_settings: None,
            annotations: Vec::new(),
            streams: vec![StreamHandle(0)],
            frames: FrameTable::default(),
            strings: Interner::default(),
        }
    }
}

impl Snapshot {
    /// The frame of a function; `line` counts from 1, 0 is unknown.
    ///
    /// The memory_viz page shows `filename:line:name`. It hides frames whose names or files are
    /// those of Python's and PyTorch's inner machinery (`_frame_filter` in
    /// torch/cuda/_memory_viz.py), as every name with `_start` in it.
    pub fn frame(&mut self, name: &str, filename: &str, line: u32) -> FrameId {
        let frame = Frame {
            name: self.strings.intern(name),
            filename: self.strings.intern(filename),
            line,
        };
        self.frames.intern_frame(frame)
    }

    /// The call stack of these frames, innermost first.
    pub fn stack(&mut self, frames: &[FrameId]) -> StackId {
        self.frames.intern_stack(frames)
    }

    /// The stream with this handle.
    pub fn stream(&mut self, handle: StreamHandle) -> StreamId {
        let known = self.streams.iter().position(|&known| known == handle);
        StreamId::new(known.unwrap_or_else(|| {
            self.streams.push(handle);
            self.streams.len() - 1
        }))
    }

    /// Adds what happened last on `device`.
    pub fn record(&mut self, device: DeviceIndex, entry: TraceEntry) {
        let device = device.0 as usize;
        if self.device_traces.len() <= device {
            self.device_traces.resize_with(device + 1, Vec::new);
        }
        self.device_traces[device].push(entry);
    }
}

impl Segment {
    /// A segment that these blocks fill, from `address` on, with the sums that follow from them;
    /// for the default stream and pool, not expandable, without stack.
    #[must_use]
    pub fn new(
        device: DeviceIndex,
        address: Addr,
        kind: SegmentKind,
        blocks: Vec<SnapshotBlock>,
    ) -> Self {
        Self {
            device,
            address,
            total: sum(&blocks, |_| true),
            allocated: sum(&blocks, |state| state == BlockState::ActiveAllocated),
            active: sum(&blocks, |state| state != BlockState::Inactive),
            requested: requested(&blocks),
            stream: StreamId(0),
            kind,
            pool: PoolId::default(),
            expandable: false,
            stack: StackId::EMPTY,
            blocks,
        }
    }
}

/// The sizes of the blocks in such a state.
pub(crate) fn sum(blocks: &[SnapshotBlock], which: impl Fn(BlockState) -> bool) -> Bytes {
    let sizes = blocks.iter().filter(|block| which(block.state)).map(|block| block.size.get());
    Bytes(sizes.fold(0, u64::saturating_add))
}

/// The size requested in active blocks, if it is known of all (`snapshot` in
/// c10/cuda/CUDACachingAllocator.cpp).
fn requested(blocks: &[SnapshotBlock]) -> Option<Bytes> {
    let mut active = blocks.iter().filter(|block| block.state != BlockState::Inactive);
    active.try_fold(Bytes::ZERO, |sum, block| {
        Some(Bytes(sum.get().saturating_add(block.requested?.get())))
    })
}

impl TraceEntry {
    /// An entry on the default stream, without time, stack and texts.
    #[must_use]
    pub const fn new(action: Action, addr: Addr, size: Bytes) -> Self {
        Self {
            action,
            addr,
            size,
            stream: StreamId(0),
            time: None,
            stack: StackId::EMPTY,
            compile_context: Sym::EMPTY,
            user_metadata: Sym::EMPTY,
        }
    }
}
