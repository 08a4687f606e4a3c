//! The curves side by side: how far apart they run, iteration by iteration.

use super::differences::Compared;
use super::result::{CurveDistance, CurvePoint, Judged, difference};
use std::collections::BTreeMap;
use xmem_types::{Bytes, IterationId};

/// One curve of both sides, summed over the points of an iteration.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    apart: f64,
    recorded: f64,
}

impl Sums {
    fn add(&mut self, estimated: Bytes, recorded: Bytes) {
        self.apart += difference(estimated, recorded).unsigned_abs() as f64;
        self.recorded += recorded.get() as f64;
    }

    fn relative(self) -> f64 {
        self.apart / self.recorded.max(1.0)
    }
}

impl Compared<'_> {
    /// Both curves at every request that is the same on both sides.
    pub(super) fn points(&self) -> Vec<CurvePoint> {
        let (ours, theirs) = (&self.predicted.side, &self.recorded.side);
        let pairs = self.alignment.pairs.iter();
        pairs
            .map(|&(at, other)| CurvePoint {
                allocated: Judged {
                    estimated: ours.allocated[at],
                    recorded: theirs.allocated[other],
                },
                reserved: Judged { estimated: ours.reserved[at], recorded: theirs.reserved[other] },
            })
            .collect()
    }

    /// Every iteration with a request that is the same on both sides.
    pub(super) fn curves(&self) -> Vec<CurveDistance> {
        let sections = self.sections();
        let (ours, theirs) = (&self.predicted.side, &self.recorded.side);
        let mut found: BTreeMap<IterationId, (u64, Sums, Sums)> = BTreeMap::new();
        for &(at, other) in &self.alignment.pairs {
            let Some(iteration) = sections[at].0 else { continue };
            let (points, allocated, reserved) = found.entry(iteration).or_default();
            *points += 1;
            allocated.add(ours.allocated[at], theirs.allocated[other]);
            reserved.add(ours.reserved[at], theirs.reserved[other]);
        }
        let distance = |(iteration, (points, allocated, reserved)): (_, (u64, Sums, Sums))| {
            let (allocated, reserved) = (allocated.relative(), reserved.relative());
            CurveDistance { iteration, points, allocated, reserved }
        };
        found.into_iter().map(distance).collect()
    }
}
