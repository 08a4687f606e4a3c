//! The allocations of one iteration that another iteration has as well, by Myers' algorithm
//! (E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986).

use xmem_types::Bytes;

/// Insertions and deletions beyond which two iterations are not the same program.
const MAX_DIFFERENCES: usize = 4000;

/// Like [`align`] of the keys alone, but entries of equal size are paired before others: a block that one sequence has in addition,
/// such as a workspace of the first call, does not shift its neighbors of the same place.
#[must_use]
pub(super) fn align_by_size<K: PartialEq>(
    one: &[(K, Bytes)],
    other: &[(K, Bytes)],
) -> Vec<Option<usize>> {
    let mut pairs = align(one, other);
    let mut from = (0, 0);
    for at in 0..=one.len() {
        let end = match pairs.get(at) {
            Some(None) => continue,
            Some(Some(found)) => (at, *found),
            None => (one.len(), other.len()),
        };
        let gaps = (&one[from.0..end.0], &other[from.1..end.1]);
        if !gaps.0.is_empty() && !gaps.1.is_empty() {
            let [a, b] =
                [gaps.0, gaps.1].map(|gap| gap.iter().map(|(key, _)| key).collect::<Vec<_>>());
            for (x, y) in align(&a, &b).into_iter().enumerate() {
                pairs[from.0 + x] = y.map(|y| from.1 + y);
            }
        }
        from = (end.0 + 1, end.1 + 1);
    }
    pairs
}

/// For each entry of `one`, the position of its counterpart in `other`. Counterparts are equal and in the
/// same order. None at all where the two differ too much.
#[must_use]
pub fn align<T: PartialEq>(one: &[T], other: &[T]) -> Vec<Option<usize>> {
    let mut pairs = vec![None; one.len()];
    let prefix = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let tails = one[prefix..].iter().rev().zip(other[prefix..].iter().rev());
    let suffix = tails.take_while(|(a, b)| a == b).count();
    for (at, pair) in pairs.iter_mut().enumerate().take(prefix) {
        *pair = Some(at);
    }
    for back in 1..=suffix {
        pairs[one.len() - back] = Some(other.len() - back);
    }
    let (a, b) = (&one[prefix..one.len() - suffix], &other[prefix..other.len() - suffix]);
    for (x, y) in middle(a, b) {
        pairs[prefix + x] = Some(prefix + y);
    }
    pairs
}

/// The counterparts between two sequences that begin and end differently.
fn middle<T: PartialEq>(a: &[T], b: &[T]) -> Vec<(usize, usize)> {
    if a.is_empty() || b.is_empty() {
        return Vec::new();
    }
    let limit = (a.len() + b.len()).min(MAX_DIFFERENCES);
    let center = limit + 1;
    // Per diagonal `x - y`, the furthest x that as many differences reach.
    let mut furthest = vec![0_usize; 2 * center + 1];
    let mut steps: Vec<Vec<usize>> = Vec::new();
    for differences in 0..=limit {
        steps.push(furthest[center - differences..=center + differences].to_vec());
        for diagonal in (center - differences..=center + differences).step_by(2) {
            let from_above = is_from_above(&furthest, diagonal, center, differences);
            let mut x =
                if from_above { furthest[diagonal + 1] } else { furthest[diagonal - 1] + 1 };
            let Some(mut y) = (x + center).checked_sub(diagonal) else { continue };
            while x < a.len() && y < b.len() && a[x] == b[y] {
                x += 1;
                y += 1;
            }
            furthest[diagonal] = x;
            if x >= a.len() && y >= b.len() {
                return backtrack(&steps, (a.len(), b.len()), center);
            }
        }
    }
    Vec::new()
}

/// Returns whether the path to a diagonal comes from the next one, by an entry of the other sequence.
fn is_from_above(furthest: &[usize], diagonal: usize, center: usize, differences: usize) -> bool {
    diagonal == center - differences
        || diagonal != center + differences && furthest[diagonal - 1] < furthest[diagonal + 1]
}

