//! Repetition in sequences: which optimizer steps make one iteration, and where a loop repeats.

use std::cmp::Reverse;

/// The smallest number of steps after which their signatures repeat: 1 for `A A A`, 2 for
/// `A B A B`. The first round may differ (state is made in it) and does not count.
pub(crate) fn of_steps<T: PartialEq>(signatures: &[T]) -> usize {
    let n = signatures.len();
    let repeats = repeats_from_the_end(signatures);
    (1..=n / 2).find(|&p| repeats[p] >= n - 2 * p).unwrap_or(1)
}

/// For each distance: how many of the last items equal the item that far before them, without a gap
/// up to the end. Linear time (the Z algorithm of Gusfield over the reversed sequence).
fn repeats_from_the_end<T: PartialEq>(items: &[T]) -> Vec<usize> {
    let n = items.len();
    let at = |i: usize| &items[n - 1 - i];
    let mut repeats = vec![0_usize; n];
    // The span known to repeat that reaches furthest.
    let (mut from, mut to) = (0, 0);
    for i in 1..n {
        let mut length = if i < to { repeats[i - from].min(to - i) } else { 0 };
        while i + length < n && at(length) == at(i + length) {
            length += 1;
        }
        repeats[i] = length;
        if i + length > to {
            (from, to) = (i, i + length);
        }
    }
    repeats
}

/// The start and the period of a loop: `(start, period)` of the longest suffix
/// of `items` that repeats at least twice. Linear time (the failure function of Knuth, Morris and
/// Pratt over the reversed sequence).
pub(crate) fn of_loop<T: PartialEq>(items: &[T]) -> Option<(usize, usize)> {
    let n = items.len();
    let at = |i: usize| &items[n - 1 - i];
    let mut failure = vec![0_usize; n];
    let mut best: Option<(usize, Reverse<usize>)> = None;
    for i in 1..n {
        let mut k = failure[i - 1];
        while k > 0 && at(i) != at(k) {
            k = failure[k - 1];
        }
        failure[i] = k + usize::from(at(i) == at(k));
        let length = i + 1;
        let period = length - failure[i];
        if length >= 2 * period {
            best = best.max(Some((length, Reverse(period))));
        }
    }
    let (length, Reverse(period)) = best?;
    let rounds = length / period;
    Some((n - rounds * period, period))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn steps_repeat_after_their_period_whatever_the_first_round_looks_like() {
        for (signatures, period) in [
            ("", 1),
            ("a", 1),
            ("aaa", 1),
            ("abab", 2),
            ("Aaaa", 1),
            ("ABabab", 2),
            ("ABab", 2),
            ("Aa", 1),
            ("aabaab", 3),
            ("abc", 1),
        ] {
            let bytes = signatures.as_bytes();
            assert_eq!(of_steps(bytes), period, "{signatures}");
        }
    }

    #[test]
    fn a_loop_is_found_behind_an_irregular_start() {
        for (items, found) in [
            ("", None),
            ("abc", None),
            ("xyzabcabc", Some((3, 3))),
            ("xaaaa", Some((1, 1))),
            ("abcabcabc", Some((0, 3))),
            ("bcabcabc", Some((2, 3))),
        ] {
            assert_eq!(of_loop(items.as_bytes()), found, "{items}");
        }
    }

    #[test]
    fn a_period_that_fails_at_the_last_step_only_is_found_in_linear_time() {
        let mut signatures = vec![0_u8; 1_000_000];
        signatures.push(1);
        assert_eq!(of_steps(&signatures), 1);
    }

    /// The result of `of_steps`, found by trying one period after the other.
    fn of_steps_slowly(signatures: &[u8]) -> usize {
        let n = signatures.len();
        let repeats = |p: &usize| {
            let settled = &signatures[*p..];
            settled.iter().zip(settled.iter().skip(*p)).all(|(a, b)| a == b)
        };
        (1..=n / 2).find(repeats).unwrap_or(1)
    }

    proptest! {
        #[test]
        fn the_period_of_steps_is_the_first_that_fits(
            signatures in prop::collection::vec(0_u8..3, 0..40),
        ) {
            prop_assert_eq!(of_steps(&signatures), of_steps_slowly(&signatures));
        }

        #[test]
        fn a_found_loop_repeats(items in prop::collection::vec(0_u8..3, 0..60)) {
            if let Some((start, period)) = of_loop(&items) {
                let suffix = &items[start..];
                prop_assert!(suffix.len() >= 2 * period && suffix.len() % period == 0);
                prop_assert!(suffix.iter().zip(&suffix[period..]).all(|(a, b)| a == b));
            }
        }
    }
}
