//! TensorFlow's allocator, step by step: `BFCAllocator::AllocateRawInternal` and
//! `DeallocateRawInternal`.

use super::chunks::{Chunks, User};
use super::config::BfcConfig;
use super::stats::BfcStats;
use crate::allocator::{
    Counter, Event, EventAction, Mapping, Observer, PoolKind, RequestIndex, Segment, SegmentId,
};
use crate::device::{Device, PAGE};
use std::collections::BTreeMap;
use xmem_types::{Addr, Bytes, MIB, StreamId};

/// `kMinAllocationSize`: sizes are rounded up to a multiple of this.
const MIN_CHUNK: u64 = 256;

/// The first region with `allow_growth`, unless the limit is lower.
const FIRST_REGION: u64 = 2 * MIB;

/// The rest from which on a chunk is split in any case, unless a fraction is set.
const MAX_INTERNAL_FRAGMENTATION: u64 = 128 * MIB;

/// The limit where there is none: 16 TiB, more than any device has.
const NO_LIMIT: u64 = 1 << 44;

/// TensorFlow's best-fit allocator with coalescing over one device; `O` hears its events.
#[derive(Clone, Debug)]
pub struct BfcAllocator<O = ()> {
    pub(super) device: Device,
    pub(super) chunks: Chunks,
    /// The regions that there are, by address.
    pub(super) regions: BTreeMap<u64, Region>,
    /// The regions that ever were.
    pub(super) segments: Vec<Segment>,
    /// The ranges that they were joined from, where regions are joined.
    pub(super) mappings: Vec<Mapping>,
    pub(super) figures: Figures,
    pub(super) observer: O,
    /// `memory_limit_`.
    limit: u64,
    limited: Limited,
    /// `curr_region_allocation_bytes_`: the size of the next region.
    next_region: u64,
    max_internal_fragmentation: u64,
    garbage_collection: bool,
    coalesce_regions: bool,
}

/// TensorFlow's `AllocationRegion`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    id: SegmentId,
    size: u64,
    /// The chunk at its start. What merges with it becomes part of it, so it stays the same.
    pub(super) first: u32,
}

/// The validity of the memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limited {
    /// It does.
    Yes,
    /// There never was one.
    Never,
    /// It was lifted: each further region is as large as the request that needs it, in whole
    /// pages, so that reserved memory shows what the job lacked.
    NoLonger,
}

/// The counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) chunks: Counter,
    pub(super) in_use: Counter,
    pub(super) requested: Counter,
    pub(super) regions: Counter,
    pub(super) pool: Counter,
    allocs: u64,
    largest: u64,
    pub(super) collections: u64,
    pub(super) failures: u64,
    pub(super) device_allocs: u64,
}

impl Figures {
    /// All but the peak of what the device gave, which TensorFlow keeps.
    fn clear(&mut self) {
        self.allocs = 0;
        self.largest = 0;
        for counter in [&mut self.chunks, &mut self.in_use, &mut self.requested] {
            counter.reset_peak();
        }
    }
}

/// A request on its way through the allocator.
#[derive(Clone, Copy)]
struct Want {
    rounded: u64,
    user: User,
}

impl<O: Observer> BfcAllocator<O> {
    /// An allocator without regions. Its limit is decided here, by what is free on `device`.
    #[must_use]
    pub fn new(config: &BfcConfig, device: Device, observer: O) -> Self {
        let limit = config.limit.on(&device).map(Bytes::get);
        // Without a limit there is no whole to take: regions then grow in any case.
        let first = match limit {
            Some(limit) if !config.allow_growth => limit,
            limit => limit.unwrap_or(NO_LIMIT).min(FIRST_REGION),
        };
        let bound = limit.unwrap_or(NO_LIMIT);
        Self {
            device,
            chunks: Chunks::default(),
            regions: BTreeMap::new(),
            segments: Vec::new(),
            mappings: Vec::new(),
            figures: Figures::default(),
            observer,
            limit: bound,
            limited: if limit.is_some() { Limited::Yes } else { Limited::Never },
            next_region: round(first),
            max_internal_fragmentation: match config.fragmentation_fraction {
                Some(fraction) if fraction > 0.0 => (fraction * bound as f64) as u64,
                _ => MAX_INTERNAL_FRAGMENTATION,
            },
            garbage_collection: config.garbage_collection,
            coalesce_regions: config.coalesce_regions,
        }
    }

