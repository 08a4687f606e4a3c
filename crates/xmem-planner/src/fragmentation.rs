//! The free memory below the peak of a plan, and how much of it a request of some size cannot use.

use crate::list::BlockList;
use crate::plan::Plan;
use std::collections::BTreeMap;
use xmem_types::Bytes;

/// The free memory of a placement at one moment, piece by piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreePieces(Vec<Bytes>);

/// A placement at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The tick: what is requested at it is included.
    pub tick: u32,
    /// Bytes that are live.
    pub load: Bytes,
    /// The end of the highest live block; of an allocator, the bytes that it has reserved.
    pub top: Bytes,
    /// The free memory.
    pub free: FreePieces,
}

impl Moment {
    /// The bytes below the top that are not live.
    #[must_use]
    pub fn waste(&self) -> Bytes {
        self.top.saturating_sub(self.load)
    }
}

impl FreePieces {
    /// The free memory that consists of these pieces.
    #[must_use]
    pub fn new(pieces: Vec<Bytes>) -> Self {
        Self(pieces)
    }

    /// All free bytes.
    #[must_use]
    pub fn total(&self) -> Bytes {
        self.0.iter().copied().sum()
    }

    /// The number of pieces.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The largest piece; zero if there is none.
    #[must_use]
    pub fn largest(&self) -> Bytes {
        self.0.iter().copied().max().unwrap_or_default()
    }

    /// The part of the free bytes in pieces that are too small for `request`, from 0 to 1; 0 if nothing is free.
    /// The exact form of the index of [`unusable_in_class`](Self::unusable_in_class).
    #[must_use]
    pub fn unusable(&self, request: Bytes) -> f64 {
        self.part_outside(self.0.iter().filter(|&&piece| piece >= request).map(|piece| piece.get()))
    }

    /// The unusable free space index of requests of 2^`class` bytes (Gorman and Healy, "Supporting superpage
    /// allocation without additional hardware support", equation 1): free pieces count as the power of two that they
    /// hold.
    #[must_use]
    pub fn unusable_in_class(&self, class: u32) -> f64 {
        let classes = self.0.iter().filter_map(|piece| piece.get().checked_ilog2());
        self.part_outside(classes.filter(|&of| of >= class).map(|of| 1 << of))
    }

    fn part_outside(&self, usable: impl Iterator<Item = u64>) -> f64 {
        match self.total().get() {
            0 => 0.0,
            total => (total - usable.sum::<u64>()) as f64 / total as f64,
        }
    }
}

/// The moments of a plan at these ticks, which ascend. Free memory is what lies between live blocks below the peak of
/// the plan.
#[must_use]
pub fn moments(list: &BlockList, plan: &Plan, ticks: &[u32]) -> Vec<Moment> {
    let blocks = list.blocks();
    let ids = || (0..blocks.len()).filter(|&id| blocks[id].size.get() > 0);
    let mut starts: Vec<usize> = ids().collect();
    let mut ends = starts.clone();
    starts.sort_by_key(|&id| blocks[id].start);
    ends.sort_by_key(|&id| blocks[id].end);
    let (mut starts, mut ends) = (starts.into_iter().peekable(), ends.into_iter().peekable());
    let mut live: BTreeMap<Bytes, usize> = BTreeMap::new();
    let mut moment = |&tick: &u32| {
        // Blocks are placed and removed in the order of time: an offset is free again before it is used again.
        loop {
            let begin = starts.peek().map(|&id| blocks[id].start).filter(|&start| start <= tick);
            let ended = ends.peek().map(|&id| blocks[id].end).filter(|&end| end <= tick);
            if let Some(end) = ended
                && begin.is_none_or(|start| end <= start)
            {
                ends.next().map(|id| live.remove(&plan.offsets()[id]));
            } else if begin.is_some() {
                starts.next().map(|id| live.insert(plan.offsets()[id], id));
            } else {
                break;
            }
        }
        let (mut pieces, mut load, mut covered) = (Vec::new(), Bytes::ZERO, Bytes::ZERO);
        for (&offset, &id) in &live {
            pieces.push(offset.saturating_sub(covered));
            load += blocks[id].size;
            covered = offset + blocks[id].size;
        }
        pieces.push(plan.peak().saturating_sub(covered));
        pieces.retain(|piece| piece.get() > 0);
        Moment { tick, load, top: covered, free: FreePieces(pieces) }
    };
    ticks.iter().map(&mut moment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::PlannedBlock;

    #[test]
    fn the_index_is_the_part_of_free_bytes_in_pieces_that_are_too_small() {
        let free = FreePieces::new([3, 8, 5].map(Bytes).to_vec());
        for (request, exact) in [(1, 0.0), (4, 3.0 / 16.0), (6, 0.5), (9, 1.0)] {
            assert_eq!(free.unusable(Bytes(request)), exact, "{request}");
        }
        // 3, 8 and 5 count as 2, 8 and 4.
        for (class, by_class) in [(0, 2.0 / 16.0), (2, 4.0 / 16.0), (3, 0.5), (4, 1.0)] {
            assert_eq!(free.unusable_in_class(class), by_class, "{class}");
        }
        assert_eq!(FreePieces::default().unusable(Bytes(1)), 0.0);
    }

    #[test]
    fn the_moments_of_a_plan_have_its_load_its_top_and_its_gaps() {
        let block =
            |size, start, end| PlannedBlock { size: Bytes(size), start, end, operator: None };
        let blocks = vec![block(4, 0, 3), block(2, 1, 2), block(4, 1, 4), block(6, 4, 5)];
        let list = BlockList::new(blocks).expect("a list");
        let plan = Plan::new(&list, [0, 4, 6, 0].map(Bytes).to_vec());
        let seen = moments(&list, &plan, &[0, 1, 2, 3, 4, 5]);
        let figures = |moment: &Moment| {
            let pieces = moment.free.0.iter().map(|piece| piece.get()).collect::<Vec<_>>();
            (moment.load.get(), moment.top.get(), pieces)
        };
        let expected = [
            (4, 4, vec![6]),
            (10, 10, vec![]),
            (8, 10, vec![2]),
            (4, 10, vec![6]),
            (6, 6, vec![4]),
            (0, 0, vec![10]),
        ];
        assert_eq!(seen.iter().map(figures).collect::<Vec<_>>(), expected);
        assert_eq!(seen[2].waste(), Bytes(2));
    }
}
