//! The largest value of an option with which a job fits.

use super::{Figures, Recorder, Variant};
use std::collections::BTreeMap;
use xmem_types::Bytes;

/// Rounds of recordings in one search. Memory is nearly a straight line over a batch, so that two or three are enough.
const MAX_ROUNDS: usize = 16;

/// Rounds after which the job does not follow a curve closely.
const STRAIGHT: usize = 3;

/// The distance of values between which memory grows as it does in the large, as a part of the value.
const APART: u64 = 16;

/// Values of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub low: u64,
    /// The greatest.
    pub high: u64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Largest {
    /// The largest value that fits, and was recorded; none if no value does.
    pub fits: Option<u64>,
    /// The next value, which was recorded and does not fit; none if the range ends before, or the next one could not be
    /// recorded.
    pub fails: Option<u64>,
    /// The figures of all values that were recorded.
    pub points: BTreeMap<u64, Figures>,
    /// Values that could not be recorded, and why.
    pub refused: BTreeMap<u64, String>,
    /// The value that ran in the memory of the device.
    pub confirmed: Option<u64>,
}

impl Largest {
    /// Returns whether it is the largest value: the next one does not fit, or is beyond the range. Values that cannot be
    /// recorded do not count.
    #[must_use]
    pub fn is_proven(&self, range: Range) -> bool {
        let above = self.fits.map_or(range.low, |fits| fits + 1);
        let end = self.fails.unwrap_or(range.high + 1);
        let between = self.refused.range(above..end.max(above)).count() as u64;
        between == end.saturating_sub(above)
    }

    /// Returns whether a value fits only as cached memory is released for it.
    fn is_at_the_limit(&self, value: u64) -> bool {
        self.points.get(&value).is_some_and(|figures| !figures.has_room)
    }

    /// Notes that a value does not run in the memory of the device, though its recording does.
    fn refute(&mut self, value: u64) {
        if let Some(figures) = self.points.get(&value).copied() {
            self.add(value, Ok(Figures { fits: false, ..figures }));
        }
    }

    /// The first of two neighbors that cannot be recorded: from there on, none can. One alone is a gap, as with batches that
    /// have to be even.
    fn ceiling(&self) -> Option<u64> {
        self.refused.keys().copied().find(|value| self.refused.contains_key(&(value + 1)))
    }

    /// The first value from one on that may be recorded and is not known; none if that one is known to fit or to fail, or
    /// there is none.
    fn open(&self, value: u64, range: Range) -> Option<u64> {
        let end = self.fails.unwrap_or(range.high + 1);
        let value = (value..end).take(2).find(|value| !self.refused.contains_key(value))?;
        (!self.points.contains_key(&value)).then_some(value)
    }

    /// The values among which the next one is: from what follows the largest that fits to what comes before one that fails.
    fn between(&self, range: Range) -> (u64, u64) {
        let end = self.fails.into_iter().chain(self.ceiling()).min();
        (self.fits.map_or(range.low, |fits| fits + 1), end.map_or(range.high, |end| end - 1))
    }

    fn add(&mut self, value: u64, recorded: super::Recorded) {
        match recorded {
            Ok(figures) => drop(self.points.insert(value, figures)),
            Err(reason) => drop(self.refused.insert(value, reason)),
        }
        self.fits = self.points.iter().filter(|(_, figures)| figures.fits).map(|(v, _)| *v).max();
        // Memory may not grow with each value: what counts is the first failure above the largest success.
        let above = |value: &u64| self.fits.is_none_or(|fits| *value > fits);
        let fails = |(value, figures): (&u64, &Figures)| (!figures.fits).then_some(*value);
        self.fails = self.points.iter().filter_map(fails).find(above);
    }
}

