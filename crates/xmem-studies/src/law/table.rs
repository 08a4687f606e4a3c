//! A law as a table: what a job needs with each value.

use super::{JobLaw, LawSummary};
use rayon::prelude::*;
use std::collections::BTreeMap;
use xmem_types::Bytes;

/// The most values that a table lists.
const MAX_ROWS: u64 = 1024;

/// The most values that a table of runs lists.
const MAX_RUNS: u64 = 4096;

/// The share by which a law may be off about any value that was not recorded: of the laws in docs/results/fit.md, what needs came out
/// nearer than that for nearly all values.
const LEAST_OFF: f64 = 0.005;

/// The share by which a law may be off that was not held against a recording.
const UNCHECKED: f64 = 0.05;

/// What a job needs with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LawPoint {
    /// The value.
    pub value: u64,
    /// Peak allocated memory.
    pub allocated: Bytes,
    /// Peak reserved memory, where the device has enough.
    pub reserved: Bytes,
    /// The least device memory with which it runs, context included.
    pub needs: Bytes,
    /// The least and the most that this may be: by the recordings with the next smaller value and with the next greater one,
    /// whose blocks are not all the same.
    pub range: (Bytes, Bytes),
}

impl LawPoint {
    /// The greater figures of two.
    pub(super) fn or_more(self, other: Self) -> Self {
        Self {
            value: self.value,
            allocated: self.allocated.max(other.allocated),
            reserved: self.reserved.max(other.reserved),
            needs: self.needs.max(other.needs),
            range: (self.range.0.max(other.range.0), self.range.1.max(other.range.1)),
        }
    }
}

/// What a law says about a recording that it was not made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LawCheck {
    /// What the recording says.
    pub recorded: LawPoint,
    /// What the law says.
    pub predicted: LawPoint,
}

/// The memory of a job as a function of a number in its command, on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LawTable {
    /// The job.
    pub subject: LawSubject,
    /// The recorded values, ascending.
    pub recorded: Vec<u64>,
    /// By value, ascending: the least recorded value is the first, the greatest the last.
    pub points: Vec<LawPoint>,
    /// How the sizes of blocks follow from the value.
    pub summary: LawSummary,
    /// What the law says about recordings, each left out in turn.
    pub checks: Vec<LawCheck>,
    /// Recordings of the job with measures.
    pub with: Vec<LawWith>,
}

/// Recordings of a job with measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawWith {
    /// The measures, as the command line takes them (`fused,checkpointing=2`).
    pub measures: String,
    /// The GPUs that they divide the job over; 1 if they do not.
    pub gpus: u32,
    /// The least device memory with which each value that was recorded runs.
    pub needs: BTreeMap<u64, Bytes>,
}

/// The job that a law is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LawSubject {
    /// The name of the number.
    pub name: String,
    /// The command, with the number as it was written.
    pub command: String,
    /// The device.
    pub device: String,
    /// Its memory.
    pub memory: Bytes,
    /// What others than the allocator take of it.
    pub context: Bytes,
    /// What to know about the figures.
    pub notes: Vec<String>,
}

/// What a table says about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LawNeed {
    /// The figures; of a value between two of the table, the greater ones of both.
    pub point: LawPoint,
    /// The least that may be needed, and the most: as far off as the law was about a recording that it was not made from.
    pub range: (Bytes, Bytes),
    /// Whether the value was recorded.
    pub is_recorded: bool,
}

impl LawTable {
    /// The table of a law: every value between the recorded ones; where there are more than 1,024, round ones in equal proportions.
    #[must_use]
    pub fn new(law: &JobLaw<'_>, subject: LawSubject) -> Self {
        let points = Self::values(law).into_par_iter().filter_map(|value| law.at(value)).collect();
        Self {
            subject,
            recorded: law.values().collect(),
            points,
            summary: law.summary(),
            checks: law.check(),
            with: Vec::new(),
        }
    }

