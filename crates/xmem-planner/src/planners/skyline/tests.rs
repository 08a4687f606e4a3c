//! The skyline against a slow, obvious second implementation, on ticks instead of sections.

use super::*;
use crate::list::{BlockList, PlannedBlock};
use crate::planners::bestfit;
use proptest::prelude::*;
use xmem_types::Bytes;

fn blocks(ticks: u32, size: u64, most: usize) -> impl Strategy<Value = BlockList> {
    let block = (1..=size, 0..ticks, 1..=ticks).prop_map(|(size, start, length)| PlannedBlock {
        size: Bytes(size),
        start,
        end: start + length,
        operator: None,
    });
    prop::collection::vec(block, 0..most).prop_map(|blocks| BlockList::new(blocks).expect("a list"))
}

/// Short and long lists, of few ticks and sizes, where ties abound, and of many.
fn lists() -> impl Strategy<Value = BlockList> {
    prop_oneof![blocks(6, 3, 12), blocks(20, 100, 60), blocks(200, 8, 200), blocks(1000, 5000, 40)]
}

/// Segments as (start, end, height) with nothing kept from one step to the next; each step looks at all blocks.
fn slowly(blocks: &[PlannedBlock], order: &[u32]) -> Vec<u64> {
    let mut offsets = vec![0; blocks.len()];
    let mut left = order.to_vec();
    let end = blocks.iter().map(|block| block.end).max().unwrap_or(0);
    let mut segments = vec![(0, end, 0u64)];
    while !left.is_empty() {
        let lowest = segments.iter().map(|&(_, _, height)| height).min().expect("a segment");
        let at = segments.iter().position(|&(_, _, height)| height == lowest).expect("the lowest");
        let (start, end, height) = segments[at];
        let fits = |&block: &u32| {
            let PlannedBlock { start: from, end: to, .. } = blocks[block as usize];
            start <= from && to <= end
        };
        if let Some(index) = left.iter().position(fits) {
            let block = left.remove(index) as usize;
            let PlannedBlock { start: from, end: to, size, .. } = blocks[block];
            offsets[block] = height;
            let parts = [(start, from, height), (from, to, height + size.get()), (to, end, height)];
            segments.splice(at..=at, parts.into_iter().filter(|&(from, to, _)| from < to));
        } else {
            let neighbors = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
            let heights = neighbors.filter_map(|at| segments.get(at)).map(|segment| segment.2);
            segments[at].2 =
                heights.min().expect("a neighbor: blocks that are left live somewhere");
        }
        segments.dedup_by(|next, segment| {
            let same = next.2 == segment.2;
            if same {
                segment.1 = next.1;
            }
            same
        });
    }
    offsets
}

#[test]
fn a_plan_is_given_up_at_the_deadline() {
    let block = |at: u32| PlannedBlock { size: Bytes(1), start: at, end: at + 3, operator: None };
    let list = BlockList::new((0..10_000).map(block).collect()).expect("a list");
    let order: Vec<u32> = (0..10_000).collect();
    let mut skyline = Skyline::new(list.instance());
    let late = Bound { deadline: Some(Instant::now()), ..Bound::NONE };
    assert_eq!(skyline.place(&order, &late), None);
    assert!(skyline.place(&order, &Bound::NONE).is_some());
}

proptest! {
    #[test]
    fn the_fast_skyline_gives_the_offsets_of_the_slow_one(list in lists(), shift in any::<prop::sample::Index>()) {
        let mut order = bestfit::order(list.instance());
        let mut with_bits = Skyline::new(list.instance());
        let tree = Candidates::tree(&list.instance().blocks);
        let mut with_tree = Skyline { candidates: tree, ..with_bits.clone() };
        for _ in 0..2 {
            let slow = slowly(list.blocks(), &order);
            for skyline in [&mut with_bits, &mut with_tree] {
                skyline.place(&order, &Bound::NONE);
                prop_assert_eq!(skyline.offsets(), &slow);
            }
            // Another order, in which neither size nor lifetime helps.
            if !order.is_empty() {
                let by = shift.index(order.len());
                order.rotate_left(by);
            }
        }
    }

    #[test]
    fn a_bound_ends_exactly_the_plans_above_it(list in lists(), below in 0u64..40, above in 0u64..40) {
        let order = bestfit::order(list.instance());
        let mut skyline = Skyline::new(list.instance());
        let peak = skyline.place(&order, &Bound::NONE).expect("no bound").peak;
        let offsets = skyline.offsets().to_vec();
        let bound = Bound::peak(peak.saturating_sub(below));
        prop_assert_eq!(skyline.place(&order, &bound).is_some(), peak <= bound.peak);
        // The heights at the end, as the offsets have them.
        let mut tops = vec![0; list.instance().loads.len()];
        for (item, offset) in list.instance().blocks.iter().zip(&offsets) {
            for top in &mut tops[item.start as usize..item.end as usize] {
                *top = (*top).max(offset + item.size);
            }
        }
        let target = list.instance().lower_bound() + above;
        let excess = tops.iter().map(|top| u128::from(top.saturating_sub(target))).sum();
        let bound = Bound { peak, target, excess, deadline: None };
        prop_assert_eq!(skyline.place(&order, &bound), Some(Outcome { peak, excess }));
        prop_assert_eq!(skyline.tops(), &tops);
        prop_assert_eq!(skyline.offsets(), &offsets);
        if let Some(less) = excess.checked_sub(1) {
            prop_assert_eq!(skyline.place(&order, &Bound { excess: less, ..bound }), None);
        }
    }
}
