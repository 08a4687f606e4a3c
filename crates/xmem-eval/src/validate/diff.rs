//! Two sequences aligned so that as little as possible is left over: Myers' algorithm in linear
//! space ("An O(ND) Difference Algorithm and Its Variations", Algorithmica 1986, section 4b).

/// Beyond this many differences within one part, the alignment is good rather than best, so that
/// the time stays proportional to the length.
const MAX_EDITS: usize = 1024;

/// Pairs of positions with equal elements, ascending in both.
pub(super) fn matches<T: PartialEq>(a: &[T], b: &[T]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut open = vec![(0, a.len(), 0, b.len())];
    let mut search = Search::default();
    // The parts are dealt with from front to back, so that the pairs come in order.
    while let Some((mut a0, mut a1, mut b0, mut b1)) = open.pop() {
        while a0 < a1 && b0 < b1 && a[a0] == b[b0] {
            found.push((a0, b0));
            (a0, b0) = (a0 + 1, b0 + 1);
        }
        let (tail_a, tail_b) = (a1, b1);
        while a0 < a1 && b0 < b1 && a[a1 - 1] == b[b1 - 1] {
            (a1, b1) = (a1 - 1, b1 - 1);
        }
        if a1 < tail_a {
            // Equal elements at the end, to be paired when all before them is.
            open.push((a1, tail_a, b1, tail_b));
        }
        if a0 < a1 && b0 < b1 {
            let (x, y) = search.split(&a[a0..a1], &b[b0..b1]);
            open.push((a0 + x, a1, b0 + y, b1));
            open.push((a0, a0 + x, b0, b0 + y));
        }
    }
    found
}

/// The furthest points reached, for each diagonal.
#[derive(Default)]
struct Search {
    forward: Vec<usize>,
    backward: Vec<usize>,
}

impl Search {
    /// A point that lies on a shortest path from the beginning of both to the end of both, which
    /// neither begin nor end with equal elements, and are not empty. It is not a corner.
    fn split<T: PartialEq>(&mut self, a: &[T], b: &[T]) -> (usize, usize) {
        let (n, m) = (a.len(), b.len());
        let most = (n + m).div_ceil(2).min(MAX_EDITS);
        // Diagonals `x - y`, from `-most - 1` to `most + 1`, counted from 0.
        let middle = most + 1;
        let rows = 2 * middle + 1;
        self.forward.clear();
        self.forward.resize(rows, 0);
        self.backward.clear();
        self.backward.resize(rows, 0);
        let delta = n.cast_signed() - m.cast_signed();
        let odd = (n + m) % 2 == 1;
        for d in 0..=most {
            if let Some(point) = self.forward_step(a, b, d, middle, odd.then_some(delta)) {
                return point;
            }
            if let Some(point) = self.backward_step(a, b, d, middle, (!odd).then_some(delta)) {
                return point;
            }
        }
        self.furthest(n, m, middle)
    }

    /// Goes one difference further from the beginning; the point where the two searches meet, on
    /// diagonals whose distance from the end's is `delta`.
    fn forward_step<T: PartialEq>(
        &mut self,
        a: &[T],
        b: &[T],
        d: usize,
        middle: usize,
        delta: Option<isize>,
    ) -> Option<(usize, usize)> {
        let (n, m) = (a.len(), b.len());
        for k in diagonals(d, n, m) {
            let equal = |x: usize, y: usize| x < n && y < m && a[x] == b[y];
            let (x, y) = extend(&mut self.forward, k, d, middle, equal);
            let Some(delta) = delta else { continue };
            let other = delta - k;
            if d > 0 && other.unsigned_abs() < d {
                let back = self.backward[(middle.cast_signed() + other) as usize];
                if x + back >= n && x <= n && y <= m {
                    return inside(x, y, n, m);
                }
            }
        }
        None
    }

