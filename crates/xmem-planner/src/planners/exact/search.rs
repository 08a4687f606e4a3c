//! A complete search for a plan within a capacity.
//!
//! If there is a plan, there is one in which every block lies on the floor or right above another one that it conflicts
//! with, as otherwise it could be lowered. Such a plan is made by placing a block as low as it can go, before all that
//! will lie above it, as in MiniMalloc (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated
//! Machine Learning", ASPLOS 2023). Here, the choice is one of two (Le Pape et al., "Time-versus-capacity compromises in
//! project scheduling", 1994): a block below which nothing else fits lies at its lowest place, or it lies above another
//! block that is left, and its lowest place is higher.
//!
//! What rules a choice out, and what follows from it:
//!
//! - In no section do the bytes of blocks whose lowest places are at least some height exceed what the capacity
//!   leaves above that height.
//! - A block that has no room for all others of a section above it lies above one of them.
//! - A place that is not right above a placed block is none.
//! - Where no block that is left crosses from one section to the next, the parts before and behind are searched
//!   alone.
//! - A part whose search failed is not searched again with the same blocks and lowest places.

use crate::instance::{Instance, Item};
use std::collections::BTreeSet;

/// The end of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Offsets within the capacity.
    Plan(Vec<u64>),
    /// There are none.
    Nothing,
    /// The search was not finished.
    Unknown,
}

/// The most states that failed and are kept.
const MAX_FAILED: usize = 1 << 18;

/// The most rounds of conclusions from one step: two blocks may raise each other byte by byte.
const MAX_CONCLUSIONS: usize = 16;

/// The steps between two looks at the clock.
const STEPS_PER_LOOK: u64 = 32;

/// A search within a capacity.
pub(super) struct Search<'a> {
    capacity: u64,
    blocks: &'a [Item],
    /// By block: its place among blocks with the same lowest place.
    ranks: &'a [u32],
    /// By block: the lowest place that is left to it, or its offset if it was placed.
    lowest: Vec<u64>,
    /// By block: the highest end of any placed block that it conflicts with.
    support: Vec<u64>,
    placed: Vec<bool>,
    /// By section: bytes of blocks that are left.
    left: Vec<u64>,
    /// By section: the blocks that are left and live both in it and in the one before.
    crossing: Vec<u32>,
    trail: Vec<Change>,
    /// By section, for [`fits`](Self::fits).
    above: Vec<u64>,
    failed: BTreeSet<u128>,
    nodes: u64,
    most_nodes: u64,
    stop: &'a (dyn Fn() -> bool + Sync),
}

/// A change of the state, with what was there before.
#[derive(Clone, Copy, Debug)]
enum Change {
    Placed(u32),
    Lowest(u32, u64),
    Support(u32, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Failed,
    Stopped,
}

/// Some sections, and the blocks in them that are left.
struct Part {
    blocks: Vec<u32>,
    sections: Sections,
    /// The least room above any of the blocks.
    room: u64,
    /// Its state as one number.
    key: u128,
}

/// The sections from `start` up to but not including `end`.
#[derive(Clone, Copy, Debug)]
struct Sections {
    start: u32,
    end: u32,
}

impl Sections {
    const NONE: Self = Self { start: u32::MAX, end: 0 };

    const fn of(item: &Item) -> Self {
        Self { start: item.start, end: item.end }
    }

