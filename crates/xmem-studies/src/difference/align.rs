//! Two lists of modules of one class, or of lines of one function, paired in order.

use std::cmp::Reverse;
use std::ops::Range;

/// The largest table of a longest common subsequence; beyond, what stands in the same place is paired.
const TABLE: usize = 4 << 20;

/// What a module or a line is known by, whatever its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fingerprint {
    /// Equal for the same structure.
    pub(super) structure: u64,
    /// Equal for the same structure that allocates the same bytes.
    pub(super) exact: u64,
    /// The bytes.
    pub(super) size: u64,
}

/// The rows of both lists that belong together, in order: one by one if the lists have the same structure; else those of
/// a longest common subsequence of equal structure and bytes, and between them as many of equal structure as possible,
/// then as many as possible, whose bytes differ least.
pub(super) fn pairs(a: &[Fingerprint], b: &[Fingerprint]) -> Vec<(usize, usize)> {
    // A larger batch may give each layer the bytes that the next one had.
    if a.iter().map(|node| node.structure).eq(b.iter().map(|node| node.structure)) {
        return (0..a.len()).map(|row| (row, row)).collect();
    }
    // Of several equally good ones, the same is taken whichever list comes first.
    if b < a {
        return pairs(b, a).into_iter().map(|(b, a)| (a, b)).collect();
    }
    let exact = |list: &[Fingerprint]| list.iter().map(|node| node.exact).collect::<Vec<u64>>();
    let mut all = common(&exact(a), &exact(b));
    for (gap_a, gap_b) in gaps(&all, a.len(), b.len()) {
        let found = nearest(&a[gap_a.clone()], &b[gap_b.clone()]);
        all.extend(found.into_iter().map(|(x, y)| (gap_a.start + x, gap_b.start + y)));
    }
    all.sort_unstable();
    all
}

/// Pairs of equal structure, all pairs, and the sum of what their bytes differ by.
type Score = (u32, u32, Reverse<u128>);

/// The rows of two lists without equal ones, paired in order.
fn nearest(a: &[Fingerprint], b: &[Fingerprint]) -> Vec<(usize, usize)> {
    let columns = b.len() + 1;
    if (a.len() + 1).saturating_mul(columns) > TABLE / 4 {
        return (0..a.len()).zip(0..b.len()).collect();
    }
    let together = |x: usize, y: usize, (same, all, Reverse(apart)): Score| -> Score {
        let is_same = u32::from(a[x].structure == b[y].structure);
        (same + is_same, all + 1, Reverse(apart + u128::from(a[x].size.abs_diff(b[y].size))))
    };
    // The best score of what is left from each place on.
    let mut table: Vec<Score> = vec![(0, 0, Reverse(0)); (a.len() + 1) * columns];
    for x in (0..a.len()).rev() {
        for y in (0..b.len()).rev() {
            let both = together(x, y, table[(x + 1) * columns + y + 1]);
            let skipped = table[(x + 1) * columns + y].max(table[x * columns + y + 1]);
            table[x * columns + y] = both.max(skipped);
        }
    }
    let (mut x, mut y) = (0, 0);
    let mut pairs = Vec::new();
    while x < a.len() && y < b.len() {
        let best = table[x * columns + y];
        if best == together(x, y, table[(x + 1) * columns + y + 1]) {
            pairs.push((x, y));
            (x, y) = (x + 1, y + 1);
        } else if best == table[(x + 1) * columns + y] {
            x += 1;
        } else {
            y += 1;
        }
    }
    pairs
}

/// What is between pairs, before the first and after the last.
fn gaps(pairs: &[(usize, usize)], a: usize, b: usize) -> Vec<(Range<usize>, Range<usize>)> {
    let (mut from_a, mut from_b) = (0, 0);
    let mut gaps = Vec::new();
    for &(x, y) in pairs.iter().chain([&(a, b)]) {
        gaps.push((from_a..x, from_b..y));
        (from_a, from_b) = (x + 1, y + 1);
    }
    gaps
}

/// The rows of a longest common subsequence.
fn common(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    let start = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (rest_a, rest_b) = (&a[start..], &b[start..]);
    let end = rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (a_mid, b_mid) = (&rest_a[..rest_a.len() - end], &rest_b[..rest_b.len() - end]);
    let mut pairs: Vec<(usize, usize)> = (0..start).map(|row| (row, row)).collect();
    pairs.extend(longest(a_mid, b_mid).into_iter().map(|(x, y)| (start + x, start + y)));
    pairs.extend((1..=end).rev().map(|back| (a.len() - back, b.len() - back)));
    pairs
}

/// The same without a common beginning and end.
fn longest(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    let columns = b.len() + 1;
    if a.is_empty() || b.is_empty() || (a.len() + 1).saturating_mul(columns) > TABLE {
        return Vec::new();
    }
    // The length of the longest one of what is left from each place on.
    let mut table = vec![0_u32; (a.len() + 1) * columns];
    for x in (0..a.len()).rev() {
        for y in (0..b.len()).rev() {
            table[x * columns + y] = if a[x] == b[y] {
                table[(x + 1) * columns + y + 1] + 1
            } else {
                table[(x + 1) * columns + y].max(table[x * columns + y + 1])
            };
        }
    }
    let (mut x, mut y) = (0, 0);
    let mut pairs = Vec::new();
    while x < a.len() && y < b.len() {
        if a[x] == b[y] {
            pairs.push((x, y));
            (x, y) = (x + 1, y + 1);
        } else if table[(x + 1) * columns + y] >= table[x * columns + y + 1] {
            x += 1;
        } else {
            y += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn node(structure: u64, size: u64) -> Fingerprint {
        Fingerprint { structure, exact: structure * 100 + size, size }
    }

    #[test]
    fn equal_ones_are_paired_before_those_of_equal_structure() {
        let (a, b) = ([node(1, 1), node(1, 2)], [node(1, 9), node(1, 1), node(1, 3)]);
        assert_eq!(pairs(&a, &b), [(0, 1), (1, 2)]);
        assert_eq!(pairs(&[node(1, 5)], &[node(1, 90), node(1, 6)]), [(0, 1)]);
        assert_eq!(pairs(&a, &[node(2, 0), node(1, 7), node(1, 7)]), [(0, 1), (1, 2)]);
        assert_eq!(pairs(&a, &[node(1, 2), node(1, 1)]), [(0, 0), (1, 1)]);
        assert_eq!(pairs(&a, &[node(2, 0)]), [(0, 0)]);
        assert_eq!(pairs(&a, &[]), []);
    }

    proptest! {
        #[test]
        fn pairs_are_in_order_and_the_same_both_ways(
            a in prop::collection::vec((0..3_u64, 0..3_u64), 0..9),
            b in prop::collection::vec((0..3_u64, 0..3_u64), 0..9),
        ) {
            let list = |from: &[(u64, u64)]| -> Vec<Fingerprint> {
                from.iter().map(|&(structure, bytes)| node(structure, bytes)).collect()
            };
            let (a, b) = (list(&a), list(&b));
            let found = pairs(&a, &b);
            prop_assert!(found.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
            let swapped: Vec<_> = pairs(&b, &a).into_iter().map(|(b, a)| (a, b)).collect();
            prop_assert_eq!(&found, &swapped);
            let itself: Vec<_> = (0..a.len()).map(|row| (row, row)).collect();
            prop_assert_eq!(pairs(&a, &a), itself);
        }
    }
}
