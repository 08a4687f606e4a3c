//! The curve over the run, in few points, and the peaks of each iteration.

use super::figures::{Curve, IterationPeak};
use crate::sections::Sections;
use std::ops::Range;
use xmem_types::Bytes;

/// The highest values in each section that `within` touches.
pub(super) fn iteration_peaks(
    sections: &Sections,
    within: &Range<usize>,
    allocated: &[Bytes],
    reserved: &[Bytes],
) -> Vec<IterationPeak> {
    let top = |values: &[Bytes], range: &Range<usize>| {
        values[range.clone()].iter().copied().max().unwrap_or_default()
    };
    let before =
        |range: &Range<usize>| range.start.checked_sub(1).map_or(Bytes::ZERO, |at| allocated[at]);
    let peak = |(iteration, range)| IterationPeak {
        iteration,
        start: before(&range),
        allocated: top(allocated, &range),
        reserved: top(reserved, &range),
    };
    sections.clipped(within).map(peak).collect()
}

/// The part of a curve that lies `within`, in at most `points` points: the highest value of each
/// step, so that no peak is lost.
pub(super) fn downsample(
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
    use xmem_types::IterationId;

    fn bytes(values: &[u64]) -> Vec<Bytes> {
        values.iter().copied().map(Bytes).collect()
    }

    #[test]
    fn each_iteration_has_its_own_peak() {
        let sections = Sections::new(&[1, 3], 5);
        let values = bytes(&[1, 7, 2, 3, 9]);
        let peaks = iteration_peaks(&sections, &(0..5), &values, &values);
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