    /// The values of that table.
    #[must_use]
    pub fn values(law: &JobLaw<'_>) -> Vec<u64> {
        let mut values = listed(law.bounds(), MAX_ROWS);
        values.extend(law.values());
        values.sort_unstable();
        values.dedup();
        values
    }

    /// The values from one to another of a table in which each is run: all of them; where there are more than 4,096, round
    /// ones in equal proportions.
    #[must_use]
    pub fn values_to_run(least: u64, greatest: u64) -> Vec<u64> {
        listed((least, greatest), MAX_RUNS)
    }

    /// The table of a job that was run with every value that it lists, ascending.
    #[must_use]
    pub fn of_runs(subject: LawSubject, points: Vec<LawPoint>, summary: LawSummary) -> Self {
        let recorded = points.iter().map(|point| point.value).collect();
        Self::from_rows(subject, recorded, points, summary, Vec::new())
    }

    /// The table of these rows, which ascend by value.
    #[must_use]
    pub fn from_rows(
        subject: LawSubject,
        recorded: Vec<u64>,
        points: Vec<LawPoint>,
        summary: LawSummary,
        checks: Vec<LawCheck>,
    ) -> Self {
        Self { subject, recorded, points, summary, checks, with: Vec::new() }
    }

    /// The table with recordings of the job with measures.
    #[must_use]
    pub fn and_with(self, with: Vec<LawWith>) -> Self {
        Self { with, ..self }
    }

    /// What the table says about a value; none beyond it.
    #[must_use]
    pub fn at(&self, value: u64) -> Option<LawNeed> {
        let (below, above) = match self.points.binary_search_by_key(&value, |point| point.value) {
            Ok(at) => (self.points[at], self.points[at]),
            Err(0) => return None,
            Err(above) => (self.points[above - 1], *self.points.get(above)?),
        };
        let point = LawPoint { value, ..below.or_more(above) };
        let is_recorded = self.recorded.binary_search(&value).is_ok();
        let share = match self.worst() {
            _ if is_recorded => 0.0,
            Some((_, needs)) => needs.max(LEAST_OFF),
            None => UNCHECKED,
        };
        let scaled = |needs: Bytes, factor: f64| Bytes((needs.get() as f64 * factor) as u64);
        let low = scaled(below.range.0.min(above.range.0), 1.0 - share);
        Some(LawNeed { point, range: (low, scaled(point.range.1, 1.0 + share)), is_recorded })
    }

    /// The greatest share by which the law was off about a recording that was left out: of allocated memory, and of what is
    /// needed; none if there were too few recordings.
    #[must_use]
    pub fn worst(&self) -> Option<(f64, f64)> {
        let worst = |off: fn(&LawCheck) -> f64| self.checks.iter().map(off).reduce(f64::max);
        Some((worst(LawCheck::allocated_off)?, worst(LawCheck::needs_off)?))
    }
}

/// All values from one to another; where there are more than `most`, at most so many, in equal proportions and round: those
/// that people choose, as 1,536 or 4,096, are multiples of a high power of two.
fn listed((least, greatest): (u64, u64), most: u64) -> Vec<u64> {
    match greatest - least < most {
        true => (least..=greatest).collect(),
        false => spread(least, greatest, most),
    }
}

/// Values from one to another, at most `most`. The step to the next value is a power of two, and grows with the value, so that the
/// steps are nearly the same share of it everywhere. Each value is a multiple of the step before it.
fn spread(least: u64, greatest: u64, most: u64) -> Vec<u64> {
    let share = (greatest as f64 / least.max(1) as f64).powf(1.0 / (most - 1) as f64) - 1.0;
    let mut values = vec![least];
    while let Some(&last) = values.last().filter(|last| **last < greatest) {
        let step = ((last as f64 * share).ceil() as u64).max(1).next_power_of_two();
        values.push(((last / step + 1) * step).min(greatest));
    }
    values
}