/// Finds the largest value in a range with which the job fits into `room`, from what is known of some values.
///
/// The line through recorded values says where memory ends; the value there and the next one are recorded, until one fits and
/// the other does not. Values that cannot be recorded end the search.
pub fn largest(
    recorder: &mut dyn Recorder,
    (measures, room): (&[usize], Bytes),
    range: Range,
    known: BTreeMap<u64, Figures>,
) -> Largest {
    let mut found = Largest::default();
    for (value, figures) in known {
        found.add(value, Ok(figures));
    }
    for round in 0..MAX_ROUNDS {
        if !recorder.has_time() {
            break;
        }
        if found.is_proven(range) {
            let Some(value) = found.fits.filter(|value| found.is_at_the_limit(*value)) else {
                break;
            };
            if found.confirmed == Some(value) {
                break;
            }
            match recorder.confirm(&Variant::with(Some(value), measures.to_vec())) {
                Some(true) => found.confirmed = Some(value),
                Some(false) => found.refute(value),
                None => break,
            }
            continue;
        }
        // A law that was wrong as often is of no help.
        let expected =
            (round < STRAIGHT).then(|| expected(recorder, measures, &found, range)).flatten();
        let mut wanted: Vec<u64> = next(&found, range, (room, expected), round)
            .into_iter()
            .filter_map(|v| found.open(v, range))
            .collect();
        wanted.dedup();
        wanted.truncate(recorder.side_by_side().max(1));
        if wanted.is_empty() {
            break;
        }
        let variants: Vec<Variant> =
            wanted.iter().map(|&value| Variant::with(Some(value), measures.to_vec())).collect();
        for (value, recorded) in wanted.into_iter().zip(recorder.record(&variants)) {
            found.add(value, recorded);
        }
    }
    found
}

/// The value with which memory is expected to end, by the law of what was recorded.
fn expected(
    recorder: &mut dyn Recorder,
    measures: &[usize],
    found: &Largest,
    range: Range,
) -> Option<u64> {
    let (above, below) = found.between(range);
    let is_worth_it = found.points.len() > 1 && above <= below;
    let low = above.saturating_sub(1).max(range.low);
    is_worth_it.then(|| recorder.expect(measures, low, below)).flatten()
}

/// The values to record next, the most telling one first.
fn next(
    found: &Largest,
    range: Range,
    (room, expected): (Bytes, Option<u64>),
    round: usize,
) -> Vec<u64> {
    let clamp = |value: u64| value.clamp(range.low, range.high);
    let (above, below) = found.between(range);
    if above > below {
        return Vec::new();
    }
    let Some(curve) = Curve::of(found) else {
        // One value is known: another one, on the side where memory ends.
        return match (found.fits, found.fails) {
            (Some(fits), _) => vec![clamp(fits.saturating_mul(2)).clamp(above, below)],
            (None, Some(fails)) => vec![clamp(fails / 2).clamp(above, below)],
            (None, None) => vec![range.low],
        };
    };
    let low = above.saturating_sub(1).max(range.low);
    let at = expected.unwrap_or_else(|| curve.last_within(room, low, below));
    let mut wanted = match round.checked_sub(STRAIGHT) {
        None if expected.is_some() => vec![at, at.saturating_add(1), at.saturating_add(2)],
        None => vec![at, at.saturating_add(1), above + (below - above) / 2],
        // Sizes grow in steps: away from the curve, farther each round, and then between what is known.
        Some(late) => {
            let (far, width) = (4_u64.saturating_pow(late as u32 + 1), below - above);
            match (width > 2 * far, at + 2 * far < below) {
                (true, true) => vec![at + far, at + 2 * far],
                (true, false) if late < STRAIGHT => vec![below, below - far],
                _ => vec![above + width / 3, above + width.div_ceil(3) * 2],
            }
        }
    };
    wanted.iter_mut().for_each(|value| *value = (*value).clamp(above, below));
    wanted.sort_by_key(|value| found.points.contains_key(value));
    wanted.dedup();
    wanted
}

/// The polynomial through the two or three recorded values that are nearest to where the job stops to fit, in Newton's form.
struct Curve {
    at: [f64; 2],
    factors: [f64; 3],
}

