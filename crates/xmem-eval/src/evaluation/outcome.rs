//! One estimate of one run, judged.

use std::time::Duration;
use xmem_types::Bytes;

/// A run whose memory is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrueRun {
    /// The peak; that of a run that ended by running out of memory is not what the job needs.
    pub peak: Bytes,
    /// Whether it ran out of memory.
    pub out_of_memory: bool,
    /// The memory of the device.
    pub capacity: Bytes,
    /// The peak by class, where it is known.
    pub classes: Option<MemoryByClass>,
}

/// A peak of reserved memory by the classes of DNNMem's breakdown (Gao et al., ESEC/FSE 2020), without the CUDA context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryByClass {
    /// Bytes that the program requested and has not freed.
    pub live: Bytes,
    /// Bytes by which blocks are larger: the paper's internal fragmentation.
    pub rounding: Bytes,
    /// Reserved memory that holds no block.
    pub reservation: Bytes,
}

impl MemoryByClass {
    /// The classes by name, with the bytes of each.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, Bytes); 3] {
        [("live", self.live), ("rounding", self.rounding), ("reservation", self.reservation)]
    }
}

/// An estimate of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimatedRun {
    /// The estimated peak.
    pub memory: Bytes,
    /// The memory to reserve for the job, which is what the second round has: the estimated peak, or more where that depends
    /// on the order of the data.
    pub reserve: Bytes,
    /// The range in which the estimator sees the peak; none if it names a point only.
    pub range: Option<(Bytes, Bytes)>,
    /// Whether the job runs out of memory on the device, as the estimator says.
    pub out_of_memory: bool,
    /// The run with as much memory as was estimated; none if it was not made.
    pub second: Option<SecondRound>,
    /// The time of the estimate, with everything that it needs.
    pub runtime: Option<Duration>,
    /// The estimate by class, where the estimator says so.
    pub classes: Option<MemoryByClass>,
}

/// The run of a job with only as much memory as was estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SecondRound {
    /// Whether it ran out of memory.
    pub out_of_memory: bool,
    /// The relative difference of the estimate from its peak; none if it ran out of memory.
    pub error: Option<f64>,
}

/// The judgment about an estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The relative difference from the peak, |estimate − peak| / peak; none if the run ran out of memory.
    pub error: Option<f64>,
    /// The same with its sign: negative if the estimate is too low.
    pub signed_error: Option<f64>,
    /// The difference from the peak of the second round where there is one, else that of the first.
    pub second_error: Option<f64>,
    /// Whether the peak lies in the estimator's range; none without range or peak.
    pub in_range: Option<bool>,
    /// Whether the estimator says of the first round what became of it (C1 of the paper).
    pub first_agrees: bool,
    /// Whether the job ran with as much memory as was estimated (C2); none if that was not tried.
    pub second_runs: Option<bool>,
    /// Whether the estimate could have been used as it is: it is known that the job runs out of memory, or how much memory is
    /// enough. None if that needs a second round that was not made.
    pub usable: Option<bool>,
    /// The memory of the device that a usable estimate leaves to other jobs, in bytes; zero of one that is not usable.
    pub conserved: Option<Bytes>,
}

/// The relative difference of an estimate from a peak, negative if the estimate is too low; none from no memory.
#[must_use]
pub fn relative_error(estimate: Bytes, peak: Bytes) -> Option<f64> {
    let (estimate, peak) = (estimate.get() as f64, peak.get() as f64);
    (peak > 0.0).then(|| (estimate - peak) / peak)
}

impl EstimatedRun {
    /// Judges the estimate.
    #[must_use]
    pub fn outcome(&self, truth: &TrueRun) -> Outcome {
        let ended = !truth.out_of_memory && truth.peak > Bytes::ZERO;
        let signed_error = relative_error(self.memory, truth.peak).filter(|_| !truth.out_of_memory);
        let error = signed_error.map(f64::abs);
        let first_agrees = self.out_of_memory == truth.out_of_memory;
        let second_runs = self.second.map(|second| !second.out_of_memory);
        let usable = match (first_agrees, truth.out_of_memory) {
            (false, _) => Some(false),
            (true, true) => Some(true),
            (true, false) => second_runs,
        };
        let conserved = usable.map(|usable| match (usable, truth.out_of_memory) {
            (false, _) => Bytes::ZERO,
            (true, true) => truth.capacity,
            (true, false) => truth.capacity.saturating_sub(self.reserve),
        });
        let second_error = ended.then(|| self.second.and_then(|second| second.error)).flatten();
        Outcome {
            error,
            signed_error,
            second_error: second_error.or(error),
            in_range: self
                .range
                .filter(|_| ended)
                .map(|(low, high)| (low..=high).contains(&truth.peak)),
            first_agrees,
            second_runs,
            usable,
            conserved,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: Bytes = Bytes::gib(12);

    fn truth(peak: Bytes, out_of_memory: bool) -> TrueRun {
        TrueRun { peak, out_of_memory, capacity: CAPACITY, classes: None }
    }

    fn estimate(memory: Bytes, out_of_memory: bool, second: Option<bool>) -> EstimatedRun {
        let second = second.map(|out_of_memory| SecondRound { out_of_memory, error: None });
        EstimatedRun {
            memory,
            reserve: memory,
            range: None,
            out_of_memory,
            second,
            runtime: None,
            classes: None,
        }
    }

    #[test]
    fn an_estimate_is_usable_if_both_rounds_confirm_it() {
        let usable = |of_run, of_estimate, second| {
            let outcome =
                estimate(Bytes::gib(5), of_estimate, second).outcome(&truth(Bytes::gib(4), of_run));
            (outcome.usable, outcome.conserved)
        };
        // The run ends.
        assert_eq!(usable(false, false, Some(false)), (Some(true), Some(Bytes::gib(7))));
        assert_eq!(usable(false, false, Some(true)), (Some(false), Some(Bytes::ZERO)));
        assert_eq!(usable(false, false, None), (None, None));
        assert_eq!(usable(false, true, None), (Some(false), Some(Bytes::ZERO)));
        // It runs out of memory.
        assert_eq!(usable(true, true, None), (Some(true), Some(CAPACITY)));
        assert_eq!(usable(true, false, None), (Some(false), Some(Bytes::ZERO)));
    }

    #[test]
    fn errors_are_relative_to_the_peak_of_a_run_that_ended() {
        let mut high = estimate(Bytes::gib(5), false, None);
        let outcome = high.outcome(&truth(Bytes::gib(4), false));
        assert_eq!((outcome.error, outcome.signed_error), (Some(0.25), Some(0.25)));
        assert_eq!(outcome.second_error, Some(0.25));
        high.second = Some(SecondRound { out_of_memory: false, error: Some(0.01) });
        assert_eq!(high.outcome(&truth(Bytes::gib(4), false)).second_error, Some(0.01));
        let low = estimate(Bytes::gib(3), false, None).outcome(&truth(Bytes::gib(4), false));
        assert_eq!((low.error, low.signed_error), (Some(0.25), Some(-0.25)));
        assert_eq!(high.outcome(&truth(Bytes::gib(4), true)).error, None);
    }

    #[test]
    fn a_range_is_judged_with_its_ends() {
        let mut ranged = estimate(Bytes::gib(5), false, None);
        ranged.range = Some((Bytes::gib(4), Bytes::gib(6)));
        let in_range = |peak| ranged.outcome(&truth(peak, false)).in_range;
        assert_eq!(in_range(Bytes::gib(4)), Some(true));
        assert_eq!(in_range(Bytes::gib(6)), Some(true));
        assert_eq!(in_range(Bytes::gib(7)), Some(false));
    }
}
