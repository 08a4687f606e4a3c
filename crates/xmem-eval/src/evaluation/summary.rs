//! The figures of an estimator over many runs.

use super::outcome::{EstimatedRun, Outcome, TrueRun};
use super::statistics::Spread;
use std::time::Duration;
use xmem_types::Bytes;

/// The figures of an estimator over runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Runs with an estimate.
    pub runs: usize,
    /// The errors against the first round, of runs that ended.
    pub errors: Option<Spread>,
    /// The same errors with their signs.
    pub signed_errors: Option<Spread>,
    /// The errors against the second round where there is one, else against the first: the paper's equation 3.
    pub second_errors: Option<Spread>,
    /// Peaks that lie in the estimator's range, of those with one.
    pub in_range: Share,
    /// Estimates that could not have been used as they are, of those of which it is known (PEF, the probability of estimation
    /// failure).
    pub failures: Share,
    /// Second rounds that ran, of those that were made.
    pub second_runs: Share,
    /// The memory left to other jobs (MCP, the memory conservation potential).
    pub conserved: Option<Conserved>,
    /// The verdicts.
    pub out_of_memory: OutOfMemoryCounts,
    /// Runtimes in seconds.
    pub runtimes: Option<Spread>,
}

/// A number of cases among all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The cases.
    pub count: usize,
    /// All.
    pub of: usize,
}

impl Share {
    /// The share; none of nothing.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        (self.of > 0).then(|| self.count as f64 / self.of as f64)
    }

    fn new(cases: impl Iterator<Item = bool>) -> Self {
        cases.fold(Self::default(), |share, case| Self {
            count: share.count + usize::from(case),
            of: share.of + 1,
        })
    }
}

/// The mean memory of a device that estimates leave to other jobs, in bytes, by what an estimate costs that could not be used.
/// Equation 7 as printed deducts the device's memory, which cannot give the published figures; section 4.1.5 deducts the
/// estimate; the authors' program deducts nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conserved {
    /// It costs nothing, as in the authors' program.
    pub without_penalty: f64,
    /// It costs the estimate, as in section 4.1.5.
    pub deducting_estimate: f64,
    /// It costs the memory of the device, as in equation 7.
    pub deducting_capacity: f64,
}

/// Verdicts of an estimator against what became of the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutOfMemoryCounts {
    /// Runs that ran out of memory, as it said.
    pub recognized: usize,
    /// Runs that ran out of memory.
    pub of_failed: usize,
    /// Runs that ended, and would run out of memory as it said.
    pub false_alarms: usize,
    /// Runs that ended.
    pub of_ended: usize,
}

impl Summary {
    pub(super) fn new<'a>(
        runs: impl Iterator<Item = (&'a TrueRun, &'a EstimatedRun)> + Clone,
    ) -> Self {
        let judged: Vec<(&TrueRun, &EstimatedRun, Outcome)> =
            runs.map(|(truth, estimate)| (truth, estimate, estimate.outcome(truth))).collect();
        let outcomes = || judged.iter().map(|(_, _, outcome)| outcome);
        Self {
            runs: judged.len(),
            errors: Spread::new(outcomes().filter_map(|outcome| outcome.error)),
            signed_errors: Spread::new(outcomes().filter_map(|outcome| outcome.signed_error)),
            second_errors: Spread::new(outcomes().filter_map(|outcome| outcome.second_error)),
            in_range: Share::new(outcomes().filter_map(|outcome| outcome.in_range)),
            failures: Share::new(
                outcomes().filter_map(|outcome| outcome.usable).map(|usable| !usable),
            ),
            second_runs: Share::new(outcomes().filter_map(|outcome| outcome.second_runs)),
            conserved: Conserved::of(&judged),
            out_of_memory: OutOfMemoryCounts::of(&judged),
            runtimes: Spread::new(
                judged
                    .iter()
                    .filter_map(|(_, estimate, _)| estimate.runtime)
                    .map(|t| t.as_secs_f64()),
            ),
        }
    }

    /// The mean runtime.
    #[must_use]
    pub fn mean_runtime(&self) -> Option<Duration> {
        self.runtimes.map(|runtimes| Duration::from_secs_f64(runtimes.mean))
    }
}

