//! A plan that is followed while requests come, without knowing those to come: requests are recognized by their order
//! and their sizes. `sequence.c` of the crate `xmem-planned` does the same.

use std::ops::RangeInclusive;
use xmem_types::Bytes;

/// Requests in a row that must have the sizes of a run elsewhere in the sequence before the place moves there.
pub const SURE: usize = 4;

/// How far from the place such a run may end, in requests.
pub const REACH: usize = 8192;

/// The place in the requests of an iteration.
///
/// A request that the sequence does not have is passed over, and the next one is expected at the same place. One that does not
/// come leaves the place behind: it moves after [`SURE`] requests in a row that are those of a run elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    place: usize,
    recent: [Bytes; SURE],
    unexpected: usize,
}

impl Follower {
    /// The sequence begins again.
    pub const fn mark(&mut self) {
        self.place = 0;
        self.unexpected = 0;
    }

    /// The place in `sequence` of a request of `size`, by the sizes (rounded) for which each of its requests is good; none
    /// if it does not have the request.
    pub fn next(&mut self, size: Bytes, sequence: &[RangeInclusive<Bytes>]) -> Option<usize> {
        self.recent.rotate_left(1);
        self.recent[SURE - 1] = size;
        let is_good = |at: usize| sequence.get(at).is_some_and(|sizes| sizes.contains(&size));
        if is_good(self.place) {
            return Some(self.found(self.place));
        }
        self.unexpected += 1;
        if self.unexpected < SURE {
            return None;
        }
        // The nearest of those ahead, then of those behind.
        let reach = REACH.min(self.place.max(sequence.len().saturating_sub(self.place)));
        let near =
            (1..=reach).flat_map(|away| [Some(self.place + away), self.place.checked_sub(away)]);
        let at = near.flatten().find(|&at| self.is_run(sequence, at))?;
        Some(self.found(at))
    }

    const fn found(&mut self, at: usize) -> usize {
        self.place = at + 1;
        self.unexpected = 0;
        at
    }

    /// Whether the recent sizes are those of the requests up to `last`.
    fn is_run(&self, sequence: &[RangeInclusive<Bytes>], last: usize) -> bool {
        let Some(first) = (last + 1).checked_sub(SURE) else { return false };
        let Some(run) = sequence.get(first..=last) else { return false };
        run.iter().zip(&self.recent).all(|(sizes, size)| sizes.contains(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(sequence: &[u64], requests: &[u64]) -> Vec<Option<usize>> {
        let sequence: Vec<_> = sequence.iter().map(|&size| Bytes(size)..=Bytes(size)).collect();
        let mut follower = Follower::default();
        requests.iter().map(|&size| follower.next(Bytes(size), &sequence)).collect()
    }

    #[test]
    fn the_same_requests_have_their_places() {
        assert_eq!(places(&[1, 2, 3], &[1, 2, 3, 4]), [Some(0), Some(1), Some(2), None]);
    }

    #[test]
    fn a_request_that_comes_shifts_nothing_else() {
        assert_eq!(places(&[1, 2, 3], &[1, 9, 2, 3]), [Some(0), None, Some(1), Some(2)]);
    }

    #[test]
    fn behind_one_that_does_not_come_the_place_is_found_again() {
        let sequence = [1, 2, 3, 4, 5, 6, 7, 8];
        let found = places(&sequence, &[1, 3, 4, 5, 6, 7, 8]);
        assert_eq!(found, [Some(0), None, None, None, Some(5), Some(6), Some(7)]);
    }

    #[test]
    fn a_part_that_is_done_again_is_found_behind() {
        let sequence = [1, 2, 3, 4, 5];
        let found = places(&sequence, &[1, 2, 3, 4, 5, 1, 2, 3, 4, 5]);
        assert_eq!(found[5..], [None, None, None, Some(3), Some(4)]);
    }

    #[test]
    fn a_request_is_good_for_a_range_of_sizes() {
        let sequence = [Bytes(2)..=Bytes(5)];
        for (size, expected) in [(1, None), (2, Some(0)), (5, Some(0)), (6, None)] {
            assert_eq!(Follower::default().next(Bytes(size), &sequence), expected, "{size}");
        }
    }
}