impl Curve {
    /// None if fewer than two values are known.
    fn of(found: &Largest) -> Option<Self> {
        let mut all: Vec<(u64, f64)> = found
            .points
            .iter()
            .map(|(value, figures)| (*value, figures.needs.get() as f64))
            .collect();
        let border = found.fits.or(found.fails)?;
        all.sort_by_key(|(value, _)| (value.abs_diff(border), *value));
        let slope = |one: (u64, f64), other: (u64, f64)| {
            (other.1 - one.1) / (other.0 as f64 - one.0 as f64)
        };
        // Sizes grow in steps, which decide between neighbors.
        let apart = border / APART;
        let mut taken: Vec<(u64, f64)> = Vec::new();
        for point in all {
            if taken.iter().all(|other| other.0.abs_diff(point.0) > apart) {
                taken.push(point);
            }
        }
        let (one, two) = (*taken.first()?, *taken.get(1)?);
        let first = slope(one, two);
        let bend = taken
            .get(2)
            .map_or(0.0, |&three| (slope(two, three) - first) / (three.0 as f64 - one.0 as f64));
        // Memory does not bend down but for the steps in which sizes grow: such a curve would come down again far above.
        let bend = bend.max(0.0);
        Some(Self { at: [one.0 as f64, two.0 as f64], factors: [one.1, first, bend] })
    }

    fn bytes_at(&self, value: u64) -> f64 {
        let (x, [one, two], [start, slope, bend]) = (value as f64, self.at, self.factors);
        start + (x - one) * (slope + (x - two) * bend)
    }

