//! The skyline: for each section the memory that is taken, and one rule that places blocks on it for any order
//! of preference. [`bestfit`](super::bestfit) is one order, other planners try many.
//!
//! The rule (Sekiyama et al., "Profile-guided memory optimization for deep neural networks", after the best-fit
//! heuristic of Burke et al. for strips): of the segments of equal height, take the lowest, and of these the leftmost;
//! place there the first block of the order that lives within it; if there is none, lift the segment to its lower
//! neighbor.
//!
//! Segments that are lower than both neighbors do not affect each other: a block that lives within one lives
//! within no other, and a segment waits until all lower neighbors have reached its height. Hence the order in which
//! such segments are taken does not matter, and [`Skyline::place`] takes the nearest rather than the lowest.

mod candidates;

use crate::instance::Instance;
use candidates::Candidates;

/// The height of the walls at both ends of time.
const WALL: u64 = u64::MAX;
/// The sections that [`Skyline::place`] visits, for each block and section, in looking for a section whose peak
/// will be too high. It stops looking then, and compares only the ends of blocks.
const VISITS_LIMIT: usize = 64;

/// The arrays of a skyline, to be used for many orders.
pub(crate) struct Skyline<'a> {
    instance: &'a Instance,
    candidates: Candidates,
    /// By the first section of a segment: the memory taken.
    height: Vec<u64>,
    /// By the first section of a segment: its end, where the next one begins.
    end: Vec<u32>,
    /// By the first section of a segment: where the one before begins.
    previous: Vec<u32>,
    /// By section: the end of its highest block if no memory is lost there from now on.
    expected: Vec<u64>,
    offsets: Vec<u64>,
}

/// The offsets that the skyline gives the blocks, which it prefers in this order.
pub(crate) fn place(instance: &Instance, order: &[u32]) -> Vec<u64> {
    let mut skyline = Skyline::new(instance);
    skyline.place(order, WALL);
    skyline.offsets
}

impl<'a> Skyline<'a> {
    pub(crate) fn new(instance: &'a Instance) -> Self {
        let sections = instance.loads.len();
        Self {
            instance,
            candidates: Candidates::new(&instance.blocks),
            height: vec![0; sections],
            end: vec![0; sections],
            previous: vec![0; sections],
            expected: vec![0; sections],
            offsets: vec![0; instance.blocks.len()],
        }
    }

    /// Places all blocks, which are preferred in this order, and returns the peak; `None` if it is
    /// above `bound`, as soon as this is known.
    pub(crate) fn place(&mut self, order: &[u32], bound: u64) -> Option<u64> {
        if order.is_empty() {
            return Some(0);
        }
        self.candidates.fill(order);
        self.expected.copy_from_slice(&self.instance.loads);
        (self.height[0], self.end[0], self.previous[0]) = (0, self.instance.sections(), 0);
        let mut visits = VISITS_LIMIT.saturating_mul(self.height.len() + order.len());
        let (mut segment, mut left, mut peak) = (0, order.len(), 0);
        while left > 0 {
            let (height, before, after) = self.neighborhood(segment);
            if before < height {
                segment = self.previous[segment as usize];
            } else if after < height {
                segment = self.end[segment as usize];
            } else if let Some(rank) = self.candidates.take(segment, self.end[segment as usize]) {
                let block = order[rank as usize];
                let top = height + self.instance.blocks[block as usize].size;
                if top > bound {
                    return None;
                }
                self.offsets[block as usize] = height;
                peak = peak.max(top);
                left -= 1;
                segment = self.cover(segment, block, top);
            } else {
                let to = before.min(after);
                if bound < WALL && !self.expect(segment, to, bound, &mut visits) {
                    return None;
                }
                self.height[segment as usize] = to;
                segment = self.merge(segment);
            }
        }
        Some(peak)
    }

    /// The offsets of the last plan, by block.
    pub(crate) fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// The height of a segment, of the one before and of the one after it.
    fn neighborhood(&self, segment: u32) -> (u64, u64, u64) {
        let height = |segment: u32| self.height[segment as usize];
        let before = if segment == 0 { WALL } else { height(self.previous[segment as usize]) };
        let end = self.end[segment as usize];
        let after = if end == self.instance.sections() { WALL } else { height(end) };
        (height(segment), before, after)
    }

    /// Takes the memory up to `top` in the sections of a block, which lie in `segment`, and returns a segment there.
    fn cover(&mut self, segment: u32, block: u32, top: u64) -> u32 {
        let item = &self.instance.blocks[block as usize];
        let end = self.end[segment as usize];
        if item.end < end {
            self.split(segment, item.end);
        }
        if segment < item.start {
            self.split(segment, item.start);
        }
        self.height[item.start as usize] = top;
        self.merge(item.start)
    }

    /// Makes two segments of one.
    fn split(&mut self, segment: u32, at: u32) {
        let end = self.end[segment as usize];
        self.height[at as usize] = self.height[segment as usize];
        self.end[at as usize] = end;
        self.previous[at as usize] = segment;
        self.end[segment as usize] = at;
        if end < self.instance.sections() {
            self.previous[end as usize] = at;
        }
    }

    /// Makes one segment of `segment` and of its neighbors that have its height, and returns it.
    fn merge(&mut self, segment: u32) -> u32 {
        let (height, before, after) = self.neighborhood(segment);
        if after == height {
            self.join(segment, self.end[segment as usize]);
        }
        if before == height {
            let previous = self.previous[segment as usize];
            self.join(previous, segment);
            return previous;
        }
        segment
    }

    /// Makes one segment of two that follow each other.
    fn join(&mut self, segment: u32, next: u32) {
        let end = self.end[next as usize];
        self.end[segment as usize] = end;
        if end < self.instance.sections() {
            self.previous[end as usize] = segment;
        }
    }

    /// Adds what is lost when `segment` is lifted to the peaks that its sections will have; false if one
    /// of them is above `bound`. A section all of whose blocks are placed loses nothing.
    fn expect(&mut self, segment: u32, to: u64, bound: u64, visits: &mut usize) -> bool {
        let sections = segment as usize..self.end[segment as usize] as usize;
        *visits = visits.saturating_sub(sections.len());
        if *visits == 0 {
            return true;
        }
        let height = self.height[segment as usize];
        let mut highest = 0;
        for expected in &mut self.expected[sections] {
            let lost = if *expected > height { to - height } else { 0 };
            *expected += lost;
            highest = highest.max(if lost > 0 { *expected } else { 0 });
        }
        highest <= bound
    }
}

#[cfg(test)]
mod tests;