impl LawCheck {
    /// The share by which allocated memory is off.
    #[must_use]
    pub fn allocated_off(&self) -> f64 {
        self.off(|point| point.allocated)
    }

    /// The share by which what is needed is off.
    #[must_use]
    pub fn needs_off(&self) -> f64 {
        self.off(|point| point.needs)
    }

    fn off(&self, of: fn(&LawPoint) -> Bytes) -> f64 {
        let (recorded, predicted) = (of(&self.recorded), of(&self.predicted));
        recorded.get().abs_diff(predicted.get()) as f64 / recorded.get().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(value: u64, needs: u64) -> LawPoint {
        let needs = Bytes(needs);
        LawPoint { value, allocated: needs, reserved: needs, needs, range: (needs, needs) }
    }

    fn table(checks: Vec<LawCheck>) -> LawTable {
        let points = vec![point(1, 1000), point(2, 2000), point(4, 1500)];
        let (subject, summary) = (LawSubject::default(), LawSummary::default());
        LawTable::from_rows(subject, vec![1, 4], points, summary, checks)
    }

    #[test]
    fn values_are_spread_in_equal_proportions() {
        for (least, greatest) in
            [(1, 4096), (0, 2000), (7, 100_000), (32, 131_072), (1 << 30, 1 << 50)]
        {
            let values = spread(least, greatest, MAX_ROWS);
            assert_eq!((values[0], values[values.len() - 1]), (least, greatest));
            assert!(
                values.len() <= MAX_ROWS as usize,
                "{} values from {least} to {greatest}",
                values.len()
            );
            let share =
                (greatest as f64 / least.max(1) as f64).powf(1.0 / (MAX_ROWS - 1) as f64) - 1.0;
            let is_near = |two: &[u64]| {
                two[0] < two[1]
                    && (two[1] - two[0]) as f64 <= 2.0 * (two[0] as f64 * share).ceil().max(1.0)
            };
            assert!(values.windows(2).all(is_near), "{values:?}");
        }
    }

    #[test]
    fn a_table_of_many_lengths_has_those_that_people_choose() {
        let values = spread(32, 131_072, MAX_ROWS);
        let chosen = [
            128, 384, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 32_768,
            65_536, 98_304,
        ];
        assert!(chosen.iter().all(|value| values.binary_search(value).is_ok()), "{values:?}");
    }

    #[test]
    fn a_table_of_runs_has_no_range() {
        assert_eq!(LawTable::values_to_run(8, 1000).len(), 993);
        let spread = LawTable::values_to_run(1, 1 << 20);
        assert!(spread.len() as u64 <= MAX_RUNS && spread[spread.len() - 1] == 1 << 20);
        let points = vec![point(1, 1000), point(2, 2000), point(4, 1500)];
        let law = LawTable::of_runs(LawSubject::default(), points, LawSummary::default());
        let need = law.at(2).expect("run");
        assert_eq!((need.is_recorded, need.range), (true, (Bytes(2000), Bytes(2000))));
    }

    #[test]
    fn a_value_between_two_needs_no_more_than_the_greater() {
        let check = LawCheck { recorded: point(2, 2000), predicted: point(2, 2200) };
        let law = table(vec![check]);
        let need = law.at(3).expect("within the table");
        assert_eq!((need.point.needs, need.range), (Bytes(2000), (Bytes(1350), Bytes(2200))));
        let recorded = law.at(4).expect("recorded");
        assert_eq!((recorded.is_recorded, recorded.range), (true, (Bytes(1500), Bytes(1500))));
        assert_eq!((law.at(0), law.at(5)), (None, None));
    }

    #[test]
    fn a_law_that_was_not_checked_has_a_range() {
        let need = table(Vec::new()).at(2).expect("within the table");
        assert_eq!(need.range, (Bytes(1900), Bytes(2100)));
    }
}