    /// The last value from `low` to `high` at which the curve is not above `room`, where it rises; `low` if it is above there.
    fn last_within(&self, room: Bytes, low: u64, high: u64) -> u64 {
        let (mut low, mut high) = (low, high);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match self.bytes_at(middle) <= room.get() as f64 {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::Recorded;

    /// A job whose memory is a function of the value.
    struct Job<F> {
        needs: F,
        room: u64,
        recorded: usize,
        /// Values that run out of memory after their recording.
        fails_later: Vec<u64>,
        /// What the law expects.
        law: Option<u64>,
    }

    impl<F: Fn(u64) -> Option<u64>> Recorder for Job<F> {
        fn record(&mut self, variants: &[Variant]) -> Vec<Recorded> {
            self.recorded += variants.len();
            let of = |variant: &Variant| {
                let needs = (self.needs)(variant.value.expect("a value")).ok_or("raised")?;
                let fits = needs <= self.room;
                Ok(Figures {
                    needs: Bytes(needs),
                    fits,
                    has_room: needs + 200 <= self.room,
                    step: None,
                })
            };
            variants.iter().map(of).collect()
        }

        fn confirm(&mut self, variant: &Variant) -> Option<bool> {
            Some(!self.fails_later.contains(&variant.value.expect("a value")))
        }

        fn expect(&mut self, _: &[usize], low: u64, high: u64) -> Option<u64> {
            self.law.map(|value| value.clamp(low, high))
        }

        fn has_time(&self) -> bool {
            true
        }

        fn side_by_side(&self) -> usize {
            2
        }
    }

    fn search(
        needs: impl Fn(u64) -> Option<u64>,
        room: u64,
        range: Range,
        start: u64,
    ) -> (Largest, usize) {
        let figures = needs(start).map(|n| Figures {
            needs: Bytes(n),
            fits: n <= room,
            has_room: false,
            step: None,
        });
        let mut job = Job { needs, room, recorded: 0, fails_later: Vec::new(), law: None };
        let known = figures.map(|figures| (start, figures)).into_iter().collect();
        let found = largest(&mut job, (&[], Bytes(room)), range, known);
        (found, job.recorded)
    }

    const RANGE: Range = Range { low: 1, high: 4096 };

    #[test]
    fn a_straight_line_takes_a_handful_of_recordings() {
        for (base, per_value, room, start, expected) in [
            (1000, 100, 5050, 8, Some(40)),
            (1000, 100, 5000, 64, Some(40)),
            (1000, 1, 5000, 8, Some(4000)),
            (1000, 4001, 5000, 8, None),
            (1000, 4000, 5000, 1, Some(1)),
        ] {
            let (found, recorded) = search(|v| Some(base + per_value * v), room, RANGE, start);
            assert_eq!(found.fits, expected, "{base} {per_value}");
            assert!(found.is_proven(RANGE), "{found:?}");
            assert!(recorded <= 5, "{recorded} recordings for {base} + {per_value} v");
        }
    }

    #[test]
    fn a_law_needs_two_recordings_to_be_verified() {
        let needs = |v: u64| Some(1000 + 100 * v + (v * v) % 700);
        let room = 50_000;
        let expected = (1..4096).rev().find(|v| needs(*v).is_some_and(|n| n <= room));
        for (law, most) in [(expected, 3), (Some(400), 16), (Some(600), 16)] {
            let fails_later = Vec::new();
            let mut job = Job { needs, room, recorded: 0, fails_later, law };
            let known =
                [(8, Figures { needs: Bytes(1864), fits: true, has_room: true, step: None })];
            let found = largest(&mut job, (&[], Bytes(room)), RANGE, known.into_iter().collect());
            assert!(found.is_proven(RANGE) && job.recorded <= most, "{} {found:?}", job.recorded);
        }
    }

    #[test]
    fn a_failure_just_above_the_curve_was_followed_by_a_search_from_below() {
        // A ResNet-50 on a T4, in MiB: 172 fits, and the curve through 32 and 64 says 179.
        let needs = |v: u64| Some(if v > 64 { 1010 + 808 * v / 10 } else { 880 + 78 * v });
        let (found, recorded) = search(needs, 14_930, RANGE, 32);
        assert_eq!((found.fits, found.fails), (Some(172), Some(173)));
        assert!(recorded <= 7, "{recorded}");
    }

    #[test]
    fn a_curve_that_bends_down_was_followed_to_the_end_of_the_range() {
        // A GPT-2 of six layers on a T4, in MiB.
        let needs = |v: u64| match v {
            8 => Some(4024),
            16 => Some(6595),
            42 => Some(14_592),
            v => Some(1600 + 309 * v),
        };
        let (found, recorded) = search(needs, 14_930, RANGE, 8);
        assert_eq!(found.fits, Some(43));
        assert!(found.is_proven(RANGE) && recorded <= 6, "{recorded}");
        assert!(found.points.keys().all(|value| *value < 100), "{found:?}");
    }

    #[test]
    fn steps_and_curves_are_followed_to_the_end() {
        let steps = |v: u64| Some(500 + (v * 37).next_multiple_of(512));
        let square = |v: u64| Some(100 + v * v);
        for (needs, room) in [(steps as fn(u64) -> Option<u64>, 20_000), (square, 90_000)] {
            let (found, recorded) = search(needs, room, RANGE, 8);
            let expected = (1..4096).rev().find(|v| needs(*v).is_some_and(|n| n <= room));
            assert_eq!(found.fits, expected);
            assert!(found.is_proven(RANGE) && recorded <= 16, "{recorded}");
        }
    }

    #[test]
    fn a_batch_that_ran_out_of_memory_after_the_first_evaluation_was_the_largest() {
        let needs = |v: u64| Some(1000 + 100 * v);
        let mut job = Job { needs, room: 5020, recorded: 0, fails_later: vec![40, 39], law: None };
        let found = largest(&mut job, (&[], Bytes(5020)), RANGE, BTreeMap::new());
        assert_eq!((found.fits, found.fails), (Some(38), Some(39)));
        assert!(found.is_proven(RANGE));
    }

    #[test]
    fn the_end_of_the_range_ends_the_search() {
        let (found, _) = search(Some, 1_000_000, Range { low: 1, high: 64 }, 8);
        assert_eq!((found.fits, found.fails), (Some(64), None));
        assert!(found.is_proven(Range { low: 1, high: 64 }));
        let (found, _) = search(|_| Some(7), 100, Range { low: 1, high: 64 }, 8);
        assert_eq!(found.fits, Some(64), "memory that does not grow");
    }

    #[test]
    fn values_that_cannot_be_recorded_are_passed_over() {
        let (found, _) = search(|v| (v % 2 == 0).then_some(v * 100), 5050, RANGE, 8);
        assert_eq!((found.fits, found.fails), (Some(50), Some(52)));
        assert!(found.is_proven(RANGE), "{found:?}");
        let (found, recorded) = search(|v| (v < 10).then_some(v * 100), 5000, RANGE, 8);
        assert_eq!(found.fits, Some(9));
        assert!(!found.is_proven(RANGE) && recorded <= 40, "{recorded}");
    }
}
