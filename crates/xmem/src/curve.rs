//! The curve over the run, in few points, and the peaks of each iteration.

use crate::answer::{Curve, IterationPeak};
use std::ops::Range;
use xmem_types::{Bytes, IterationId};

/// Which requests belong to which iteration. Sections are in order and leave nothing out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sections(Vec<(Option<IterationId>, Range<usize>)>);

impl Sections {
    /// Sections of `count` requests, `starts` being the first request of each iteration.
    pub(crate) fn new(starts: &[usize], count: usize) -> Self {
        let mut sections = Vec::with_capacity(starts.len() + 1);
        let first = starts.first().copied().unwrap_or(count);
        if first > 0 {
            sections.push((None, 0..first));
        }
        for (i, &start) in starts.iter().enumerate() {
            let end = starts.get(i + 1).copied().unwrap_or(count);
            sections.push((Some(IterationId::new(i)), start..end));
        }
        Self(sections)
    }

    /// The requests of the iterations `from..to`; what comes before iteration 0 belongs to it.
    pub(crate) fn of_iterations(&self, from: IterationId, to: IterationId) -> Range<usize> {
        let selected = |id: &Option<IterationId>| {
            let id = id.unwrap_or(IterationId(0));
            from <= id && id < to
        };
        let mut range: Option<Range<usize>> = None;
        for (_, r) in self.0.iter().filter(|(id, _)| selected(id)) {
            range = Some(range.map_or(r.clone(), |known| known.start..r.end));
        }
        range.unwrap_or(0..0)
    }

    /// The highest values in each section that `within` touches.
    pub(crate) fn peaks(
        &self,
        within: &Range<usize>,
        allocated: &[Bytes],
        reserved: &[Bytes],
    ) -> Vec<IterationPeak> {
        let top = |values: &[Bytes], range: &Range<usize>| {
            values[range.clone()].iter().copied().max().unwrap_or_default()
        };
        self.clipped(within)
            .map(|(iteration, range)| IterationPeak {
                iteration,
                allocated: top(allocated, &range),
                reserved: top(reserved, &range),
            })
            .collect()
    }

    fn clipped(
        &self,
        within: &Range<usize>,
    ) -> impl Iterator<Item = (Option<IterationId>, Range<usize>)> {
        let within = within.clone();
        self.0.iter().filter_map(move |(id, r)| {
            let range = r.start.max(within.start)..r.end.min(within.end);
            (!range.is_empty()).then_some((*id, range))
        })
    }
}

/// The part of a curve that lies `within`, in at most `points` points: the highest value of each
/// step, so that no peak is lost.
pub(crate) fn downsample(
    sections: &Sections,
    within: &Range<usize>,
    points: usize,
    allocated: &[Bytes],
    reserved: &[Bytes],
) -> Curve {
    let count = within.len();
    let points = points.clamp(1, count.max(1));
    let edge = |point: usize| within.start + point * count / points;
    let tops = |values: &[Bytes]| -> Vec<Bytes> {
        (0..if count == 0 { 0 } else { points })
            .map(|p| values[edge(p)..edge(p + 1)].iter().copied().max().unwrap_or_default())
            .collect()
    };
    let iterations = sections
        .clipped(within)
        .filter_map(|(id, range)| Some((id?, (range.start - within.start) * points / count)))
        .collect();
    Curve {
        allocated: tops(allocated),
        reserved: tops(reserved),
        iterations,
        requests: count as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(values: &[u64]) -> Vec<Bytes> {
        values.iter().copied().map(Bytes).collect()
    }

    #[test]
    fn what_comes_before_the_first_iteration_belongs_to_it() {
        let sections = Sections::new(&[2, 5], 9);
        let id = IterationId;
        assert_eq!(sections.of_iterations(id(0), id(1)), 0..5);
        assert_eq!(sections.of_iterations(id(1), id(2)), 5..9);
        assert_eq!(sections.of_iterations(id(0), id(2)), 0..9);
    }

    #[test]
    fn each_iteration_has_its_own_peak() {
        let sections = Sections::new(&[1, 3], 5);
        let values = bytes(&[1, 7, 2, 3, 9]);
        let peaks = sections.peaks(&(0..5), &values, &values);
        let seen: Vec<_> =
            peaks.iter().map(|p| (p.iteration.map(|i| i.0), p.allocated.0)).collect();
        assert_eq!(seen, [(None, 1), (Some(0), 7), (Some(1), 9)]);
    }

    #[test]
    fn marks_stand_where_iterations_begin() {
        let values = bytes(&[0; 100]);
        let curve = downsample(&Sections::new(&[20, 60], 100), &(0..100), 10, &values, &values);
        assert_eq!(curve.iterations, [(IterationId(0), 2), (IterationId(1), 6)]);
        assert_eq!(curve.allocated.len(), 10);
    }

    proptest! {
        #[test]
        fn no_peak_is_lost(values in prop::collection::vec(0_u64..1000, 0..200), points in 1_usize..300) {
            let values = bytes(&values);
            let within = 0..values.len();
            let curve = downsample(&Sections::new(&[], values.len()), &within, points, &values, &values);
            prop_assert_eq!(curve.allocated.iter().max(), values.iter().max());
            prop_assert!(curve.allocated.len() <= points.max(1));
        }
    }
}
