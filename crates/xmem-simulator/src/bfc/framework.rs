//! TensorFlow's allocator behind the interface of the replay.

use super::allocator::BfcAllocator;
use super::chunks::Chunk;
use super::config::BfcConfig;
use crate::allocator::{
    AllocFailure, BlockHandle, BlockState, BlockUse, BlockView, Control, Framework,
    FrameworkAllocator, Mapping, Observer, OutOfDeviceMemory, PerPool, RequestIndex, Segment,
    SegmentState, Stat, Stats, Unsupported,
};
use crate::device::Device;
use xmem_types::{Addr, Bytes, StreamId};

impl Framework for BfcConfig {
    type Allocator<O: Observer> = BfcAllocator<O>;

    fn over<O: Observer>(&self, device: Device, observer: O) -> BfcAllocator<O> {
        BfcAllocator::new(self, device, observer)
    }
}

impl<O: Observer> FrameworkAllocator for BfcAllocator<O> {
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
        match self.take(at, size, stream) {
            Ok(slot) => Ok(Some(BlockHandle::new(slot))),
            Err(rounded) => {
                Err(AllocFailure::OutOfMemory(OutOfDeviceMemory { rounded, tried: rounded }))
            }
        }
    }

    fn free(&mut self, _at: RequestIndex, block: BlockHandle) {
        self.give_back(block.slot());
    }

    /// Does nothing: TensorFlow has no such call. Regions go back only before a request would fail.
    fn release_cached(&mut self, _at: RequestIndex) {}

    /// Peaks are reset as by `tf.config.experimental.reset_memory_stats`, which leaves the peak of
    /// reserved memory alone. Waiting for the device changes nothing.
    fn control(&mut self, _at: RequestIndex, control: Control) -> Result<(), Unsupported> {
        match control {
            Control::ResetPeaks => self.clear_stats(),
            Control::Synchronize => {}
            _ => return Err(Unsupported::ByThisAllocator),
        }
        Ok(())
    }

    fn block(&self, block: BlockHandle) -> BlockView {
        let chunk = self.chunks.get(block.slot());
        let user = chunk.user.expect("a handle stands for a chunk in use");
        BlockView {
            addr: Addr(chunk.addr),
            size: Bytes(chunk.size),
            requested: Bytes(user.requested),
            segment: chunk.region,
            stream: user.stream,
            born: user.born,
        }
    }

    /// Regions. The stream is that of the request that needed the region, the pool is always the
    /// large one: TensorFlow has but one of each. A region that can be joined by another is
    /// expandable, with a [`Mapping`] for each part.
    fn segments(&self) -> &[Segment] {
        &self.segments
    }

    fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    fn state(&self) -> Vec<SegmentState> {
        let state = |first: u32| {
            let region = self.chunks.get(first).region;
            let segment = &self.segments[region.index()];
            SegmentState {
                segment: region,
                addr: segment.addr,
                size: segment.size,
                stream: segment.stream,
                pool: segment.pool,
                private_pool: segment.private_pool,
                expandable: segment.expandable,
                blocks: self.chunks.of_region(first).map(block_state).collect(),
            }
        };
        self.regions.values().map(|region| state(region.first)).collect()
    }

    fn allocated(&self) -> Bytes {
        Bytes(self.figures.in_use.current())
    }

    fn reserved(&self) -> Bytes {
        Bytes(self.figures.pool.current())
    }

    fn largest_free(&self) -> Bytes {
        Bytes(self.chunks.largest_free())
    }

    /// TensorFlow's figures by PyTorch's names: allocated bytes are `bytes_in_use`, reserved ones
    /// `pool_bytes`, a retry is one after unused regions were released. Only the sums over all
    /// pools are returned, as there is but one pool.
    fn stats(&self) -> Stats {
        let figures = &self.figures;
        let count = |n| n;
        let segment = figures.regions.stat(count);
        let allocation = all(figures.chunks.stat(count));
        let allocated_bytes = all(figures.in_use.stat(Bytes));
        Stats {
            allocation,
            allocated_bytes,
            active: allocation,
            active_bytes: allocated_bytes,
            requested_bytes: all(figures.requested.stat(Bytes)),
            segment: all(segment),
            reserved_bytes: all(figures.pool.stat(Bytes)),
            inactive_split: all(self.chunks.split_free.stat(count)),
            inactive_split_bytes: all(self.chunks.split_free_bytes.stat(Bytes)),
            num_alloc_retries: figures.collections,
            num_ooms: figures.failures,
            num_device_alloc: figures.device_allocs,
            num_device_free: segment.freed,
            ..Stats::default()
        }
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }

    fn lift_limit(&mut self) {
        self.unlimit();
    }

    fn observer(&self) -> &O {
        &self.observer
    }

    fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }
}

fn block_state(chunk: &Chunk) -> BlockState {
    BlockState {
        addr: Addr(chunk.addr),
        size: Bytes(chunk.size),
        requested: chunk.user.map_or(Bytes::ZERO, |user| Bytes(user.requested)),
        used: if chunk.user.is_some() { BlockUse::Allocated } else { BlockUse::Free },
    }
}

fn all<T: Default>(stat: Stat<T>) -> PerPool<T> {
    PerPool { all: stat, ..PerPool::default() }
}
