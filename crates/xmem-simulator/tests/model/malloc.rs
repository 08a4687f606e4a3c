//! `DeviceCachingAllocator::malloc`.

use super::place::{Pool, Segment, Use};
use super::sizes::{max_split, rounded, segment_size};
use super::{MIB, Model, Outcome};
use xmem_simulator::{EventAction, OnExcess};

/// The block that is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) requested: u64,
    /// After rounding.
    pub(super) size: u64,
    /// The size of a segment for it.
    pub(super) segment: u64,
    pub(super) stream: u32,
    pub(super) pool: Pool,
    /// True if expandable segments count for it.
    pub(super) expandable: bool,
}

/// A free block: its segment and its place in it.
pub(super) type Found = (usize, usize);

/// The reason why no block was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoBlock {
    /// The device or the limit is full.
    Full,
    /// `throw_on_cudamalloc_oom`.
    Rejected,
}

impl Model {
    pub(super) fn allocate(&mut self, n: u64, stream: u32) -> Outcome {
        if n == 0 {
            return Outcome::Nothing;
        }
        if n >= 1 << 60 {
            return Outcome::TooLarge;
        }
        self.current_stream = stream;
        if !self.is_capturing() {
            self.process_events();
        }
        let size = rounded(n, &self.config);
        let pool = self.pool_for(size, stream);
        let mut wanted = Wanted {
            requested: n,
            size,
            segment: segment_size(size, &self.config),
            stream,
            pool,
            expandable: self.config.expandable_segments,
        };
        let mut found = self.get_free_block(&wanted);
        if found.is_none() {
            if self.limit().is_some() && self.config.garbage_collection_threshold.is_some() {
                self.collect_garbage();
            }
            match self.new_memory(&mut wanted) {
                Ok(new) => found = Some(new),
                Err(NoBlock::Rejected) => self.figures.oom_rejections += 1,
                Err(NoBlock::Full) => {
                    self.figures.ooms += 1;
                    let free = self.device.free_bytes().unwrap_or(0);
                    self.tell(EventAction::Oom, free, size, stream);
                }
            }
        }
        match found {
            Some((s, b)) => Outcome::Block(self.hand_out(s, b, &wanted)),
            None => Outcome::Full { rounded: size, tried: wanted.segment },
        }
    }

    /// Everything that is tried when no cached block fits.
    fn new_memory(&mut self, wanted: &mut Wanted) -> Result<Found, NoBlock> {
        let first = self.alloc_block(wanted);
        if first != Err(NoBlock::Full) {
            return first;
        }
        let last_resort_first = self.since(11);
        if last_resort_first && let Some(found) = self.last_resort_block(wanted) {
            return Ok(found);
        }
        if self.config.max_split_size.is_some()
            && self.release_available(wanted)
            && let Ok(found) = self.alloc_block(wanted)
        {
            return Ok(found);
        }
        if !self.is_capturing() {
            self.release_cached();
            self.figures.retries += 1;
            if let Ok(found) = self.alloc_block(wanted) {
                return Ok(found);
            }
        }
        if !last_resort_first && let Some(found) = self.last_resort_block(wanted) {
            return Ok(found);
        }
        Err(NoBlock::Full)
    }

    /// `get_free_block`: the best fit, which is refused, not replaced, where the limits of
    /// splitting rule it out.
    pub(super) fn get_free_block(&mut self, wanted: &Wanted) -> Option<Found> {
        if self.limit().is_some() && self.config.garbage_collection_threshold.is_some() {
            *self.searches.entry(wanted.pool).or_default() += 1;
        }
        let candidates = self.free_blocks(wanted.pool, Some(wanted.stream));
        let mut fitting = candidates.into_iter().filter(|&at| self.size_of(at) >= wanted.size);
        let mut chosen = fitting.next()?;
        if self.segments[chosen.0].expandable {
            if wanted.expandable {
                for next in fitting {
                    if !self.segments[chosen.0].expandable
                        || self.could_grow_to(next) >= self.could_grow_to(chosen)
                    {
                        break;
                    }
                    chosen = next;
                }
            } else {
                chosen = fitting.find(|&(s, _)| !self.segments[s].expandable)?;
            }
        }
        let limit = max_split(&self.config);
        let size = self.size_of(chosen);
        let slack = self.config.max_non_split_rounding.get();
        let too_large =
            if wanted.size < limit { size >= limit } else { size >= wanted.size + slack };
        (!too_large).then_some(chosen)
    }

