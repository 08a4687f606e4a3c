//! Statistics as `torch.cuda.memory_stats` defines them (`c10/core/CachingDeviceAllocator.h`).

use crate::allocator::PoolKind;
use xmem_types::Bytes;

/// One statistic. Peaks of different statistics are reached at different times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat<T> {
    /// The value now.
    pub current: T,
    /// The highest value so far.
    pub peak: T,
    /// The sum of all increases.
    pub allocated: T,
    /// The sum of all decreases.
    pub freed: T,
}

/// One statistic for all blocks and for each of the two pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerPool<T> {
    /// Both pools.
    pub all: Stat<T>,
    /// The small pool.
    pub small_pool: Stat<T>,
    /// The large pool.
    pub large_pool: Stat<T>,
}

/// `torch.cuda.memory_stats`, named as there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Blocks handed out.
    pub allocation: PerPool<u64>,
    /// Bytes of blocks handed out: `torch.cuda.memory_allocated`, `max_memory_allocated`.
    pub allocated_bytes: PerPool<Bytes>,
    /// Blocks handed out, or freed and waiting for other streams.
    pub active: PerPool<u64>,
    /// Bytes of the `active` blocks.
    pub active_bytes: PerPool<Bytes>,
    /// Bytes that the program requested, before rounding.
    pub requested_bytes: PerPool<Bytes>,
    /// Segments.
    pub segment: PerPool<u64>,
    /// Bytes of segments: `torch.cuda.memory_reserved`, `max_memory_reserved`.
    pub reserved_bytes: PerPool<Bytes>,
    /// Free blocks in segments that are partly in use, which cannot go back to the device.
    pub inactive_split: PerPool<u64>,
    /// Bytes of the `inactive_split` blocks.
    pub inactive_split_bytes: PerPool<Bytes>,
    /// Blocks of at least `max_split_size`.
    pub oversize_allocations: Stat<u64>,
    /// Segments of at least `max_split_size`.
    pub oversize_segments: Stat<u64>,
    /// Allocations retried after everything cached was released.
    pub num_alloc_retries: u64,
    /// Allocations that failed.
    pub num_ooms: u64,
    /// The number of times all streams were synchronized to release cached memory.
    pub num_sync_all_streams: u64,
    /// Calls of `cudaMalloc` that succeeded, and mappings of pages.
    pub num_device_alloc: u64,
    /// Calls of `cudaFree`, and unmappings of pages.
    pub num_device_free: u64,
    /// Allocations refused because they would exceed the memory fraction
    /// (`throw_on_cudamalloc_oom`).
    pub num_oom_rejections: u64,
}

/// A statistic while it is counted. The sum of decreases follows from the other two.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter {
    current: u64,
    peak: u64,
    up: u64,
}

impl Counter {
    pub(crate) fn add(&mut self, n: u64) {
        self.current += n;
        self.peak = self.peak.max(self.current);
        self.up = self.up.saturating_add(n);
    }

    pub(crate) fn sub(&mut self, n: u64) {
        self.current -= n;
    }

    pub(crate) fn reset_peak(&mut self) {
        self.peak = self.current;
    }

    pub(crate) fn current(self) -> u64 {
        self.current
    }

    pub(crate) fn stat<T>(self, wrap: impl Fn(u64) -> T) -> Stat<T> {
        Stat {
            current: wrap(self.current),
            peak: wrap(self.peak),
            allocated: wrap(self.up),
            freed: wrap(self.up - self.current),
        }
    }
}

/// A counter for all and for each pool.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PoolCounter {
    all: Counter,
    pools: [Counter; 2],
}

impl PoolCounter {
    pub(super) fn add(&mut self, pool: PoolKind, n: u64) {
        self.all.add(n);
        self.pools[pool as usize].add(n);
    }

    pub(super) fn sub(&mut self, pool: PoolKind, n: u64) {
        self.all.sub(n);
        self.pools[pool as usize].sub(n);
    }

    /// Adds `up` and takes `down` off in one step, as a net change.
    pub(super) fn change(&mut self, pool: PoolKind, up: u64, down: u64) {
        if up > down {
            self.add(pool, up - down);
        } else if down > up {
            self.sub(pool, down - up);
        }
    }

    pub(super) fn current(&self) -> u64 {
        self.all.current
    }

