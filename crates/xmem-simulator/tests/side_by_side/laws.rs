//! Properties of the simulator that hold whatever the program does.

use xmem_simulator::{BlockUse, FrameworkAllocator, PerPool, SegmentState, Stat, Stats};
use xmem_types::Bytes;

pub(super) fn hold<A: FrameworkAllocator>(allocator: &A) -> Result<(), String> {
    let (state, stats) = (allocator.state(), allocator.stats());
    blocks_tile_their_segments(&state)?;
    segments_do_not_overlap(&state)?;
    sums_are_the_figures(&state, &stats)?;
    mappings_are_the_segments(allocator)?;
    figures_are_sound(&stats)
}

fn law(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("law broken: {what}")) }
}

fn blocks_tile_their_segments(state: &[SegmentState]) -> Result<(), String> {
    for segment in state {
        let mut addr = segment.addr;
        for block in &segment.blocks {
            law(block.addr == addr, "a block begins where the one before it ends")?;
            law(block.size.get() > 0 && block.size.get() % 512 == 0, "blocks are whole units")?;
            law(block.requested <= block.size || block.used == BlockUse::Free, "requests fit")?;
            addr.0 += block.size.get();
        }
        law(addr == segment.end(), "blocks fill their segment")?;
        let both_free = |pair: &[_]| match pair {
            [a, b] => is_free(a) && is_free(b),
            _ => false,
        };
        law(!segment.blocks.windows(2).any(both_free), "free neighbors are one block")?;
    }
    Ok(())
}

fn is_free(block: &xmem_simulator::BlockState) -> bool {
    block.used == BlockUse::Free
}

fn segments_do_not_overlap(state: &[SegmentState]) -> Result<(), String> {
    let apart = |pair: &[SegmentState]| pair[0].end() <= pair[1].addr;
    law(state.windows(2).all(apart), "segments lie apart, in the order of their addresses")
}

fn sums_are_the_figures(state: &[SegmentState], stats: &Stats) -> Result<(), String> {
    let blocks = || state.iter().flat_map(|segment| &segment.blocks);
    let sum = |used: &[BlockUse]| -> Bytes {
        blocks().filter(|b| used.contains(&b.used)).map(|b| b.size).sum()
    };
    let active = [BlockUse::Allocated, BlockUse::PendingFree];
    let all = [BlockUse::Allocated, BlockUse::PendingFree, BlockUse::Free];
    law(sum(&active[..1]) == stats.allocated_bytes.all.current, "allocated is a sum")?;
    law(sum(&active) == stats.active_bytes.all.current, "active is a sum")?;
    law(sum(&all) == stats.reserved_bytes.all.current, "reserved is a sum")?;
    let active = blocks().filter(|b| b.used != BlockUse::Free);
    let requested: Bytes = active.map(|b| b.requested).sum();
    law(requested == stats.requested_bytes.all.current, "requested is a sum")
}

/// Of expandable segments, every page that has memory was mapped, and not unmapped again.
fn mappings_are_the_segments<A: FrameworkAllocator>(allocator: &A) -> Result<(), String> {
    let mut mapped = vec![Bytes::ZERO; allocator.segments().len()];
    for mapping in allocator.mappings().iter().filter(|mapping| mapping.died.is_none()) {
        mapped[mapping.segment.index()] += mapping.size;
    }
    for (segment, mapped) in allocator.segments().iter().zip(mapped) {
        if segment.expandable {
            law(segment.size == mapped, "mapped pages are the segment's size")?;
        }
    }
    Ok(())
}

fn figures_are_sound(stats: &Stats) -> Result<(), String> {
    for counts in [stats.allocation, stats.active, stats.segment, stats.inactive_split] {
        sound(counts)?;
    }
    for bytes in [
        stats.allocated_bytes,
        stats.active_bytes,
        stats.requested_bytes,
        stats.reserved_bytes,
        stats.inactive_split_bytes,
    ] {
        let plain = |s: Stat<Bytes>| Stat {
            current: s.current.get(),
            peak: s.peak.get(),
            allocated: s.allocated.get(),
            freed: s.freed.get(),
        };
        let (all, small, large) = (bytes.all, bytes.small_pool, bytes.large_pool);
        sound(PerPool { all: plain(all), small_pool: plain(small), large_pool: plain(large) })?;
    }
    law(stats.allocated_bytes.all.current <= stats.active_bytes.all.current, "held is active")?;
    law(stats.active_bytes.all.current <= stats.reserved_bytes.all.current, "active is reserved")
}

fn sound(figure: PerPool<u64>) -> Result<(), String> {
    let PerPool { all, small_pool: small, large_pool: large } = figure;
    for stat in [all, small, large] {
        law(stat.peak >= stat.current, "a peak is not below the present")?;
        law(stat.allocated - stat.freed == stat.current, "ups and downs add up")?;
    }
    law(all.current == small.current + large.current, "both pools together are all")?;
    law(all.peak <= small.peak + large.peak, "peaks of the pools bound that of all")
}

pub(super) fn nothing_left<A: FrameworkAllocator>(allocator: &A) -> Result<(), String> {
    law(allocator.state().is_empty(), "everything freed and released leaves no segment")?;
    law(allocator.device().used() == Bytes::ZERO, "the device is empty")?;
    let stats = allocator.stats();
    law(stats.reserved_bytes.all.current == Bytes::ZERO, "nothing is reserved")?;
    law(stats.active_bytes.all.current == Bytes::ZERO, "nothing is active")?;
    law(stats.inactive_split.all.current == 0, "nothing is split")
}