/// The equal entries on the path that was found.
fn backtrack(
    steps: &[Vec<usize>],
    (mut x, mut y): (usize, usize),
    center: usize,
) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (differences, row) in steps.iter().enumerate().rev() {
        let first = center - differences;
        let at = |diagonal: usize| row.get(diagonal.wrapping_sub(first)).copied().unwrap_or(0);
        let diagonal = center + x - y;
        let from_above = diagonal == center - differences
            || diagonal != center + differences && at(diagonal - 1) < at(diagonal + 1);
        let previous = if from_above { diagonal + 1 } else { diagonal - 1 };
        let from = if differences == 0 {
            (0, 0)
        } else {
            (at(previous), at(previous) + center - previous)
        };
        while x > from.0 && y > from.1 {
            x -= 1;
            y -= 1;
            pairs.push((x, y));
        }
        (x, y) = from;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn entries_without_a_counterpart_are_left_out() {
        for (one, other, pairs) in [
            ("abcd", "abcd", vec![Some(0), Some(1), Some(2), Some(3)]),
            ("abcd", "acd", vec![Some(0), None, Some(1), Some(2)]),
            ("acd", "aXcYd", vec![Some(0), Some(2), Some(4)]),
            ("abc", "", vec![None; 3]),
            ("ab", "xy", vec![None; 2]),
        ] {
            assert_eq!(align(one.as_bytes(), other.as_bytes()), pairs, "{one} {other}");
        }
    }

    #[test]
    fn a_workspace_of_the_first_call_took_the_place_of_a_gradient() {
        let entries = |text: &str, sizes: &[u64]| -> Vec<(char, Bytes)> {
            text.chars().zip(sizes.iter().map(|&size| Bytes(size))).collect()
        };
        let first = entries("ammmb", &[1, 8, 4, 60, 2]);
        let second = entries("ammb", &[1, 4, 60, 2]);
        assert_eq!(align_by_size(&first, &second), [Some(0), None, Some(1), Some(2), Some(3)]);
        assert_eq!(align_by_size(&second, &first), [Some(0), Some(2), Some(3), Some(4)]);
        // Longer sequences have other sizes throughout.
        let longer = entries("ammb", &[2, 8, 61, 3]);
        assert_eq!(align_by_size(&second, &longer), [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(align_by_size(&second, &entries("", &[])), [None; 4]);
    }

    /// The length of the longest common subsequence, the slow and obvious way.
    fn longest(a: &[u8], b: &[u8]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut diagonal = 0;
            for (at, y) in b.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if x == y { diagonal + 1 } else { above.max(row[at]) };
                diagonal = above;
            }
        }
        row[b.len()]
    }

    proptest! {
        #[test]
        fn pairs_by_size_are_in_order_and_of_equal_keys(
            a in proptest::collection::vec((0_u8..3, 0_u64..3), 0..20),
            b in proptest::collection::vec((0_u8..3, 0_u64..3), 0..20),
        ) {
            let sized = |list: &[(u8, u64)]| -> Vec<(u8, Bytes)> {
                list.iter().map(|&(key, size)| (key, Bytes(size))).collect()
            };
            let (a, b) = (sized(&a), sized(&b));
            let pairs = align_by_size(&a, &b);
            let found: Vec<(usize, usize)> =
                pairs.iter().enumerate().filter_map(|(x, y)| Some((x, (*y)?))).collect();
            prop_assert!(found.iter().all(|&(x, y)| a[x].0 == b[y].0));
            prop_assert!(found.is_sorted_by(|p, q| p.0 < q.0 && p.1 < q.1));
            let equal = |found: &[(usize, usize)]| found.iter().filter(|p| a[p.0] == b[p.1]).count();
            prop_assert!(equal(&found) >= align(&a, &b).iter().flatten().count());
        }

        #[test]
        fn as_many_as_possible_are_found_in_order(
            a in proptest::collection::vec(0_u8..4, 0..40),
            b in proptest::collection::vec(0_u8..4, 0..40),
        ) {
            let found: Vec<(usize, usize)> =
                align(&a, &b).iter().enumerate().filter_map(|(x, y)| Some((x, (*y)?))).collect();
            prop_assert!(found.iter().all(|&(x, y)| a[x] == b[y]));
            prop_assert!(found.is_sorted_by(|p, q| p.0 < q.0 && p.1 < q.1));
            prop_assert_eq!(found.len(), longest(&a, &b));
        }
    }
}
