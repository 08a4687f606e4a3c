//! A list as the planners see it: blocks of some size, and time in sections.

use crate::list::PlannedBlock;

/// The blocks of a list that have bytes, with time compressed to the sections between two starts of blocks:
/// a block is live in the sections `start..end`, and two blocks conflict if they share a section. What is live does not
/// grow within a section, so that nothing is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// By the number that planners give a block.
    pub(crate) blocks: Vec<Item>,
    /// Bytes that are live, by section.
    pub(crate) loads: Vec<u64>,
    /// The blocks' ids in the list.
    ids: Vec<u32>,
    /// The number of blocks of the list.
    listed: usize,
}

/// A block of an [`Instance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Bytes, at least one.
    pub(crate) size: u64,
    /// The first section in which it is live.
    pub(crate) start: u32,
    /// The first section in which it is no longer live.
    pub(crate) end: u32,
    /// The ticks for which it is live.
    pub(crate) ticks: u32,
    /// The ticks at which a block begins or ends while it is live. Where each tick is a request, as in a trace, these
    /// are as many as `ticks`.
    pub(crate) requests: u32,
    /// The operator that made it.
    pub(crate) operator: Option<u32>,
}

impl Item {
    /// True if both are live in some section.
    pub(crate) const fn conflicts(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

impl Instance {
    pub(crate) fn new(listed: &[PlannedBlock]) -> Self {
        let with_bytes = || listed.iter().enumerate().filter(|(_, block)| block.size.get() > 0);
        let starts = distinct(with_bytes().map(|(_, block)| block.start));
        let requests = distinct(with_bytes().flat_map(|(_, block)| [block.start, block.end]));
        let place = |ticks: &[u32], tick| ticks.partition_point(|&other| other < tick) as u32;
        let blocks: Vec<Item> = with_bytes()
            .map(|(_, block)| Item {
                size: block.size.get(),
                start: place(&starts, block.start),
                end: place(&starts, block.end),
                ticks: block.end - block.start,
                requests: place(&requests, block.end) - place(&requests, block.start),
                operator: block.operator,
            })
            .collect();
        Self {
            loads: loads(&blocks, starts.len()),
            ids: with_bytes().map(|(id, _)| id as u32).collect(),
            listed: listed.len(),
            blocks,
        }
    }

    /// The same instance with sizes in units of their greatest common divisor, and this divisor.
    pub(crate) fn reduced(&self) -> (Self, u64) {
        let unit = self.blocks.iter().fold(0, |unit, item| gcd(unit, item.size)).max(1);
        let mut reduced = self.clone();
        reduced.blocks.iter_mut().for_each(|item| item.size /= unit);
        reduced.loads.iter_mut().for_each(|load| *load /= unit);
        (reduced, unit)
    }

    /// The number of sections.
    pub(crate) fn sections(&self) -> u32 {
        self.loads.len() as u32
    }

    /// The largest load.
    pub(crate) fn lower_bound(&self) -> u64 {
        self.loads.iter().copied().max().unwrap_or(0)
    }

    /// The end of the highest block.
    pub(crate) fn peak(&self, offsets: &[u64]) -> u64 {
        let ends = self.blocks.iter().zip(offsets).map(|(item, offset)| offset + item.size);
        ends.max().unwrap_or(0)
    }

    /// Offsets of the blocks as offsets of the list.
    pub(crate) fn listed(&self, offsets: &[u64]) -> Vec<u64> {
        let mut listed = vec![0; self.listed];
        for (&id, &offset) in self.ids.iter().zip(offsets) {
            listed[id as usize] = offset;
        }
        listed
    }
}

const fn gcd(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

fn distinct(ticks: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut ticks: Vec<u32> = ticks.collect();
    ticks.sort_unstable();
    ticks.dedup();
    ticks
}

fn loads(blocks: &[Item], sections: usize) -> Vec<u64> {
    let mut changes = vec![0i128; sections + 1];
    for block in blocks {
        changes[block.start as usize] += i128::from(block.size);
        changes[block.end as usize] -= i128::from(block.size);
    }
    changes.pop();
    changes
        .into_iter()
        .scan(0, |load, change| {
            *load += change;
            Some(*load as u64)
        })
        .collect()
}