impl Conserved {
    fn of(judged: &[(&TrueRun, &EstimatedRun, Outcome)]) -> Option<Self> {
        let known: Vec<_> = judged
            .iter()
            .filter_map(|(truth, estimate, outcome)| {
                Some((outcome.conserved?, outcome.usable?, estimate.reserve, truth.capacity))
            })
            .collect();
        let mean = |penalty: fn(Bytes, Bytes) -> Bytes| {
            let signed = known.iter().map(|&(conserved, usable, estimate, capacity)| {
                let penalty = if usable { Bytes::ZERO } else { penalty(estimate, capacity) };
                conserved.get() as f64 - penalty.get() as f64
            });
            signed.sum::<f64>() / known.len() as f64
        };
        (!known.is_empty()).then(|| Self {
            without_penalty: mean(|_, _| Bytes::ZERO),
            deducting_estimate: mean(|estimate, _| estimate),
            deducting_capacity: mean(|_, capacity| capacity),
        })
    }
}

impl OutOfMemoryCounts {
    fn of(judged: &[(&TrueRun, &EstimatedRun, Outcome)]) -> Self {
        judged.iter().fold(Self::default(), |mut counts, (truth, estimate, _)| {
            let says = usize::from(estimate.out_of_memory);
            if truth.out_of_memory {
                counts.recognized += says;
                counts.of_failed += 1;
            } else {
                counts.false_alarms += says;
                counts.of_ended += 1;
            }
            counts
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::SecondRound;
    use super::*;

    #[test]
    fn figures_of_four_runs() {
        let run = |peak, out_of_memory| TrueRun {
            peak,
            out_of_memory,
            capacity: Bytes::gib(12),
            classes: None,
        };
        let estimate = |memory, out_of_memory, second: Option<bool>| EstimatedRun {
            memory,
            reserve: memory,
            range: None,
            out_of_memory,
            second: second.map(|out_of_memory| SecondRound { out_of_memory, error: None }),
            runtime: Some(Duration::from_secs(2)),
            classes: None,
        };
        let runs = [
            (run(Bytes::gib(4), false), estimate(Bytes::gib(5), false, Some(false))),
            (run(Bytes::gib(4), false), estimate(Bytes::gib(3), false, Some(true))),
            (run(Bytes::gib(12), true), estimate(Bytes::gib(13), true, None)),
            (run(Bytes::gib(4), false), estimate(Bytes::gib(13), true, None)),
        ];
        let summary = Summary::new(runs.iter().map(|(truth, estimate)| (truth, estimate)));
        assert_eq!(summary.runs, 4);
        let errors = summary.errors.expect("errors");
        assert_eq!((errors.count, errors.median), (3, 0.25));
        assert_eq!(summary.failures, Share { count: 2, of: 4 });
        assert_eq!(summary.second_runs, Share { count: 1, of: 2 });
        let expected =
            OutOfMemoryCounts { recognized: 1, of_failed: 1, false_alarms: 1, of_ended: 3 };
        assert_eq!(summary.out_of_memory, expected);
        // 7 and 12 GiB are left; the other two cost nothing, 3 and 13 GiB, or 12 GiB each.
        let gib = |number: f64| number * Bytes::gib(1).get() as f64;
        let conserved = summary.conserved.expect("all are known");
        assert_eq!(conserved.without_penalty, gib(19.0 / 4.0));
        assert_eq!(conserved.deducting_estimate, gib((19.0 - 16.0) / 4.0));
        assert_eq!(conserved.deducting_capacity, gib((19.0 - 24.0) / 4.0));
        assert_eq!(summary.mean_runtime(), Some(Duration::from_secs(2)));
    }
}
