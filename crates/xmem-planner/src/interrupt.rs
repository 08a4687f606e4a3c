//! Interrupt and resume: blocks requested between the two calls are left out of a plan, because they change from one
//! run of a job to the next (Sekiyama et al., "Profile-guided memory optimization for deep neural networks").

use crate::list::BlockList;
use std::ops::Range;

/// A list in two parts. The memory of both together is the peak of a plan for [`planned`](Self::planned) and that of
/// an allocator that serves [`unplanned`](Self::unplanned).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// The blocks to be planned.
    pub planned: BlockList,
    /// Their ids in the whole list.
    pub planned_ids: Vec<usize>,
    /// The blocks that an allocator serves.
    pub unplanned: BlockList,
    /// Their ids in the whole list.
    pub unplanned_ids: Vec<usize>,
}

/// Leaves out the blocks that begin in one of these ranges of ticks. Ranges may overlap; how long a block lives does
/// not matter.
#[must_use]
pub fn interrupt(list: &BlockList, ranges: &[Range<u32>]) -> Interrupted {
    let mut sorted: Vec<&Range<u32>> = ranges.iter().filter(|range| !range.is_empty()).collect();
    sorted.sort_unstable_by_key(|range| range.start);
    // Up to each range, the farthest end.
    let ends = sorted.iter().scan(0, |farthest, range| {
        *farthest = range.end.max(*farthest);
        Some(*farthest)
    });
    let ends: Vec<u32> = ends.collect();
    let left_out = |id: &usize| {
        let start = list.blocks()[*id].start;
        let before = sorted.partition_point(|range| range.start <= start);
        before > 0 && start < ends[before - 1]
    };
    let (unplanned_ids, planned_ids): (Vec<usize>, Vec<usize>) =
        (0..list.len()).partition(left_out);
    let part = |ids: &[usize]| {
        let blocks = ids.iter().map(|&id| list.blocks()[id]).collect();
        BlockList::new(blocks).expect("a part of a list is a list")
    };
    Interrupted {
        planned: part(&planned_ids),
        unplanned: part(&unplanned_ids),
        planned_ids,
        unplanned_ids,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::PlannedBlock;
    use xmem_types::Bytes;

    #[test]
    fn blocks_that_begin_in_a_range_are_left_out() {
        let block = |&(start, end)| PlannedBlock { size: Bytes(1), start, end, operator: None };
        let blocks = [(0, 9), (1, 2), (3, 9), (4, 5), (8, 9)].iter().map(block).collect();
        let list = BlockList::new(blocks).expect("a list");
        for (ranges, expected) in [
            (&[][..], &[][..]),
            (&[(1, 4)], &[1, 2]),
            (&[(4, 9), (8, 20), (0, 1)], &[0, 3, 4]),
            (&[(5, 8)], &[]),
            (&[(0, 5), (1, 2)], &[0, 1, 2, 3]),
        ] {
            let ranges: Vec<Range<u32>> = ranges.iter().map(|&(from, to)| from..to).collect();
            let parts = interrupt(&list, &ranges);
            assert_eq!(parts.unplanned_ids, expected, "{ranges:?}");
            assert_eq!(parts.planned.len() + parts.unplanned.len(), 5);
            for (part, ids) in
                [(&parts.planned, &parts.planned_ids), (&parts.unplanned, &parts.unplanned_ids)]
            {
                let whole: Vec<PlannedBlock> = ids.iter().map(|&id| list.blocks()[id]).collect();
                assert_eq!(part.blocks(), whole);
            }
        }
    }
}
