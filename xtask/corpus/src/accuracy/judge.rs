//! What the cases come to, and the bounds they must keep to.

use super::case::{Pair, Row};
use std::fmt;

/// Bounds of the absolute errors, in per cent.
mod bounds {
    /// Peak reserved.
    pub(super) const RESERVED_MEDIAN: f64 = 1.0;
    pub(super) const RESERVED_P90: f64 = 3.0;
    pub(super) const RESERVED_WORST: f64 = 6.0;
    /// Peak allocated.
    pub(super) const ALLOCATED_MEDIAN: f64 = 0.5;
    pub(super) const ALLOCATED_WORST: f64 = 3.0;
    /// Share of the cases that are estimated too low by more than [`UNDER`].
    pub(super) const UNDER_SHARE: f64 = 10.0;
    /// Mean distance of the curves.
    pub(super) const CURVES: f64 = 2.0;
    /// From where on an estimate counts as too low.
    pub(super) const UNDER: f64 = 1.0;
}

/// What the cases of a set come to; in per cent.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    cases: usize,
    reserved: Errors,
    allocated: Errors,
    /// How many cases are estimated too low by more than 1 %.
    under: usize,
    /// Means of the curves' distances, of allocated and reserved memory.
    curves: [f64; 2],
    /// Cases that are off by one segment, and in what.
    one_segment: Vec<String>,
    /// Cases beyond the worst bound of peak reserved; those of one segment are not counted.
    beyond: Vec<String>,
}

/// Absolute errors.
#[derive(Clone, Copy, Debug)]
struct Errors {
    median: f64,
    p90: f64,
    worst: f64,
}

impl Errors {
    fn of(pairs: impl Iterator<Item = Pair>) -> Self {
        let mut sorted: Vec<f64> = pairs.map(|pair| pair.error().abs()).collect();
        sorted.sort_by(f64::total_cmp);
        Self {
            median: median(&sorted),
            p90: rank(&sorted, 0.9),
            worst: sorted.last().copied().unwrap_or_default(),
        }
    }
}

impl Summary {
    pub(super) fn of(rows: &[&Row]) -> Self {
        let named = |row: &&&Row| format!("{} {:+.2} %", row.case.name, row.reserved.error());
        let curve = |which: usize| {
            let values: Vec<f64> = rows.iter().filter_map(|row| Some(row.curves?[which])).collect();
            values.iter().sum::<f64>() / values.len().max(1) as f64
        };
        let is_beyond = |row: &&&Row| {
            row.reserved.error().abs() > bounds::RESERVED_WORST && !row.is_one_segment()
        };
        Self {
            cases: rows.len(),
            reserved: Errors::of(rows.iter().map(|row| row.reserved)),
            allocated: Errors::of(rows.iter().map(|row| row.allocated)),
            under: rows.iter().filter(|row| row.reserved.error() < -bounds::UNDER).count(),
            curves: [curve(0), curve(1)],
            one_segment: rows
                .iter()
                .filter(|row| row.is_one_segment())
                .map(|r| named(&r))
                .collect(),
            beyond: rows.iter().filter(is_beyond).map(|r| named(&r)).collect(),
        }
    }

    /// In per cent.
    fn under_share(&self) -> f64 {
        100.0 * self.under as f64 / self.cases.max(1) as f64
    }

    /// The bounds that are broken.
    pub(super) fn broken(&self) -> Vec<String> {
        let mut list: Vec<String> = [
            ("median of peak reserved", self.reserved.median, bounds::RESERVED_MEDIAN),
            ("90th percentile of peak reserved", self.reserved.p90, bounds::RESERVED_P90),
            ("median of peak allocated", self.allocated.median, bounds::ALLOCATED_MEDIAN),
            ("worst of peak allocated", self.allocated.worst, bounds::ALLOCATED_WORST),
            ("share of under-estimates", self.under_share(), bounds::UNDER_SHARE),
            ("distance of allocated curves", self.curves[0], bounds::CURVES),
            ("distance of reserved curves", self.curves[1], bounds::CURVES),
        ]
        .into_iter()
        .filter(|(_, value, bound)| value > bound)
        .map(|(what, value, bound)| format!("{what}: {value:.2} %, more than {bound} %"))
        .collect();
        let beyond = self.beyond.iter();
        list.extend(beyond.map(|case| format!("{case}, more than {} %", bounds::RESERVED_WORST)));
        list
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Errors { median, p90, worst } = self.reserved;
        writeln!(f, "- {} cases", self.cases)?;
        writeln!(
            f,
            "- peak reserved: median |error| {median:.2} %, 90th percentile {p90:.2} %, worst \
             {worst:.2} %; too low by more than {} %: {} of {}",
            bounds::UNDER,
            self.under,
            self.cases
        )?;
        let Errors { median, worst, .. } = self.allocated;
        writeln!(f, "- peak allocated: median |error| {median:.2} %, worst {worst:.2} %")?;
        let [allocated, reserved] = self.curves;
        writeln!(
            f,
            "- curves after the first iteration: allocated {allocated:.2} %, reserved \
             {reserved:.2} % from the recorded ones"
        )?;
        if !self.one_segment.is_empty() {
            let list = self.one_segment.join(", ");
            writeln!(f, "- below 1 GiB and off by one segment of up to 20 MiB: {list}")?;
        }
        Ok(())
    }
}

/// The middle of sorted values; the mean of the two middle ones.
fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// The smallest of the sorted values that at least this part of them does not exceed.
fn rank(sorted: &[f64], part: f64) -> f64 {
    let row = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(row.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::case::tests::row;
    use super::*;

    fn summary(rows: &[Row]) -> Summary {
        Summary::of(&rows.iter().collect::<Vec<_>>())
    }

    #[test]
    fn median_of_even_counts_is_the_mean_of_the_middle() {
        assert!((median(&[1.0, 2.0, 4.0, 8.0]) - 3.0).abs() < 1e-9);
        assert!((median(&[1.0, 2.0, 4.0]) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn nine_of_ten_values_do_not_exceed_the_90th_percentile() {
        let sorted: Vec<f64> = (1..=10).map(f64::from).collect();
        assert!((rank(&sorted, 0.9) - 9.0).abs() < 1e-9);
        assert!((rank(&[5.0], 0.9) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_large_job_may_not_be_off_by_a_segment_beyond_the_bound() {
        let exact: Vec<Row> = (0..20).map(|_| row(2000.0, 2000.0)).collect();
        let with = |one: Row| summary(&exact.iter().cloned().chain([one]).collect::<Vec<_>>());
        assert!(with(row(120.0, 100.0)).broken().is_empty(), "one segment in a small job");
        assert_eq!(with(row(140.0, 100.0)).broken().len(), 1);
        assert_eq!(with(row(2200.0, 2000.0)).broken().len(), 1);
        assert!(with(row(2100.0, 2000.0)).broken().is_empty());
    }

    #[test]
    fn under_estimates_may_not_be_many() {
        let rows: Vec<Row> =
            (0..10).map(|at| row(if at < 2 { 1970.0 } else { 2000.0 }, 2000.0)).collect();
        assert!(summary(&rows[1..]).under == 1 && summary(&rows).under == 2);
        let broken = summary(&rows).broken();
        assert!(broken.iter().any(|what| what.starts_with("share of under")), "{broken:?}");
    }
}
