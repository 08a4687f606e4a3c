//! Repetition in sequences: which optimizer steps make one iteration, and where a loop repeats.

use std::cmp::Reverse;

/// The smallest number of steps after which their signatures repeat: 1 for `A A A`, 2 for
/// `A B A B`. The first round may differ (state is made in it) and does not count.
pub(crate) fn of_steps<T: PartialEq>(signatures: &[T]) -> usize {
    let n = signatures.len();
    (1..=n / 2)
        .find(|&p| {
            let settled = &signatures[p.min(n)..];
            settled.iter().zip(settled.iter().skip(p)).all(|(a, b)| a == b)
        })
        .unwrap_or(1)
}

/// Where a loop starts to repeat and how long a round is: `(start, period)` of the longest suffix
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

    proptest! {
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
