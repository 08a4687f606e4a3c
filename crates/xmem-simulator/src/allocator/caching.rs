//! PyTorch's CUDACachingAllocator: `DeviceCachingAllocator` of `c10/cuda/CUDACachingAllocator.cpp`,
//! step by step.

mod arena;
mod control;
mod expandable;
mod free;
mod hash;
mod malloc;
mod mappings;
mod pool;
mod private;
mod release;
mod seed;
mod sizes;
mod state;
mod stats;
mod streams;

pub use seed::{Seed, SeedError, SeededBlocks};
pub(crate) use stats::Counter;
pub use stats::{PerPool, Stat, Stats};

use super::{
    AllocFailure, BlockHandle, BlockView, Control, EventAction, Framework, FrameworkAllocator,
    Mapping, Observer, RequestIndex, Segment, SegmentState, Unsupported,
};
use crate::config::{AllocatorConfig, Feature, OnExcess, Reserve};
use crate::device::Device;
use arena::{Arena, Use};
use mappings::Mappings;
use pool::{Pools, SetId, Ties};
use private::PrivatePools;
use sizes::SizeRules;
use stats::Counters;
use streams::StreamUses;
use xmem_types::{Addr, Bytes, StreamId, TorchVersion};

/// PyTorch's caching allocator over one device; `O` hears its events.
#[derive(Clone, Debug)]
pub struct CachingAllocator<O = ()> {
    rules: SizeRules,
    limits: Limits,
    device: Device,
    arena: Arena,
    pools: Pools,
    private: PrivatePools,
    streams: StreamUses,
    /// The stream that the program works on: that of its last allocation or capture.
    current: StreamId,
    segments: Vec<Segment>,
    mappings: Mappings,
    counters: Counters,
    observer: O,
}

/// The rule that decides between several free blocks of the same size.
fn ties_of(release: TorchVersion) -> Ties {
    if Feature::OldestSegmentFirst.is_in(release) {
        Ties::OldestSegment
    } else if Feature::OldestBlockFirst.is_in(release) {
        Ties::OldestBlock
    } else {
        Ties::LowestAddress
    }
}

/// The memory that the allocator may take, and its behavior near that limit.
#[derive(Clone, Copy, Debug)]
struct Limits {
    release: TorchVersion,
    /// `allowed_memory_maximum`.
    allowed: Option<u64>,
    /// `garbage_collection_threshold`.
    collect_above: Option<f64>,
    on_excess: OnExcess,
    /// The total that a fraction is a part of, as far as the device has one.
    total: Option<u64>,
    /// The total by which expandable segments reserve addresses, as far as it is known.
    address_total: Option<u64>,
    fraction: f64,
    reserve: Option<Reserve>,
}

impl Limits {
    fn new(config: &AllocatorConfig, device: &Device) -> Self {
        let mut limits = Self {
            release: config.release,
            allowed: None,
            collect_above: config.garbage_collection_threshold,
            on_excess: config.on_excess,
            total: device.total().map(Bytes::get),
            address_total: device.address_total().map(Bytes::get),
            fraction: 1.0,
            reserve: config.expandable_reserve,
        };
        if let Some(fraction) = config.memory_fraction {
            limits.set_fraction(fraction);
        }
        limits
    }

    /// `setMemoryFraction`.
    fn set_fraction(&mut self, fraction: f64) {
        let limits = fraction < 1.0 || !Feature::FractionBelowOne.is_in(self.release);
        self.fraction = fraction;
        // A part of a total below 2^53 loses nothing that matters to whole segments.
        let part = self.total.map(|total| {
            let part = fraction * total as f64;
            if Feature::FractionRounded.is_in(self.release) { part.round() } else { part }
        });
        let part = part.map(|part| part as u64);
        self.allowed = part.filter(|_| limits);
    }

    /// From here on there is no fraction, and nothing that it is a part of.
    fn lift(&mut self) {
        (self.total, self.address_total) = (None, None);
        self.allowed = None;
    }