    /// TensorFlow's own statistics.
    #[must_use]
    pub fn tf_stats(&self) -> BfcStats {
        let figures = &self.figures;
        let (in_use, pool) = (figures.in_use.stat(Bytes), figures.pool.stat(Bytes));
        BfcStats {
            num_allocs: figures.allocs,
            bytes_in_use: in_use.current,
            peak_bytes_in_use: in_use.peak,
            largest_alloc_size: Bytes(figures.largest),
            bytes_limit: (self.limited != Limited::Never).then_some(Bytes(self.limit)),
            pool_bytes: pool.current,
            peak_pool_bytes: pool.peak,
        }
    }

    /// The region that the next request without space will request from the device, if the limit
    /// allows (`curr_region_allocation_bytes_`).
    #[must_use]
    pub fn next_region(&self) -> Bytes {
        Bytes(self.next_region)
    }

    /// From here on there is no limit.
    pub(super) fn unlimit(&mut self) {
        self.device.lift_limit();
        if self.limited == Limited::Yes {
            self.limited = Limited::NoLonger;
        }
    }

    /// `ClearStats`: counts and peaks begin anew.
    pub(super) fn clear_stats(&mut self) {
        self.figures.clear();
        self.chunks.clear_peaks();
    }

    /// `AllocateRawInternal`: a chunk of at least `size`, which is not zero; `Err` is the rounded
    /// size that there is no space for.
    pub(super) fn take(
        &mut self,
        at: RequestIndex,
        size: Bytes,
        stream: StreamId,
    ) -> Result<u32, Bytes> {
        let user = User { requested: size.get(), stream, born: at };
        let want = Want { rounded: round(size.get()), user };
        if let Some(slot) = self.find(&want) {
            return Ok(slot);
        }
        if self.extend(&want)
            && let Some(slot) = self.find(&want)
        {
            return Ok(slot);
        }
        if self.collect(&want)
            && self.extend(&want)
            && let Some(slot) = self.find(&want)
        {
            return Ok(slot);
        }
        self.figures.failures += 1;
        let free = self.device.free_bytes().unwrap_or_default();
        self.emit(EventAction::Oom, free.get(), want.rounded, stream);
        Err(Bytes(want.rounded))
    }

    /// `DeallocateRawInternal`.
    pub(super) fn give_back(&mut self, slot: u32) {
        let chunk = *self.chunks.get(slot);
        let user = chunk.user.expect("a handle is freed once");
        self.figures.chunks.sub(1);
        self.figures.in_use.sub(chunk.size);
        self.figures.requested.sub(user.requested);
        self.emit(EventAction::FreeRequested, chunk.addr, user.requested, user.stream);
        self.emit(EventAction::FreeCompleted, chunk.addr, user.requested, user.stream);
        self.chunks.give_back(slot);
    }

    /// `FindChunkPtr`: best fit, split if much would be left over.
    fn find(&mut self, want: &Want) -> Option<u32> {
        let slot = self.chunks.take_fit(want.rounded)?;
        let whole = self.chunks.get(slot).size;
        let rest = whole - want.rounded;
        if rest >= want.rounded || rest >= self.max_internal_fragmentation {
            self.chunks.split(slot, want.rounded);
        }
        self.chunks.hand_out(slot, want.user);
        let chunk = *self.chunks.get(slot);
        self.figures.allocs += 1;
        self.figures.chunks.add(1);
        self.figures.in_use.add(chunk.size);
        self.figures.requested.add(want.user.requested);
        self.figures.largest = self.figures.largest.max(chunk.size);
        self.emit(EventAction::Alloc, chunk.addr, want.user.requested, want.user.stream);
        Some(slot)
    }

    /// `Extend`: another region, if the limit and the device allow.
    fn extend(&mut self, want: &Want) -> bool {
        let received = match self.limited {
            Limited::NoLonger => self.ask_for_just(want.rounded),
            Limited::Yes | Limited::Never => self.ask_for_region(want.rounded),
        };
        let Some((addr, size)) = received else { return false };
        self.figures.device_allocs += 1;
        self.figures.pool.add(size);
        let id = self.join(addr, size).unwrap_or_else(|| self.add_region(addr, size, want));
        if self.coalesce_regions {
            let (addr, size, born) = (Addr(addr), Bytes(size), want.user.born);
            self.mappings.push(Mapping { segment: id, addr, size, born, died: None });
        }
        self.emit(EventAction::SegmentAlloc, addr, size, want.user.stream);
        true
    }

    /// `AddOrExtendAllocationRegion`, where regions may be joined: puts memory that begins at the
    /// end of a region behind it.
    fn join(&mut self, addr: u64, size: u64) -> Option<SegmentId> {
        let (&start, region) = self.regions.range_mut(..addr).next_back()?;
        if !self.coalesce_regions || start + region.size != addr {
            return None;
        }
        region.size += size;
        self.segments[region.id.index()].size = Bytes(region.size);
        self.chunks.append(region.first, size);
        Some(region.id)
    }

