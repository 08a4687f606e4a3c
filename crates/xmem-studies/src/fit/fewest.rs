//! The fewest processes, each with a GPU of its own, with which a distributed job fits.

use super::{Figures, Range, Recorder, Variant};
use std::collections::BTreeMap;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fewest {
    /// The fewest that fit; none if none that was recorded does.
    pub fits: Option<u64>,
    /// The next fewer that were recorded, and do not fit.
    pub fails: Option<u64>,
    /// The figures of all numbers that were recorded.
    pub points: BTreeMap<u64, Figures>,
    /// Numbers that could not be recorded, and why.
    pub refused: BTreeMap<u64, String>,
}

impl Fewest {
    fn add(&mut self, value: u64, recorded: super::Recorded) {
        match recorded {
            Ok(figures) => drop(self.points.insert(value, figures)),
            Err(reason) => drop(self.refused.insert(value, reason)),
        }
        self.fits = self.points.iter().find(|(_, figures)| figures.fits).map(|(value, _)| *value);
        let below = |value: &u64| self.fits.is_none_or(|fits| *value < fits);
        let fails = self.points.iter().rev().find(|(value, figures)| !figures.fits && below(value));
        self.fails = fails.map(|(value, _)| *value);
    }

    /// Returns whether nothing is left to record on one side of what is known.
    fn next(&self, values: &[u64]) -> Vec<u64> {
        let is_open =
            |value: &u64| !self.points.contains_key(value) && !self.refused.contains_key(value);
        match self.fits {
            // Half as many, until they do not fit.
            Some(fits) => {
                let below = values.iter().rev().filter(|value| **value < fits);
                let above_failure = |value: &&u64| self.fails.is_none_or(|fails| **value > fails);
                below
                    .copied()
                    .take_while(|value| above_failure(&value))
                    .filter(is_open)
                    .take(1)
                    .collect()
            }
            None => {
                let most =
                    self.points.keys().chain(self.refused.keys()).copied().max().unwrap_or(0);
                values.iter().copied().filter(|value| *value > most).take(2).collect()
            }
        }
    }
}

/// Finds the fewest processes with which a job fits, by doubling and halving what is known of one number.
pub fn fewest(
    recorder: &mut dyn Recorder,
    measures: &[usize],
    range: Range,
    known: (u64, super::Recorded),
) -> Fewest {
    let mut found = Fewest::default();
    let values = values(known.0, range);
    found.add(known.0, known.1);
    while recorder.has_time() {
        let mut wanted = found.next(&values);
        wanted.truncate(recorder.side_by_side().max(1));
        if wanted.is_empty() {
            let tight = found.fits.filter(|value| !found.points[value].has_room);
            let Some(value) = tight else { break };
            match recorder.confirm(&Variant::with(Some(value), measures.to_vec())) {
                Some(false) => {
                    let figures = found.points[&value];
                    found.add(value, Ok(Figures { fits: false, ..figures }));
                    continue;
                }
                _ => break,
            }
        }
        let variants: Vec<Variant> =
            wanted.iter().map(|&value| Variant::with(Some(value), measures.to_vec())).collect();
        for (value, recorded) in wanted.into_iter().zip(recorder.record(&variants)) {
            found.add(value, recorded);
        }
    }
    found
}

/// The value with all that are halves and doubles of it, ascending.
fn values(start: u64, range: Range) -> Vec<u64> {
    let halves = std::iter::successors(Some(start), |value| (value % 2 == 0).then_some(value / 2));
    let doubles = std::iter::successors(start.checked_mul(2), |value| value.checked_mul(2));
    let within = |value: &u64| (range.low..=range.high).contains(value);
    let mut all: Vec<u64> = halves.take_while(|value| *value > 0).filter(within).collect();
    all.reverse();
    all.extend(doubles.take_while(|value| *value <= range.high));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_types::Bytes;

    struct Job {
        room: u64,
        recorded: Vec<u64>,
        refuses: Vec<u64>,
    }

    impl Job {
        fn figures(&self, value: u64) -> super::super::Recorded {
            if self.refuses.contains(&value) {
                return Err("raised".to_owned());
            }
            let needs = 1000 + 16_000 / value;
            let (needs, fits) = (Bytes(needs), needs <= self.room);
            Ok(Figures { needs, fits, has_room: true, step: None })
        }
    }

    impl Recorder for Job {
        fn record(&mut self, variants: &[Variant]) -> Vec<super::super::Recorded> {
            let values = variants.iter().map(|variant| variant.value.expect("a value"));
            let values: Vec<u64> = values.collect();
            self.recorded.extend(&values);
            values.into_iter().map(|value| self.figures(value)).collect()
        }

        fn confirm(&mut self, _: &Variant) -> Option<bool> {
            Some(true)
        }

        fn has_time(&self) -> bool {
            true
        }

        fn side_by_side(&self) -> usize {
            2
        }
    }

    #[test]
    fn numbers_are_doubled_or_halved_until_the_border_is_known() {
        let range = Range { low: 1, high: 64 };
        for (room, start, refuses, fits, fails, recorded) in [
            (5000, 1, vec![], Some(4), Some(2), vec![2, 4]),
            (5000, 16, vec![], Some(4), Some(2), vec![8, 4, 2]),
            (20_000, 2, vec![], Some(1), None, vec![1]),
            (900, 16, vec![], None, Some(64), vec![32, 64]),
            (5000, 4, vec![2], Some(4), Some(1), vec![2, 1]),
            (5000, 12, vec![], Some(6), Some(3), vec![6, 3]),
        ] {
            let mut job = Job { room, recorded: Vec::new(), refuses };
            let known = (start, job.figures(start));
            let found = fewest(&mut job, &[], range, known);
            assert_eq!((found.fits, found.fails), (fits, fails), "{room} from {start}");
            assert_eq!(job.recorded, recorded, "{room} from {start}");
        }
    }
}
