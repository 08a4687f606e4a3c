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
use std::time::Instant;

/// The height of the walls at both ends of time.
const WALL: u64 = u64::MAX;
/// The sections that [`Skyline::place`] visits, for each block and section, to know their heights at the end. It stops
/// then, and compares only the ends of blocks: lists of which this is true are long.
const VISITS_LIMIT: usize = 64;
/// The segments that are visited between two looks at the clock.
const TURN: u32 = 4096;

/// The plans that are of interest. The heights that sections will have at the end are known before, at least in part: what
/// is live there, and what is lost below. Hence a plan that is of no interest is left early.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// The highest peak.
    pub(crate) peak: u64,
    /// The height that sections should not exceed: the lower bound or more.
    pub(crate) target: u64,
    /// The largest sum of what sections exceed the target by.
    pub(crate) excess: u128,
    /// The time at which the plan is given up.
    pub(crate) deadline: Option<Instant>,
}

/// The result of placing all blocks in some order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The highest end of a block.
    pub(crate) peak: u64,
    /// The sum of what sections exceed the target by.
    pub(crate) excess: u128,
}

/// The arrays of a skyline, to be used for many orders.
#[derive(Clone)]
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
    skyline.place(order, &Bound::NONE);
    skyline.offsets
}

impl<'a> Skyline<'a> {
    pub(crate) fn new(instance: &'a Instance) -> Self {
        let sections = instance.loads.len();
        Self {
            instance,
            candidates: Candidates::new(instance),
            height: vec![0; sections],
            end: vec![0; sections],
            previous: vec![0; sections],
            expected: vec![0; sections],
            offsets: vec![0; instance.blocks.len()],
        }
    }

    /// Places all blocks, which are preferred in this order; `None` if the plan is not within `bound`, as soon as
    /// this is known, or if it is not complete at the deadline.
    pub(crate) fn place(&mut self, order: &[u32], bound: &Bound) -> Option<Outcome> {
        let mut outcome = Outcome { peak: 0, excess: 0 };
        if order.is_empty() {
            return Some(outcome);
        }
        self.candidates.fill(&self.instance.blocks, order);
        self.expected.copy_from_slice(&self.instance.loads);
        (self.height[0], self.end[0], self.previous[0]) = (0, self.instance.sections(), 0);
        let mut visits = VISITS_LIMIT.saturating_mul(self.height.len() + order.len());
        let (mut segment, mut left) = (0, order.len());
        let mut turns = 0u32;
        while left > 0 {
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(TURN)
                && bound.deadline.is_some_and(|deadline| Instant::now() >= deadline)
            {
                return None;
            }
            let (height, before, after) = self.neighborhood(segment);
            if before < height {
                segment = self.previous[segment as usize];
            } else if after < height {
                segment = self.end[segment as usize];
            } else if let Some(rank) = self.candidates.take(segment, self.end[segment as usize]) {
                let block = order[rank as usize];
                let top = height + self.instance.blocks[block as usize].size;
                if top > bound.peak {
                    return None;
                }
                self.offsets[block as usize] = height;
                outcome.peak = outcome.peak.max(top);
                left -= 1;
                segment = self.cover(segment, block, top);
            } else {
                let to = before.min(after);
                let sections = self.end[segment as usize] - segment;
                visits = visits.saturating_sub(sections as usize);
                if visits > 0 && bound.is_one() {
                    let highest = self.expect(segment, to, bound.target, &mut outcome.excess);
                    if highest > bound.peak || outcome.excess > bound.excess {
                        return None;
                    }
                }
                self.height[segment as usize] = to;
                segment = self.merge(segment);
            }
        }
        Some(outcome)
    }

    /// By section: the end of its highest block in the last plan, unless the list is very long.
    pub(crate) fn tops(&self) -> &[u64] {
        &self.expected
    }

    /// The offsets of the last plan, by block.
    pub(crate) fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// The height of a segment, of the one before and of the one after it.
    #[inline]
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
    #[inline]
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
    #[inline]
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
    #[inline]
    fn join(&mut self, segment: u32, next: u32) {
        let end = self.end[next as usize];
        self.end[segment as usize] = end;
        if end < self.instance.sections() {
            self.previous[end as usize] = segment;
        }
    }

    /// Adds what is lost when `segment` is lifted to the heights that its sections will have, and what these
    /// exceed the target by to `excess`; returns the largest of them. A section all of whose blocks are placed loses nothing.
    fn expect(&mut self, segment: u32, to: u64, target: u64, excess: &mut u128) -> u64 {
        let height = self.height[segment as usize];
        let lost = to - height;
        let mut highest = 0;
        for expected in &mut self.expected[segment as usize..self.end[segment as usize] as usize] {
            if *expected > height {
                let top = *expected + lost;
                if top > target {
                    *excess += u128::from(top - target.max(*expected));
                }
                highest = highest.max(top);
                *expected = top;
            }
        }
        highest
    }
}

impl Bound {
    /// All plans are of interest.
    pub(crate) const NONE: Self =
        Self { peak: WALL, target: WALL, excess: u128::MAX, deadline: None };

    /// Plans up to this peak.
    pub(crate) const fn peak(peak: u64) -> Self {
        Self { peak, ..Self::NONE }
    }

    const fn is_one(&self) -> bool {
        self.peak < WALL || self.target < WALL
    }
}

#[cfg(test)]
mod tests;
