//! The wall between the replay and PyTorch's allocator: another allocator, written here from the
//! public interface alone, is replayed by the same code.

use xmem_simulator::{
    AddressOrder, AllocFailure, AllocatorConfig, BlockHandle, BlockInSegment, BlockView, Device,
    DeviceConfig, Framework, FrameworkAllocator, OutOfDeviceMemory, PoolKind, RequestIndex,
    Segment, SegmentId, Stats, min_capacity, replay,
};
use xmem_types::{BlockId, Bytes, MIB, Request, RequestKind, StreamId};

/// Every allocation is a segment of its own, every free gives it back, as with
/// `PYTORCH_NO_CUDA_MEMORY_CACHING`. (Whole pages only: the driver would let small ones share.)
struct Uncached;

struct UncachedAllocator {
    device: Device,
    segments: Vec<Segment>,
    peak: Bytes,
}

impl Framework for Uncached {
    type Allocator = UncachedAllocator;

    fn over(&self, device: Device) -> UncachedAllocator {
        UncachedAllocator { device, segments: Vec::new(), peak: Bytes::ZERO }
    }
}

impl FrameworkAllocator for UncachedAllocator {
    fn allocate(
        &mut self,
        at: RequestIndex,
        size: Bytes,
        stream: StreamId,
    ) -> Result<Option<BlockHandle>, AllocFailure> {
        if size == Bytes::ZERO {
            return Ok(None);
        }
        let size = size.round_up(Bytes::mib(2));
        let addr = self.device.alloc(size).map_err(|_| {
            AllocFailure::OutOfMemory(OutOfDeviceMemory { rounded: size, tried: size })
        })?;
        let handle = BlockHandle::new(u32::try_from(self.segments.len()).expect("a short job"));
        let pool = PoolKind::Large;
        self.segments.push(Segment { addr, size, stream, pool, born: at, died: None });
        self.peak = self.peak.max(self.device.used());
        Ok(Some(handle))
    }

    fn free(&mut self, at: RequestIndex, block: BlockHandle) {
        let segment = &mut self.segments[block.slot() as usize];
        segment.died = Some(at);
        self.device.free(segment.addr, segment.size);
    }

    fn release_cached(&mut self, _at: RequestIndex) {}

    fn block(&self, block: BlockHandle) -> BlockView {
        let segment = self.segments[block.slot() as usize];
        BlockView {
            addr: segment.addr,
            size: segment.size,
            requested: segment.size,
            segment: SegmentId(block.slot()),
            stream: segment.stream,
            born: segment.born,
        }
    }

    fn segments(&self) -> &[Segment] {
        &self.segments
    }

    fn layout(&self) -> Vec<BlockInSegment> {
        Vec::new()
    }

    fn allocated(&self) -> Bytes {
        self.device.used()
    }

    fn reserved(&self) -> Bytes {
        self.device.used()
    }

    fn largest_free(&self) -> Bytes {
        Bytes::ZERO
    }

    fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        stats.allocated_bytes.all.peak = self.peak;
        stats.reserved_bytes.all.peak = self.peak;
        stats
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }
}

#[test]
fn another_allocator_is_replayed_by_the_same_code() {
    let alloc = |id, mib| Request {
        block: BlockId(id),
        kind: RequestKind::Alloc { size: Bytes(mib * MIB), stream: StreamId(0) },
    };
    let free = |id| Request { block: BlockId(id), kind: RequestKind::Free };
    let requests = [alloc(0, 5), alloc(1, 30), free(1), alloc(2, 33), free(0), free(2)];
    let device = DeviceConfig {
        capacity: Some(Bytes::mib(39)),
        taken: Bytes::ZERO,
        address_order: AddressOrder::Driver,
    };

    let uncached = replay(&requests, &Uncached, &device);
    let oom = uncached.oom.expect("6 and 34 MiB do not fit into 39");
    assert_eq!((oom.request, oom.tried), (RequestIndex(3), Bytes::mib(34)));
    assert_eq!(oom.needed, Bytes::mib(40));
    assert_eq!(uncached.peak.request, RequestIndex(3));
    let live: Vec<u32> = uncached.live_at_peak.iter().map(|b| b.block.0).collect();
    assert_eq!(live, [0, 2]);
    assert_eq!(min_capacity(&requests, &Uncached, &device), Bytes::mib(40));

    // PyTorch's allocator reserves 20 MiB for the first request.
    assert_eq!(min_capacity(&requests, &AllocatorConfig::default(), &device), Bytes::mib(54));
}
