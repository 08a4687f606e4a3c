//! Memory that grows from iteration to iteration, as a cache of keys and values does, or a leak: the iterations that were
//! recorded do not show what a longer run needs.

use super::{Assessment, Doubt, Subject};
use crate::memory::IterationPeak;
use crate::range::Confidence;
use xmem_analyzer::JobKind;
use xmem_types::{Bytes, Severity};

pub(super) const DOUBT: Doubt = Doubt { name: "growth", assess };

/// A job that runs out of memory within so many iterations may fail: more than a generation has tokens, as a rule.
const SOON: u64 = 1000;

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let memory = &assessment.memory;
    let trains = subject.profile().kind == JobKind::Training;
    let Some(step) = step(&memory.per_iteration, trains) else { return };
    let free = subject.device().available().saturating_sub(memory.peak.reserved);
    let left = free.get() / step.get();
    let recorded = memory.per_iteration.iter().filter(|peak| peak.iteration.is_some()).count();
    let fits = memory.fits;
    let end = match fits {
        true => format!(", and at this rate runs out of memory after about {left} more"),
        false => String::new(),
    };
    assessment.notes.report("memory-grows", Severity::Warning, None, || {
        format!(
            "memory grows by {step} from iteration to iteration, and {recorded} were recorded: a longer run needs \
             more{end}; record as many iterations as the job has (xmem profile --steps N)"
        )
    });
    // The verdict is about the recorded iterations alone.
    if fits {
        assessment.lower_to(if left < SOON { Confidence::MayFail } else { Confidence::Likely });
    }
}

/// The least growth that counts, as a share of the peak: a batch or a loss more is not what a run ends by.
const LEAST_SHARE: u64 = 1000;

/// What each iteration keeps beyond the one before it, if all but the first do, and peaks grow by about as much where
/// something is trained: gradients are kept for other reasons. The first makes what is kept from then on, as the states of
/// an optimizer.
fn step(peaks: &[IterationPeak], trains: bool) -> Option<Bytes> {
    let later: Vec<&IterationPeak> =
        peaks.iter().filter(|peak| peak.iteration.is_some_and(|id| id.0 > 0)).collect();
    let grows = |pair: &[&IterationPeak]| {
        let kept = pair[1].start.saturating_sub(pair[0].start).get();
        let higher = pair[1].allocated.saturating_sub(pair[0].allocated).get();
        kept > 0 && (!trains || higher >= kept / 2 && higher <= kept.saturating_mul(2))
    };
    if later.len() < 2 || !later.windows(2).all(grows) {
        return None;
    }
    let (first, last) = (later.first()?, later.last()?);
    let step = (last.start - first.start).get() / (later.len() as u64 - 1);
    (step.saturating_mul(LEAST_SHARE) >= last.allocated.get()).then_some(Bytes(step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_types::IterationId;

    fn steps(values: &[(u64, u64)]) -> Option<Bytes> {
        step(&peaks(values), true)
    }

    fn peaks(values: &[(u64, u64)]) -> Vec<IterationPeak> {
        let peak = |(at, &(start, allocated)): (usize, &(u64, u64))| IterationPeak {
            iteration: Some(IterationId::new(at)),
            start: Bytes::mib(start),
            allocated: Bytes::mib(allocated),
            reserved: Bytes::mib(allocated),
        };
        values.iter().enumerate().map(peak).collect()
    }

    #[test]
    fn three_tokens_of_a_generation_were_taken_for_all_256() {
        // A cache of keys and values.
        assert_eq!(steps(&[(10, 20), (12, 22), (14, 24)]), Some(Bytes::mib(2)));
        assert_eq!(steps(&[(10, 20), (12, 22), (15, 25), (18, 30)]), Some(Bytes::mib(3)));
        // The states of an optimizer; batches of other lengths; one more iteration.
        assert_eq!(steps(&[(10, 20), (30, 40), (30, 40)]), None);
        assert_eq!(steps(&[(10, 20), (30, 40), (30, 50)]), None);
        assert_eq!(steps(&[(10, 20), (12, 22)]), None);
        // A batch that is made earlier; a loss that is kept.
        assert_eq!(steps(&[(10, 200), (30, 2077), (35, 2078)]), None);
        assert_eq!(steps(&[(10, 200), (3000, 9077), (3001, 9078)]), None);
    }
    #[test]
    fn a_generation_grows_whatever_its_peaks_are() {
        let values = [(10, 28), (12, 27), (14, 29)];
        assert_eq!(step(&peaks(&values), false), Some(Bytes::mib(2)));
        assert_eq!(step(&peaks(&values[..2]), false), None);
        assert_eq!(step(&peaks(&[(10, 28), (12, 27), (12, 29)]), false), None);
    }
}