    /// The bytes above which garbage is collected.
    fn collection_threshold(&self) -> Option<u64> {
        Some((self.collect_above? * self.allowed? as f64) as u64)
    }

    /// Returns whether searches for free blocks are counted, so that blocks have an age.
    fn counts_searches(&self) -> bool {
        self.allowed.is_some() && self.collect_above.is_some()
    }
}

impl<O: Observer> CachingAllocator<O> {
    /// An allocator without segments.
    #[must_use]
    pub fn new(config: &AllocatorConfig, device: Device, observer: O) -> Self {
        Self {
            rules: SizeRules::new(config),
            limits: Limits::new(config, &device),
            device,
            arena: Arena::default(),
            pools: Pools::new(ties_of(config.release)),
            private: PrivatePools::new(config.release),
            streams: StreamUses::default(),
            current: StreamId::default(),
            segments: Vec::new(),
            mappings: Mappings::default(),
            counters: Counters::default(),
            observer,
        }
    }

    fn emit(&mut self, action: EventAction, addr: u64, size: u64, stream: StreamId) {
        self.observer.event(super::Event { action, addr: Addr(addr), size: Bytes(size), stream });
    }

    fn stream_of(&self, set: SetId) -> StreamId {
        self.pools.get(set).stream
    }

    /// `insert_into_blocks`.
    fn insert_free(&mut self, slot: u32) {
        let set = self.arena.get(slot).set;
        let searches = self.pools.pool_of(set).searches;
        let block = self.arena.get_mut(slot);
        block.used = Use::Free;
        block.free_since = searches;
        let key = self.pools.key(block, &self.segments);
        self.pools.get_mut(set).free.insert(key, slot);
    }

    fn remove_free(&mut self, slot: u32) {
        let block = self.arena.get(slot);
        let key = self.pools.key(block, &self.segments);
        self.pools.get_mut(block.set).free.remove(&key);
    }
}

impl Framework for AllocatorConfig {
    type Allocator<O: Observer> = CachingAllocator<O>;

    fn over<O: Observer>(&self, device: Device, observer: O) -> CachingAllocator<O> {
        CachingAllocator::new(self, device, observer)
    }
}

impl<O: Observer> FrameworkAllocator for CachingAllocator<O> {
    type Observer = O;

    fn allocate(
        &mut self,
        at: RequestIndex,
        size: Bytes,
        stream: StreamId,
    ) -> Result<Option<BlockHandle>, AllocFailure> {
        self.malloc(at, size.get(), stream)
    }

    fn free(&mut self, at: RequestIndex, block: BlockHandle) {
        self.take_back(at, block.0);
    }

    fn release_cached(&mut self, at: RequestIndex) {
        self.empty_cache(at);
    }

    fn control(&mut self, at: RequestIndex, control: Control) -> Result<(), Unsupported> {
        self.do_control(at, control)
    }

    fn block(&self, block: BlockHandle) -> BlockView {
        let block = self.arena.get(block.0);
        BlockView {
            addr: Addr(block.addr),
            size: Bytes(block.size),
            requested: Bytes(block.requested),
            segment: block.segment,
            stream: self.stream_of(block.set),
            born: block.born,
        }
    }

    fn segments(&self) -> &[Segment] {
        &self.segments
    }

    fn mappings(&self) -> &[Mapping] {
        self.mappings.all()
    }

    fn state(&self) -> Vec<SegmentState> {
        self.segment_states()
    }

    fn allocated(&self) -> Bytes {
        Bytes(self.counters.block_bytes.current())
    }

    fn reserved(&self) -> Bytes {
        Bytes(self.counters.segment_bytes.current())
    }

    fn largest_free(&self) -> Bytes {
        Bytes(self.pools.largest())
    }

    fn stats(&self) -> Stats {
        self.counters.stats()
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }

    fn lift_limit(&mut self) {
        self.device.lift_limit();
        self.limits.lift();
    }

    fn observer(&self) -> &O {
        &self.observer
    }

    fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }
}
