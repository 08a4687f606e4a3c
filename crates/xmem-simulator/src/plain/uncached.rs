//! `PYTORCH_NO_CUDA_MEMORY_CACHING`: every allocation is a `cudaMalloc`, every free a `cudaFree`.

use super::ledger::{Entry, Ledger};
use crate::allocator::{
    AllocFailure, BlockHandle, BlockState, BlockUse, BlockView, Control, Event, EventAction,
    Framework, FrameworkAllocator, Observer, OutOfDeviceMemory, PoolKind, RequestIndex, Segment,
    SegmentId, SegmentState, Stats, Unsupported,
};
use crate::device::Device;
use xmem_types::{Addr, Bytes, StreamId};

/// No caching at all (`NativeCachingAllocator::allocate` with `forceUncachedAllocator`).
///
/// PyTorch has no statistics in this mode; the figures here are what the program requested as
/// allocated, and what the device gave, in whole pages, as reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncached;

/// The allocator that [`Uncached`] chooses.
#[derive(Clone, Debug)]
pub struct UncachedAllocator<O = ()> {
    device: Device,
    ledger: Ledger,
    segments: Vec<Segment>,
    observer: O,
}

impl Framework for Uncached {
    type Allocator<O: Observer> = UncachedAllocator<O>;

    fn over<O: Observer>(&self, device: Device, observer: O) -> UncachedAllocator<O> {
        UncachedAllocator { device, ledger: Ledger::default(), segments: Vec::new(), observer }
    }
}

impl<O: Observer> UncachedAllocator<O> {
    fn emit(&mut self, action: EventAction, addr: Addr, size: Bytes, stream: StreamId) {
        self.observer.event(Event { action, addr, size, stream });
    }
}

impl<O: Observer> FrameworkAllocator for UncachedAllocator<O> {
    type Observer = O;

    fn allocate(
        &mut self,
        at: RequestIndex,
        size: Bytes,
        stream: StreamId,
    ) -> Result<Option<BlockHandle>, AllocFailure> {
        if size == Bytes::ZERO {
            return Ok(None);
        }
        if size >= Bytes(1 << 60) {
            return Err(AllocFailure::TooLarge);
        }
        let Ok(addr) = self.device.alloc(size) else {
            self.ledger.ooms += 1;
            let free = self.device.free_bytes().unwrap_or_default();
            self.emit(EventAction::Oom, Addr(free.get()), size, stream);
            return Err(AllocFailure::OutOfMemory(OutOfDeviceMemory {
                rounded: size,
                tried: size,
            }));
        };
        let segment = SegmentId(self.segments.len() as u32);
        self.segments.push(Segment {
            addr,
            size,
            stream,
            pool: PoolKind::Large,
            private_pool: None,
            expandable: false,
            born: at,
            died: None,
        });
        self.ledger.reserve(self.device.used());
        self.emit(EventAction::SegmentAlloc, addr, size, stream);
        self.emit(EventAction::Alloc, addr, size, stream);
        let entry = Entry { addr, size, requested: size, segment, stream, at };
        Ok(Some(self.ledger.add(entry)))
    }

    fn free(&mut self, at: RequestIndex, block: BlockHandle) {
        let view = self.ledger.remove(block);
        self.device.free(view.addr, view.size);
        self.segments[view.segment.index()].died = Some(at);
        self.ledger.reserve(self.device.used());
        for action in
            [EventAction::FreeRequested, EventAction::FreeCompleted, EventAction::SegmentFree]
        {
            self.emit(action, view.addr, view.size, view.stream);
        }
    }

    fn release_cached(&mut self, _at: RequestIndex) {}

    fn control(&mut self, _at: RequestIndex, control: Control) -> Result<(), Unsupported> {
        match control {
            // `cudaFree` waits for the device by itself.
            Control::RecordStream { .. } | Control::Synchronize => Ok(()),
            Control::ResetPeaks => {
                self.ledger.reset_peaks();
                Ok(())
            }
            _ => Err(Unsupported::ByThisAllocator),
        }
    }

    fn block(&self, block: BlockHandle) -> BlockView {
        *self.ledger.get(block)
    }

    fn segments(&self) -> &[Segment] {
        &self.segments
    }

    fn state(&self) -> Vec<SegmentState> {
        let there = self.segments.iter().enumerate().filter(|(_, s)| s.died.is_none());
        let mut states: Vec<SegmentState> = there
            .map(|(row, s)| SegmentState {
                segment: SegmentId(row as u32),
                addr: s.addr,
                size: s.size,
                stream: s.stream,
                pool: s.pool,
                private_pool: None,
                expandable: false,
                blocks: vec![BlockState {
                    addr: s.addr,
                    size: s.size,
                    requested: s.size,
                    used: BlockUse::Allocated,
                }],
            })
            .collect();
        states.sort_by_key(|s| s.addr);
        states
    }

    fn allocated(&self) -> Bytes {
        self.ledger.in_use()
    }

    fn reserved(&self) -> Bytes {
        self.ledger.held()
    }

    fn largest_free(&self) -> Bytes {
        Bytes::ZERO
    }

    fn stats(&self) -> Stats {
        self.ledger.stats()
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }

    fn observer(&self) -> &O {
        &self.observer
    }

    fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }
}
