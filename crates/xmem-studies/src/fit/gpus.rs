//! The fewest GPUs over which a job for one of them is divided, so that its part fits on each.

use super::measures::Tried;
use super::{Recorder, Variant};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverGpus {
    /// What was recorded, in its order.
    pub tried: Vec<Tried>,
    /// The fewest GPUs with which the job fits; none if it does with none that were tried.
    pub fits: Option<Tried>,
}

/// Tries the candidates that divide a job, those of the fewest GPUs first; if none is enough, together with others.
pub fn over_gpus(
    recorder: &mut dyn Recorder,
    value: Option<u64>,
    dividing: &[usize],
    others: &[usize],
) -> OverGpus {
    let mut found = OverGpus::default();
    let with: &[&[usize]] = if others.is_empty() { &[&[]] } else { &[&[], others] };
    for others in with {
        for &measure in dividing {
            if !recorder.has_time() {
                return found;
            }
            let measures = [&[measure], *others].concat();
            let variant = Variant::with(value, measures);
            let recorded = recorder.record(std::slice::from_ref(&variant));
            let Some(recorded) = recorded.into_iter().next() else { return found };
            let fits = recorded.as_ref().is_ok_and(|figures| figures.fits);
            let tried = Tried { measures: variant.measures.clone(), recorded };
            found.tried.push(tried.clone());
            // What cannot be divided over two cannot be divided over more.
            if found.tried.iter().all(|tried| tried.recorded.is_err()) {
                return found;
            }
            if fits && (!recorder.has_time() || recorder.confirm(&variant) != Some(false)) {
                found.fits = Some(tried);
                return found;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::{Figures, Recorded};
    use super::*;
    use xmem_types::Bytes;

    /// Candidates 0 to 2 divide 1600 MiB over 2, 4 and 8 GPUs; the next saves half of what is left.
    struct Job {
        room: u64,
        refuses: bool,
        fails_later: Vec<usize>,
        recorded: Vec<Vec<usize>>,
    }

    impl Recorder for Job {
        fn record(&mut self, variants: &[Variant]) -> Vec<Recorded> {
            self.recorded.extend(variants.iter().map(|variant| variant.measures.clone()));
            if self.refuses {
                return variants.iter().map(|_| Err("refused".to_owned())).collect();
            }
            let needs = |variant: &Variant| {
                let halves = if variant.measures.contains(&3) { 2 } else { 1 };
                1600 / (2 << variant.measures[0]) / halves
            };
            let figures = |needs| {
                let (needs, fits) = (Bytes::mib(needs), needs <= self.room);
                Ok(Figures { needs, fits, has_room: true, step: None })
            };
            variants.iter().map(needs).map(figures).collect()
        }

        fn confirm(&mut self, variant: &Variant) -> Option<bool> {
            Some(variant.measures != self.fails_later)
        }

        fn has_time(&self) -> bool {
            true
        }

        fn side_by_side(&self) -> usize {
            2
        }
    }

    #[test]
    fn the_fewest_gpus_are_found_with_other_measures_only_if_none_is_enough() {
        for (room, fails_later, fits, recordings) in [
            (900, vec![], Some(vec![0]), 1),
            (450, vec![], Some(vec![1]), 2),
            (450, vec![1], Some(vec![2]), 3),
            (190, vec![], Some(vec![2, 3]), 6),
            (50, vec![], None, 6),
        ] {
            let mut job = Job { room, refuses: false, fails_later, recorded: Vec::new() };
            let found = over_gpus(&mut job, None, &[0, 1, 2], &[3]);
            assert_eq!(found.fits.map(|tried| tried.measures), fits, "{room}");
            assert_eq!((job.recorded.len(), found.tried.len()), (recordings, recordings));
        }
        let mut job = Job { room: 900, refuses: true, fails_later: vec![], recorded: Vec::new() };
        assert_eq!(over_gpus(&mut job, None, &[0, 1, 2], &[3]).fits, None);
        assert_eq!(job.recorded, [[0]]);
    }
}