    fn reset_peak(&mut self) {
        self.all.reset_peak();
        self.pools.iter_mut().for_each(Counter::reset_peak);
    }

    fn stats<T>(&self, wrap: impl Fn(u64) -> T + Copy) -> PerPool<T> {
        PerPool {
            all: self.all.stat(wrap),
            small_pool: self.pools[PoolKind::Small as usize].stat(wrap),
            large_pool: self.pools[PoolKind::Large as usize].stat(wrap),
        }
    }
}

/// Every counter of an allocator.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) blocks: PoolCounter,
    pub(super) block_bytes: PoolCounter,
    pub(super) requested: PoolCounter,
    /// The active bytes, once they have differed from the allocated ones.
    active: Option<Active>,
    pub(super) segments: PoolCounter,
    pub(super) segment_bytes: PoolCounter,
    pub(super) split_free: PoolCounter,
    pub(super) split_free_bytes: PoolCounter,
    pub(super) oversize_blocks: Counter,
    pub(super) oversize_segments: Counter,
    pub(super) retries: u64,
    pub(super) ooms: u64,
    pub(super) syncs: u64,
    pub(super) device_allocs: u64,
    pub(super) device_frees: u64,
    pub(super) rejections: u64,
}

/// Blocks handed out, or freed and waiting for other streams.
#[derive(Clone, Copy, Debug)]
struct Active {
    blocks: PoolCounter,
    bytes: PoolCounter,
}

impl Counters {
    /// A block is handed out.
    pub(super) fn hand_out(&mut self, pool: PoolKind, size: u64, requested: u64) {
        self.blocks.add(pool, 1);
        self.block_bytes.add(pool, size);
        self.requested.add(pool, requested);
        if let Some(active) = &mut self.active {
            active.blocks.add(pool, 1);
            active.bytes.add(pool, size);
        }
    }

    /// A block is freed.
    pub(super) fn take_back(&mut self, pool: PoolKind, size: u64) {
        self.blocks.sub(pool, 1);
        self.block_bytes.sub(pool, size);
    }

    /// A block about to be freed will stay active: from here on that is counted apart.
    pub(super) fn keep_active(&mut self) {
        let (blocks, bytes) = (self.blocks, self.block_bytes);
        self.active.get_or_insert(Active { blocks, bytes });
    }

    /// A block that was freed can be reused.
    pub(super) fn complete(&mut self, pool: PoolKind, size: u64, requested: u64) {
        self.requested.sub(pool, requested);
        if let Some(active) = &mut self.active {
            active.blocks.sub(pool, 1);
            active.bytes.sub(pool, size);
        }
    }

    /// `resetPeakStats`.
    pub(super) fn reset_peaks(&mut self) {
        for counter in [
            &mut self.blocks,
            &mut self.block_bytes,
            &mut self.requested,
            &mut self.segments,
            &mut self.segment_bytes,
            &mut self.split_free,
            &mut self.split_free_bytes,
        ] {
            counter.reset_peak();
        }
        if let Some(active) = &mut self.active {
            active.blocks.reset_peak();
            active.bytes.reset_peak();
        }
        self.oversize_blocks.reset_peak();
        self.oversize_segments.reset_peak();
    }

    pub(super) fn stats(&self) -> Stats {
        let count = |n| n;
        let (active, active_bytes) = match &self.active {
            Some(active) => (active.blocks, active.bytes),
            None => (self.blocks, self.block_bytes),
        };
        Stats {
            allocation: self.blocks.stats(count),
            allocated_bytes: self.block_bytes.stats(Bytes),
            active: active.stats(count),
            active_bytes: active_bytes.stats(Bytes),
            requested_bytes: self.requested.stats(Bytes),
            segment: self.segments.stats(count),
            reserved_bytes: self.segment_bytes.stats(Bytes),
            inactive_split: self.split_free.stats(count),
            inactive_split_bytes: self.split_free_bytes.stats(Bytes),
            oversize_allocations: self.oversize_blocks.stat(count),
            oversize_segments: self.oversize_segments.stat(count),
            num_alloc_retries: self.retries,
            num_ooms: self.ooms,
            num_sync_all_streams: self.syncs,
            num_device_alloc: self.device_allocs,
            num_device_free: self.device_frees,
            num_oom_rejections: self.rejections,
        }
    }
}
