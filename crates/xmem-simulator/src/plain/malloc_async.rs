//! `backend:cudaMallocAsync`, approximately.

use super::ledger::{Entry, Ledger};
use crate::allocator::{
    AllocFailure, BlockHandle, BlockView, Control, Event, EventAction, Framework,
    FrameworkAllocator, Observer, OutOfDeviceMemory, PoolKind, RequestIndex, Segment, SegmentId,
    SegmentState, Stats, Unsupported,
};
use crate::device::Device;
use xmem_types::{Addr, Bytes, StreamId};

/// Sizes in a CUDA pool are multiples of this.
const GRANULARITY: Bytes = Bytes(512);

/// By how much a CUDA pool grows.
const GROWTH: Bytes = Bytes::mib(32);

/// CUDA's stream-ordered pools (`c10/cuda/CUDAMallocAsyncAllocator.cpp`): **an approximation.**
///
/// The driver's work inside a pool is not published. Assumed here: a pool never gives memory
/// back while there is space (PyTorch sets its release threshold to the largest number), grows in
/// steps of 32 MiB, and fits any request into what is free in it, as it can remap its pages. So
/// fragmentation is taken to be none, and reserved memory is at least what this says. Allocated
/// and reserved are the pool's used and reserved memory, the only figures PyTorch has then.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MallocAsync {
    /// `torch.cuda.set_per_process_memory_fraction`: used memory may not exceed this part of the
    /// device's total.
    pub memory_fraction: Option<f64>,
}

/// The allocator that [`MallocAsync`] chooses.
#[derive(Clone, Debug)]
pub struct MallocAsyncAllocator<O = ()> {
    device: Device,
    ledger: Ledger,
    /// Steps by which the pool has grown, one segment each.
    segments: Vec<Segment>,
    /// The address of the next block if none were ever freed: addresses only distinguish blocks.
    next: Addr,
    fraction: Option<f64>,
    observer: O,
}

impl Framework for MallocAsync {
    type Allocator<O: Observer> = MallocAsyncAllocator<O>;

    fn over<O: Observer>(&self, device: Device, observer: O) -> MallocAsyncAllocator<O> {
        MallocAsyncAllocator {
            device,
            ledger: Ledger::default(),
            segments: Vec::new(),
            next: Addr(1 << 46),
            fraction: self.memory_fraction,
            observer,
        }
    }
}

impl<O: Observer> MallocAsyncAllocator<O> {
    fn limit(&self) -> Option<Bytes> {
        let total = self.device.total()?.get() as f64;
        self.fraction.map(|fraction| Bytes((fraction * total) as u64))
    }

    /// Gets what the pool lacks for `used` bytes.
    fn grow(&mut self, used: Bytes, at: RequestIndex, stream: StreamId) -> bool {
        let missing = used.saturating_sub(self.ledger.held()).round_up(GROWTH);
        if missing == Bytes::ZERO {
            return true;
        }
        let Ok(addr) = self.device.alloc(missing) else { return false };
        self.segments.push(Segment {
            addr,
            size: missing,
            stream,
            pool: PoolKind::Large,
            private_pool: None,
            expandable: false,
            born: at,
            died: None,
        });
        self.ledger.reserve(self.device.used());
        self.observer.event(Event {
            action: EventAction::SegmentAlloc,
            addr,
            size: missing,
            stream,
        });
        true
    }
}

impl<O: Observer> FrameworkAllocator for MallocAsyncAllocator<O> {
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
        let rounded = size.round_up(GRANULARITY);
        let used = self.ledger.in_use() + rounded;
        if self.limit().is_some_and(|limit| used > limit) || !self.grow(used, at, stream) {
            self.ledger.ooms += 1;
            return Err(AllocFailure::OutOfMemory(OutOfDeviceMemory { rounded, tried: rounded }));
        }
        let addr = self.next;
        self.next = Addr(addr.0 + rounded.get());
        self.observer.event(Event { action: EventAction::Alloc, addr, size, stream });
        let segment = SegmentId(self.segments.len().saturating_sub(1) as u32);
        let entry = Entry { addr, size: rounded, requested: size, segment, stream, at };
        Ok(Some(self.ledger.add(entry)))
    }

    fn free(&mut self, _at: RequestIndex, block: BlockHandle) {
        let BlockView { addr, requested: size, stream, .. } = self.ledger.remove(block);
        for action in [EventAction::FreeRequested, EventAction::FreeCompleted] {
            self.observer.event(Event { action, addr, size, stream });
        }
    }

    /// `cudaMemPoolTrimTo` zero: what is free goes back, in whole steps from the last one.
    fn release_cached(&mut self, at: RequestIndex) {
        let needed = self.ledger.in_use();
        for segment in self.segments.iter_mut().rev().filter(|s| s.died.is_none()) {
            if self.device.used() - segment.size < needed {
                break;
            }
            self.device.free(segment.addr, segment.size);
            segment.died = Some(at);
            self.observer.event(Event {
                action: EventAction::SegmentFree,
                addr: segment.addr,
                size: segment.size,
                stream: segment.stream,
            });
        }
        self.ledger.reserve(self.device.used());
    }

    fn control(&mut self, _at: RequestIndex, control: Control) -> Result<(), Unsupported> {
        match control {
            // Frees are ordered by the driver.
            Control::RecordStream { .. } | Control::Synchronize => {}
            Control::ResetPeaks => self.ledger.reset_peaks(),
            Control::MemoryFraction(fraction) => self.fraction = Some(fraction),
            _ => return Err(Unsupported::ByThisAllocator),
        }
        Ok(())
    }

    fn block(&self, block: BlockHandle) -> BlockView {
        *self.ledger.get(block)
    }

    fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Nothing: PyTorch has no snapshot of such a pool.
    fn state(&self) -> Vec<SegmentState> {
        Vec::new()
    }

    fn allocated(&self) -> Bytes {
        self.ledger.in_use()
    }

    fn reserved(&self) -> Bytes {
        self.ledger.held()
    }

    fn largest_free(&self) -> Bytes {
        self.ledger.held() - self.ledger.in_use()
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

    fn lift_limit(&mut self) {
        self.device.lift_limit();
        self.fraction = None;
    }

    fn observer(&self) -> &O {
        &self.observer
    }

    fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }
}