    /// The size that an expandable block could grow to in its place.
    fn could_grow_to(&self, (s, b): Found) -> u64 {
        let blocks = &self.segments[s].blocks;
        let next = blocks.get(b + 1).filter(|next| next.used == Use::Unmapped);
        blocks[b].size + next.map_or(0, |next| next.size)
    }

    pub(super) fn size_of(&self, (s, b): Found) -> u64 {
        self.segments[s].blocks[b].size
    }

    /// The free blocks of a pool in the order of `BlockPool::blocks`: by stream, size, address; in
    /// 2.12 by stream, size, age of the block; since then by stream, size, age of the segment,
    /// address.
    pub(super) fn free_blocks(&self, pool: Pool, stream: Option<u32>) -> Vec<Found> {
        let mut found = Vec::new();
        for (s, segment) in self.segments.iter().enumerate() {
            if segment.pool != pool || stream.is_some_and(|stream| stream != segment.stream) {
                continue;
            }
            for (b, block) in segment.blocks.iter().enumerate() {
                if block.used.is_free() {
                    found.push((s, b));
                }
            }
        }
        found.sort_by_key(|&(s, b)| {
            let segment = &self.segments[s];
            let age = match () {
                () if self.since(13) => segment.made,
                () if self.since(12) => segment.blocks[b].number,
                () => 0,
            };
            (segment.stream, segment.blocks[b].size, age, segment.addr_of(b))
        });
        found
    }

    /// `alloc_block`.
    fn alloc_block(&mut self, wanted: &Wanted) -> Result<Found, NoBlock> {
        if self.limit().is_some_and(|limit| self.reserved() + wanted.segment > limit) {
            return Err(NoBlock::Full);
        }
        if self.config.on_excess == OnExcess::Refuse && self.exceeds_fraction(wanted.segment) {
            return Err(NoBlock::Rejected);
        }
        let found = if wanted.expandable {
            self.grow(wanted).ok_or(NoBlock::Full)?
        } else {
            let addr = self.device.malloc(wanted.segment).ok_or(NoBlock::Full)?;
            self.add_segment(wanted, addr, wanted.segment, Use::Free);
            self.figures.device_allocs += 1;
            self.tell(EventAction::SegmentAlloc, addr, wanted.segment, wanted.stream);
            (self.segments.len() - 1, 0)
        };
        if let Some(pool) = wanted.pool.private {
            self.pools.get_mut(&pool).expect("in use").device_blocks += 1;
        }
        Ok(found)
    }

    pub(super) fn add_segment(&mut self, wanted: &Wanted, addr: u64, size: u64, used: Use) {
        self.segments_made += 1;
        let block = self.new_block(size, used);
        self.segments.push(Segment {
            addr,
            made: self.segments_made,
            stream: wanted.stream,
            pool: wanted.pool,
            expandable: used == Use::Unmapped,
            blocks: vec![block],
        });
    }

    /// The memory that a fraction leaves the process (`setMemoryFraction`).
    pub(super) fn limit(&self) -> Option<u64> {
        let fraction = self.fraction?;
        if self.since(10) && fraction >= 1.0 {
            return None;
        }
        let part = fraction * self.device.total? as f64;
        Some(if self.since(13) { part.round() as u64 } else { part as u64 })
    }

    /// Here a fraction of 1 counts too; a smaller one was a limit already.
    fn exceeds_fraction(&self, more: u64) -> bool {
        let part = |total: u64| (self.fraction.unwrap_or(1.0) * total as f64) as u64;
        self.device.total.is_some_and(|total| self.reserved() + more > part(total))
    }

    /// `alloc_found_block`: the front of a block, or all of it. Tells where it is.
    fn hand_out(&mut self, s: usize, b: usize, wanted: &Wanted) -> u64 {
        let rest = self.size_of((s, b)) - wanted.size;
        let splits = if self.splits_never(self.segments[s].pool) {
            false
        } else if wanted.pool.small || wanted.expandable {
            rest >= 512
        } else {
            wanted.size < max_split(&self.config) && rest > MIB
        };
        let held = Use::Held { requested: wanted.requested };
        if splits {
            let front = self.new_block(wanted.size, held);
            let searches = self.searches.get(&wanted.pool).copied().unwrap_or(0);
            let remaining = &mut self.segments[s].blocks[b];
            remaining.size = rest;
            remaining.free_since = searches;
            self.segments[s].blocks.insert(b, front);
        } else {
            self.segments[s].blocks[b].used = held;
        }
        self.lives += 1;
        self.segments[s].blocks[b].life = self.lives;
        let addr = self.segments[s].addr_of(b);
        self.tell(EventAction::Alloc, addr, wanted.requested, wanted.stream);
        addr
    }
}