    fn joined(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    fn common(self, other: Self) -> Self {
        Self { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    const fn is_empty(self) -> bool {
        self.start >= self.end
    }

    const fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl<'a> Search<'a> {
    /// A search that prefers blocks with low `ranks` and ends when `stop` says so.
    pub(super) fn new(
        instance: &'a Instance,
        ranks: &'a [u32],
        capacity: u64,
        stop: &'a (dyn Fn() -> bool + Sync),
    ) -> Self {
        let blocks = &instance.blocks;
        let mut crossing = vec![0; instance.loads.len()];
        for item in blocks {
            crossing[Sections::of(item).range()].iter_mut().skip(1).for_each(|count| *count += 1);
        }
        Self {
            capacity,
            ranks,
            lowest: vec![0; blocks.len()],
            support: vec![0; blocks.len()],
            placed: vec![false; blocks.len()],
            left: instance.loads.clone(),
            crossing,
            trail: Vec::new(),
            above: vec![0; instance.loads.len()],
            failed: BTreeSet::new(),
            nodes: 0,
            most_nodes: 0,
            stop,
            blocks,
        }
    }

    /// Searches with at most `nodes` steps.
    pub(super) fn run(&mut self, nodes: u64) -> Found {
        self.most_nodes = nodes;
        let sections = Sections { start: 0, end: self.left.len() as u32 };
        let blocks: Vec<u32> = (0..self.blocks.len() as u32).collect();
        let whole = Part { blocks, sections, room: 0, key: 0 };
        if !self.follow(&whole, sections) {
            return Found::Nothing;
        }
        match self.parts(&whole, None).map_or(Outcome::Failed, |parts| self.all(parts)) {
            Outcome::Done => Found::Plan(self.lowest.clone()),
            Outcome::Failed => Found::Nothing,
            Outcome::Stopped => Found::Unknown,
        }
    }

    /// The steps that were taken.
    pub(super) const fn nodes(&self) -> u64 {
        self.nodes
    }

    fn all(&mut self, mut parts: Vec<Part>) -> Outcome {
        parts.sort_by_key(|part| part.room);
        for part in &parts {
            match self.part(part) {
                Outcome::Done => {}
                other => return other,
            }
        }
        Outcome::Done
    }

    /// Places the blocks of a part, or leaves the state as it was.
    fn part(&mut self, part: &Part) -> Outcome {
        let begin = self.trail.len();
        loop {
            if self.nodes >= self.most_nodes
                || (self.nodes.is_multiple_of(STEPS_PER_LOOK) && (self.stop)())
            {
                return Outcome::Stopped;
            }
            self.nodes += 1;
            let block = self.select(part);
            let mark = self.trail.len();
            if self.support[block as usize] == self.lowest[block as usize] {
                let outcome = self.with_placed(part, block);
                if outcome != Outcome::Failed {
                    return outcome;
                }
                self.undo(mark);
            }
            let item = self.blocks[block as usize];
            let next = self.lowest_end(part, block, |other| other.conflicts(&item));
            let raised = next.is_some_and(|next| {
                self.raise(block, next);
                self.follow(part, Sections::of(&item))
            });
            if !raised {
                break;
            }
        }
        self.undo(begin);
        if self.failed.len() < MAX_FAILED {
            self.failed.insert(part.key);
        }
        Outcome::Failed
    }

    fn with_placed(&mut self, part: &Part, block: u32) -> Outcome {
        if !self.place(part, block) {
            return Outcome::Failed;
        }
        self.parts(part, Some(block)).map_or(Outcome::Failed, |parts| self.all(parts))
    }

    /// The block whose place is decided next: nothing that is left fits below it.
    fn select(&self, part: &Part) -> u32 {
        let key = |&&block: &&u32| (self.lowest[block as usize], self.ranks[block as usize]);
        let mut block = *part.blocks.iter().min_by_key(key).expect("a part has blocks");
        loop {
            let item = &self.blocks[block as usize];
            let lowest = self.lowest[block as usize];
            let fits = |&&other: &&u32| {
                other != block
                    && self.end(other) <= lowest
                    && self.blocks[other as usize].conflicts(item)
            };
            let below = part.blocks.iter().filter(fits);
            match below.min_by_key(|&&other| (self.end(other), self.ranks[other as usize])) {
                Some(&other) => block = other,
                None => return block,
            }
        }
    }

    /// The lowest place at which the block ends.
    fn end(&self, block: u32) -> u64 {
        self.lowest[block as usize] + self.blocks[block as usize].size
    }

    /// The lowest end of any other block of the part that is left.
    fn lowest_end(&self, part: &Part, block: u32, of: impl Fn(&Item) -> bool) -> Option<u64> {
        let counts = |&other: &u32| {
            other != block && !self.placed[other as usize] && of(&self.blocks[other as usize])
        };
        part.blocks.iter().copied().filter(counts).map(|other| self.end(other)).min()
    }

    /// Places a block at the lowest place that is left to it, below all that is left and conflicts with it.
    fn place(&mut self, part: &Part, block: u32) -> bool {
        let (item, end) = (self.blocks[block as usize], self.end(block));
        self.placed[block as usize] = true;
        self.trail.push(Change::Placed(block));
        let range = Sections::of(&item).range();
        self.left[range.clone()].iter_mut().for_each(|left| *left -= item.size);
        self.crossing[range].iter_mut().skip(1).for_each(|count| *count -= 1);
        let mut raised = Sections::NONE;
        for &other in &part.blocks {
            let above = &self.blocks[other as usize];
            if self.placed[other as usize] || !above.conflicts(&item) {
                continue;
            }
            if self.support[other as usize] < end {
                self.trail.push(Change::Support(other, self.support[other as usize]));
                self.support[other as usize] = end;
            }
            if self.lowest[other as usize] < end {
                raised = raised.joined(Sections::of(above));
                self.raise(other, end);
            }
        }
        self.follow(part, raised)
    }

    fn raise(&mut self, block: u32, to: u64) {
        self.trail.push(Change::Lowest(block, self.lowest[block as usize]));
        self.lowest[block as usize] = to;
    }

    /// Draws the conclusions from lowest places that were raised in these sections; false if there is no plan.
    fn follow(&mut self, part: &Part, mut raised: Sections) -> bool {
        for _ in 0..MAX_CONCLUSIONS {
            if raised.is_empty() {
                break;
            }
            if !self.fits(part, raised) {
                return false;
            }
            let mut next = Sections::NONE;
            for &block in &part.blocks {
                let item = self.blocks[block as usize];
                let concerned = !Sections::of(&item).common(raised).is_empty();
                if self.placed[block as usize] || !concerned {
                    continue;
                }
                let lefts = item.start..item.end;
                let fullest = lefts.max_by_key(|&section| self.left[section as usize]);
                let section = fullest.expect("a block is live in some section");
                let lowest = self.lowest[block as usize];
                if lowest + self.left[section as usize] <= self.capacity {
                    continue;
                }
                let live = |other: &Item| other.start <= section && section < other.end;
                match self.lowest_end(part, block, live) {
                    None => return false,
                    Some(end) if end > lowest => {
                        self.raise(block, end);
                        next = next.joined(Sections::of(&item));
                    }
                    Some(_) => {}
                }
            }
            raised = next;
        }
        // Places that were raised last may be too high.
        self.fits(part, raised)
    }

    /// Adds the blocks up from the highest one: what lies at some height or above it must fit there.
    fn fits(&mut self, part: &Part, sections: Sections) -> bool {
        if sections.is_empty() {
            return true;
        }
        let common = |block: u32| Sections::of(&self.blocks[block as usize]).common(sections);
        let concerned = |block: &u32| !self.placed[*block as usize] && !common(*block).is_empty();
        let mut order: Vec<(u64, u32)> = part
            .blocks
            .iter()
            .copied()
            .filter(concerned)
            .map(|block| (self.lowest[block as usize], block))
            .collect();
        order.sort_unstable();
        self.above[sections.range()].fill(0);
        for &(lowest, block) in order.iter().rev() {
            let item = &self.blocks[block as usize];
            let mut most = 0;
            for above in &mut self.above[Sections::of(item).common(sections).range()] {
                *above += item.size;
                most = most.max(*above);
            }
            if lowest + most > self.capacity {
                return false;
            }
        }
        true
    }

    fn undo(&mut self, mark: usize) {
        for change in self.trail.drain(mark..).rev() {
            match change {
                Change::Lowest(block, lowest) => self.lowest[block as usize] = lowest,
                Change::Support(block, support) => self.support[block as usize] = support,
                Change::Placed(block) => {
                    let item = &self.blocks[block as usize];
                    self.placed[block as usize] = false;
                    let range = Sections::of(item).range();
                    self.left[range.clone()].iter_mut().for_each(|left| *left += item.size);
                    self.crossing[range].iter_mut().skip(1).for_each(|count| *count += 1);
                }
            }
        }
    }

    /// The parts that no block crosses, without a block that was placed; none if one of them failed before.
    fn parts(&self, whole: &Part, without: Option<u32>) -> Option<Vec<Part>> {
        let mut parts: Vec<Part> = Vec::new();
        let mut part_of = Vec::with_capacity(whole.sections.range().len());
        for section in whole.sections.range() {
            let start = section as u32;
            if parts.is_empty() || self.crossing[section] == 0 {
                let sections = Sections { start, end: start };
                parts.push(Part { blocks: Vec::new(), sections, room: u64::MAX, key: 0 });
            }
            part_of.push(parts.len() - 1);
            parts.last_mut().expect("one was begun").sections.end = start + 1;
        }
        for &block in whole.blocks.iter().filter(|&&block| Some(block) != without) {
            let item = &self.blocks[block as usize];
            let part = &mut parts[part_of[(item.start - whole.sections.start) as usize]];
            part.blocks.push(block);
            let lowest = self.lowest[block as usize];
            let supported = self.support[block as usize] == lowest;
            part.key ^= state(block, lowest, supported);
            let most = self.left[Sections::of(item).range()].iter().max();
            let used = lowest + most.expect("a block is live in some section");
            part.room = part.room.min(self.capacity.saturating_sub(used));
        }
        parts.retain(|part| !part.blocks.is_empty());
        parts.iter().all(|part| !self.failed.contains(&part.key)).then_some(parts)
    }
}

/// A number for what a search knows of a block; those of all blocks of a part are combined by exclusive or.
fn state(block: u32, lowest: u64, supported: bool) -> u128 {
    // The finalizer of splitmix64.
    let mix = |mut number: u64| {
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    };
    let block = u64::from(block) << 1 | u64::from(supported);
    let low = mix(lowest.wrapping_add(mix(block.wrapping_add(0x9e37_79b9_7f4a_7c15))));
    let high = mix(low ^ lowest.rotate_left(23) ^ (block << 31));
    u128::from(high) << 64 | u128::from(low)
}