    /// `AddAllocationRegion`: a region that is one free chunk.
    fn add_region(&mut self, addr: u64, size: u64, want: &Want) -> SegmentId {
        let id = SegmentId(u32::try_from(self.segments.len()).expect("fewer than 2^32 regions"));
        self.segments.push(Segment {
            addr: Addr(addr),
            size: Bytes(size),
            stream: want.user.stream,
            pool: PoolKind::Large,
            private_pool: None,
            expandable: self.coalesce_regions,
            born: want.user.born,
            died: None,
        });
        self.figures.regions.add(1);
        let first = self.chunks.add(addr, size, id);
        self.regions.insert(addr, Region { id, size, first });
        id
    }

    /// The part of `Extend` that finds the size of the region: doubled until it holds `rounded`
    /// bytes, cut to what the limit leaves, and less by a tenth each time that the device refuses.
    fn ask_for_region(&mut self, rounded: u64) -> Option<(u64, u64)> {
        let available = self.limit.saturating_sub(self.figures.pool.current());
        let available = available / MIN_CHUNK * MIN_CHUNK;
        if rounded > available {
            return None;
        }
        let before = self.next_region;
        while rounded > self.next_region {
            self.next_region = self.next_region.saturating_mul(2);
        }
        let mut size = self.next_region.min(available);
        let addr = loop {
            if let Ok(addr) = self.device.alloc(Bytes(size)) {
                break addr;
            }
            size = size_after_refusal(size);
            if size < rounded {
                return None;
            }
        };
        if self.next_region == before {
            self.next_region = self.next_region.saturating_mul(2);
        }
        Some((addr.0, size))
    }

    /// A region once there is no limit.
    fn ask_for_just(&mut self, rounded: u64) -> Option<(u64, u64)> {
        let size = rounded.checked_next_multiple_of(PAGE.get())?;
        let addr = self.device.alloc(Bytes(size)).ok()?;
        Some((addr.0, size))
    }

    /// `DeallocateFreeRegions`: gives the regions without a chunk in use back, all of them, if
    /// that may be enough. Whether there were any.
    fn collect(&mut self, want: &Want) -> bool {
        if !self.garbage_collection {
            return false;
        }
        let unused = self.regions.iter().filter(|(_, region)| self.chunks.is_unused(region.first));
        let unused: Vec<(u64, Region)> = unused.map(|(&addr, &region)| (addr, region)).collect();
        let bytes: u64 = unused.iter().map(|(_, region)| region.size).sum();
        let pool = self.figures.pool.current();
        if bytes == 0 || want.rounded > self.limit.saturating_sub(pool - bytes) {
            return false;
        }
        self.figures.collections += 1;
        for (addr, region) in unused {
            self.remove_region(addr, &region, want.user.born);
        }
        true
    }

    /// `DeallocateRegions`, for one of them.
    fn remove_region(&mut self, addr: u64, region: &Region, at: RequestIndex) {
        self.chunks.remove(region.first);
        self.regions.remove(&addr);
        self.device.free(Addr(addr), Bytes(region.size));
        self.figures.regions.sub(1);
        self.figures.pool.sub(region.size);
        let segment = &mut self.segments[region.id.index()];
        segment.died = Some(at);
        let stream = segment.stream;
        for mapping in self.mappings.iter_mut().filter(|m| m.segment == region.id) {
            mapping.died = Some(at);
        }
        self.emit(EventAction::SegmentFree, addr, region.size, stream);
    }

    fn emit(&mut self, action: EventAction, addr: u64, size: u64, stream: StreamId) {
        self.observer.event(Event { action, addr: Addr(addr), size: Bytes(size), stream });
    }
}

/// `RoundedBytes`, but without overflow at the end of the number range.
fn round(size: u64) -> u64 {
    size.checked_next_multiple_of(MIN_CHUNK).unwrap_or(u64::MAX / MIN_CHUNK * MIN_CHUNK)
}

/// The next size to request after the device refused `size`: nine tenths, in single precision.
/// The size to try if rounding leads back to the same size: 256 bytes less, as in newer releases;
/// older ones, among them TensorFlow 2.21, request it forever.
fn size_after_refusal(size: u64) -> u64 {
    let less = round((size as f32 * 0.9) as u64);
    if less < size { less } else { size - MIN_CHUNK }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_is_asked_for_a_tenth_less_each_time() {
        for (size, less) in [
            (2 * MIB, 1_887_488),
            (1_887_488, 1_698_816),
            (2560, 2304),
            (2304, 2048),
            (512, 256),
            (256, 0),
            (800 * MIB, 754_974_720),
        ] {
            assert_eq!(size_after_refusal(size), less, "{size}");
        }
    }
}