    /// The same from the end; positions are counted from there.
    fn backward_step<T: PartialEq>(
        &mut self,
        a: &[T],
        b: &[T],
        d: usize,
        middle: usize,
        delta: Option<isize>,
    ) -> Option<(usize, usize)> {
        let (n, m) = (a.len(), b.len());
        for k in diagonals(d, n, m) {
            let equal = |x: usize, y: usize| x < n && y < m && a[n - 1 - x] == b[m - 1 - y];
            let (x, y) = extend(&mut self.backward, k, d, middle, equal);
            let Some(delta) = delta else { continue };
            let other = delta - k;
            if other.unsigned_abs() <= d {
                let front = self.forward[(middle.cast_signed() + other) as usize];
                if x + front >= n && x <= n && y <= m {
                    return inside(n - x, m - y, n, m);
                }
            }
        }
        None
    }

    /// Of the points reached from the beginning, the one that is furthest on.
    fn furthest(&self, n: usize, m: usize, middle: usize) -> (usize, usize) {
        let points = self.forward.iter().enumerate().filter_map(|(row, &x)| {
            let y = x.cast_signed() - (row.cast_signed() - middle.cast_signed());
            let y = usize::try_from(y).ok()?;
            (x <= n && y <= m).then_some((x, y))
        });
        let best = points.max_by_key(|&(x, y)| (x + y, x)).unwrap_or((0, 0));
        inside(best.0, best.1, n, m).unwrap_or((n.min(1), m.min(usize::from(n == 0))))
    }
}

/// The furthest point on diagonal `k` after `d` differences, which `reached` records: one
/// difference beyond a neighboring diagonal, then on as long as both are `equal`.
fn extend(
    reached: &mut [usize],
    k: isize,
    d: usize,
    middle: usize,
    equal: impl Fn(usize, usize) -> bool,
) -> (usize, usize) {
    let row = (middle.cast_signed() + k) as usize;
    let down =
        k == -d.cast_signed() || (k != d.cast_signed() && reached[row - 1] < reached[row + 1]);
    let mut x = match (d, down) {
        (0, _) => 0,
        (_, true) => reached[row + 1],
        (_, false) => reached[row - 1] + 1,
    };
    let mut y = (x.cast_signed() - k) as usize;
    while equal(x, y) {
        (x, y) = (x + 1, y + 1);
    }
    reached[row] = x;
    (x, y)
}

/// The point, unless it is a corner, which would not split anything.
fn inside(x: usize, y: usize, n: usize, m: usize) -> Option<(usize, usize)> {
    ((x, y) != (0, 0) && (x, y) != (n, m)).then_some((x, y))
}

/// Diagonals that `d` differences reach within `n` by `m`.
fn diagonals(d: usize, n: usize, m: usize) -> impl Iterator<Item = isize> {
    let d = d.cast_signed();
    let (n, m) = (n.cast_signed(), m.cast_signed());
    (-d..=d).step_by(2).filter(move |k| -m <= *k && *k <= n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The length of the longest common subsequence, by the textbook table.
    fn longest(a: &[u8], b: &[u8]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut corner = 0;
            for (j, y) in b.iter().enumerate() {
                let above = row[j + 1];
                row[j + 1] = if x == y { corner + 1 } else { above.max(row[j]) };
                corner = above;
            }
        }
        row[b.len()]
    }

    fn is_alignment(a: &[u8], b: &[u8], pairs: &[(usize, usize)]) -> bool {
        pairs.iter().all(|&(x, y)| a[x] == b[y])
            && pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn nothing_is_left_over_that_could_be_paired(
            a in prop::collection::vec(0_u8..4, 0..40),
            b in prop::collection::vec(0_u8..4, 0..40),
        ) {
            let pairs = matches(&a, &b);
            prop_assert!(is_alignment(&a, &b, &pairs), "{pairs:?}");
            prop_assert_eq!(pairs.len(), longest(&a, &b));
        }
    }

    #[test]
    fn long_sequences_without_anything_in_common_end_soon() {
        let a: Vec<u32> = (0..20_000).collect();
        let b: Vec<u32> = (100_000..120_000).collect();
        assert!(matches(&a, &b).is_empty());
        let mut c = b.clone();
        c.extend(&a);
        assert!(matches(&a, &c).len() > 15_000, "a common part is found behind a foreign one");
    }
}
