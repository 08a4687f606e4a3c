//! Everything that the simulator shows, against the model.

use super::equal;
use crate::model::{Gauge, Model, OfPools, Segment, Use};
use xmem_simulator::{
    BlockState, BlockUse, FrameworkAllocator, PerPool, PoolKind, PrivatePoolId, SegmentId,
    SegmentState, Stat,
};
use xmem_types::{Addr, Bytes, StreamId};

pub(super) fn compare<A: FrameworkAllocator>(allocator: &A, model: &Model) -> Result<(), String> {
    figures(allocator, model)?;
    equal("used", &allocator.device().used().get(), &model.device.used)?;
    let free = allocator.device().free_bytes().map(Bytes::get);
    equal("device free", &free, &model.device.free_bytes())?;
    equal("largest free", &allocator.largest_free().get(), &model.largest_free())?;
    equal("layout", &plain(allocator.state()), &layout(&model.segments))?;
    equal("segments", &living(allocator), &segments(model))
}

fn figures<A: FrameworkAllocator>(allocator: &A, model: &Model) -> Result<(), String> {
    let (stats, figures) = (allocator.stats(), &model.figures);
    for (name, got, want) in [
        ("allocation", stats.allocation, figures.allocation),
        ("active", stats.active, figures.active),
        ("segment", stats.segment, figures.segment),
        ("allocated_bytes", bytes(stats.allocated_bytes), figures.allocated_bytes),
        ("active_bytes", bytes(stats.active_bytes), figures.active_bytes),
        ("requested_bytes", bytes(stats.requested_bytes), figures.requested_bytes),
        ("reserved_bytes", bytes(stats.reserved_bytes), figures.reserved_bytes),
    ] {
        equal(name, &of_pools(got), &want)?;
    }
    for (name, got, want) in [
        ("inactive_split", stats.inactive_split, figures.inactive_split),
        ("inactive_split_bytes", bytes(stats.inactive_split_bytes), figures.inactive_split_bytes),
    ] {
        let (got, want) = (of_pools(got), want);
        if model.order_was_open {
            // How many free blocks there were in between depends on the order of the frees.
            let current = |f: OfPools| (f.all.current, f.small.current, f.large.current);
            equal(name, &current(got), &current(want))?;
        } else {
            equal(name, &got, &want)?;
        }
    }
    for (name, got, want) in [
        ("oversize_allocations", stats.oversize_allocations, figures.oversize_allocations),
        ("oversize_segments", stats.oversize_segments, figures.oversize_segments),
    ] {
        equal(name, &gauge(got), &want)?;
    }
    for (name, got, want) in [
        ("num_alloc_retries", stats.num_alloc_retries, figures.retries),
        ("num_ooms", stats.num_ooms, figures.ooms),
        ("num_sync_all_streams", stats.num_sync_all_streams, figures.synchronisations),
        ("num_device_alloc", stats.num_device_alloc, figures.device_allocs),
        ("num_device_free", stats.num_device_free, figures.device_frees),
        ("num_oom_rejections", stats.num_oom_rejections, figures.oom_rejections),
    ] {
        equal(name, &got, &want)?;
    }
    equal("allocated", &allocator.allocated().get(), &figures.allocated_bytes.all.current)?;
    equal("reserved", &allocator.reserved().get(), &figures.reserved_bytes.all.current)
}

fn bytes(figure: PerPool<Bytes>) -> PerPool<u64> {
    let plain = |s: Stat<Bytes>| Stat {
        current: s.current.get(),
        peak: s.peak.get(),
        allocated: s.allocated.get(),
        freed: s.freed.get(),
    };
    PerPool {
        all: plain(figure.all),
        small_pool: plain(figure.small_pool),
        large_pool: plain(figure.large_pool),
    }
}

fn of_pools(figure: PerPool<u64>) -> OfPools {
    OfPools {
        all: gauge(figure.all),
        small: gauge(figure.small_pool),
        large: gauge(figure.large_pool),
    }
}

fn gauge(stat: Stat<u64>) -> Gauge {
    Gauge { current: stat.current, peak: stat.peak, up: stat.allocated, down: stat.freed }
}

/// Without the numbers of segments, and with nothing requested in free blocks.
fn plain(state: Vec<SegmentState>) -> Vec<SegmentState> {
    let mut state = state;
    for segment in &mut state {
        segment.segment = SegmentId(0);
        for block in &mut segment.blocks {
            if block.used == BlockUse::Free {
                block.requested = Bytes::ZERO;
            }
        }
    }
    state
}

/// The model's segments as a snapshot shows them: of expandable ones, what has memory.
fn layout(segments: &[Segment]) -> Vec<SegmentState> {
    let mut shown: Vec<SegmentState> = Vec::new();
    for segment in segments {
        let mut goes_on = false;
        for (b, block) in segment.blocks.iter().enumerate() {
            let addr = Addr(segment.addr_of(b));
            let (used, requested) = match block.used {
                Use::Held { requested } => (BlockUse::Allocated, requested),
                Use::Waiting { requested } => (BlockUse::PendingFree, requested),
                Use::Free => (BlockUse::Free, 0),
                Use::Unmapped => {
                    goes_on = false;
                    continue;
                }
            };
            let (size, requested) = (Bytes(block.size), Bytes(requested));
            let block = BlockState { addr, size, requested, used };
            match shown.last_mut() {
                Some(range) if goes_on => {
                    range.size += size;
                    range.blocks.push(block);
                }
                _ => shown.push(SegmentState {
                    segment: SegmentId(0),
                    addr,
                    size,
                    stream: StreamId(segment.stream),
                    pool: kind(segment),
                    private_pool: segment.pool.private.map(PrivatePoolId),
                    expandable: segment.expandable,
                    blocks: vec![block],
                }),
            }
            goes_on = true;
        }
    }
    shown.sort_by_key(|range| range.addr);
    shown
}

fn kind(segment: &Segment) -> PoolKind {
    if segment.pool.small { PoolKind::Small } else { PoolKind::Large }
}

type Place = (Addr, Bytes, StreamId, PoolKind, Option<PrivatePoolId>, bool);

/// The segments that the simulator lists as still there.
fn living<A: FrameworkAllocator>(allocator: &A) -> Vec<Place> {
    let living = allocator.segments().iter().filter(|s| s.died.is_none());
    let mut places: Vec<Place> =
        living.map(|s| (s.addr, s.size, s.stream, s.pool, s.private_pool, s.expandable)).collect();
    places.sort_by_key(|place| place.0);
    places
}

fn segments(model: &Model) -> Vec<Place> {
    let place = |s: &Segment| {
        let private = s.pool.private.map(PrivatePoolId);
        (Addr(s.addr), Bytes(s.mapped()), StreamId(s.stream), kind(s), private, s.expandable)
    };
    let mut places: Vec<Place> = model.segments.iter().map(place).collect();
    places.sort_by_key(|place| place.0);
    places
}
