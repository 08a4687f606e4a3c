//! `mincost-flow`: blocks share objects, each of which has one offset and the size of its largest block (Lee et al.,
//! "On-device neural net inference with mobile GPUs"; MemoMalloc, TensorFlow Lite).
//!
//! A block takes a new object, at the cost of its size, or the object of a block that ended before, at the cost of
//! the bytes that it is larger; each object passes to one block at most. The cheapest choice is an assignment of blocks
//! to blocks, by the Hungarian method in O(n³) for n blocks. The cost is not quite the sum of the objects' sizes.

use super::Placed;
use crate::budget::Budget;
use crate::instance::{Instance, Item};

/// The blocks of the longest list.
pub(crate) const MAX_BLOCKS: usize = 2000;

/// Offsets; `None` if the budget ends before.
pub(crate) fn place(instance: &Instance, budget: &mut Budget) -> Option<Placed> {
    let blocks = &instance.blocks;
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by_key(|&block| blocks[block].start);
    let items: Vec<&Item> = order.iter().map(|&block| &blocks[block]).collect();
    // A later block saves these bytes in the object of an earlier one; none, if they conflict: a new object.
    let saved = |later: usize, earlier: usize| {
        let (later, earlier) = (items[later], items[earlier]);
        if earlier.end <= later.start { later.size.min(earlier.size) } else { 0 }
    };
    let pairs = assign(items.len(), |later, earlier| -i128::from(saved(later, earlier)), budget)?;
    // By start, so that an earlier block has its object before.
    let (mut objects, mut sizes) = (Vec::with_capacity(items.len()), Vec::new());
    for (later, &earlier) in pairs.iter().enumerate() {
        let object = if saved(later, earlier) > 0 { objects[earlier] } else { sizes.len() };
        if object == sizes.len() {
            sizes.push(0);
        }
        sizes[object] = items[later].size.max(sizes[object]);
        objects.push(object);
    }
    let begins: Vec<u64> = sizes
        .iter()
        .scan(0, |next, &size| {
            let begin = *next;
            *next += size;
            Some(begin)
        })
        .collect();
    let mut offsets = vec![0; blocks.len()];
    for (&block, &object) in order.iter().zip(&objects) {
        offsets[block] = begins[object];
    }
    Some(Placed::heuristic(offsets))
}

/// A column for each row, so that the sum of the costs is least: shortest augmenting paths, one for each row. One step
/// of the budget is one row.
fn assign(
    rows: usize,
    cost: impl Fn(usize, usize) -> i128,
    budget: &mut Budget,
) -> Option<Vec<usize>> {
    const NONE: usize = usize::MAX;
    // The last column is where the path of a new row begins.
    let (mut of_rows, mut of_columns) = (vec![0; rows], vec![0; rows + 1]);
    let mut row_of = vec![NONE; rows + 1];
    for row in 0..rows {
        if !budget.step() {
            return None;
        }
        let mut nearest = vec![i128::MAX; rows];
        let mut before = vec![rows; rows];
        let mut visited = vec![false; rows + 1];
        let mut column = rows;
        row_of[column] = row;
        while row_of[column] != NONE {
            visited[column] = true;
            let from = row_of[column];
            let (mut least, mut next) = (i128::MAX, rows);
            for other in (0..rows).filter(|&other| !visited[other]) {
                let reduced = cost(from, other) - of_rows[from] - of_columns[other];
                if reduced < nearest[other] {
                    nearest[other] = reduced;
                    before[other] = column;
                }
                if nearest[other] < least {
                    (least, next) = (nearest[other], other);
                }
            }
            for other in 0..=rows {
                if visited[other] {
                    of_rows[row_of[other]] += least;
                    of_columns[other] -= least;
                } else if other < rows {
                    nearest[other] -= least;
                }
            }
            column = next;
        }
        while column != rows {
            row_of[column] = row_of[before[column]];
            column = before[column];
        }
    }
    let mut columns = vec![0; rows];
    for column in 0..rows {
        columns[row_of[column]] = column;
    }
    Some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Limits;
    use proptest::prelude::*;

    /// The least sum of all assignments of the rows from `row` on.
    fn least(costs: &[Vec<i64>], row: usize, taken: &mut Vec<bool>) -> i64 {
        if row == costs.len() {
            return 0;
        }
        let mut best = i64::MAX;
        for column in 0..costs.len() {
            if !taken[column] {
                taken[column] = true;
                best = best.min(costs[row][column] + least(costs, row + 1, taken));
                taken[column] = false;
            }
        }
        best
    }

    proptest! {
        #[test]
        fn no_assignment_is_cheaper(
            costs in (1usize..6).prop_flat_map(|n| prop::collection::vec(prop::collection::vec(-9i64..9, n), n))
        ) {
            let mut budget = Budget::new(&Limits::default());
            let columns = assign(costs.len(), |row, column| i128::from(costs[row][column]), &mut budget);
            let columns = columns.expect("enough steps");
            let mut taken = columns.clone();
            taken.sort_unstable();
            prop_assert_eq!(taken, (0..costs.len()).collect::<Vec<_>>());
            let sum: i64 = columns.iter().enumerate().map(|(row, &column)| costs[row][column]).sum();
            prop_assert_eq!(sum, least(&costs, 0, &mut vec![false; costs.len()]));
        }
    }
}
