//! Batches of different sizes: what is reserved depends on their order, which another seed changes. Where the lengths of the
//! script's batches are known, and iterations of two of them were recorded, the job is run with other orders.

use super::{Assessment, Doubt, Subject};
use crate::lengths::{Dimension, LengthRun, LengthSettings, VaryingDimension};
use crate::range::Confidence;
use xmem_analyzer::ScriptPart;
use xmem_types::{Bytes, Severity};

pub(super) const DOUBT: Doubt = Doubt { name: "other_orders", assess };

/// Orders that are tried, and iterations of each: fewer than where a user asks for a distribution.
const ORDERS: usize = 8;
const ITERATIONS: usize = 100;
/// Lengths from which orders are drawn: of more batches, each so many stand for one.
const DRAWN: u64 = 4096;

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let coverage = &assessment.memory.coverage;
    if coverage.parts.is_empty() || !subject.has_all_iterations() || !subject.is_as_recorded() {
        return;
    }
    let has_many_kinds = coverage.has_many_kinds();
    let lengths = coverage.batches.lengths.clone();
    let Some(run) = run(subject, &lengths) else {
        if has_many_kinds {
            assessment.notes.report("sizes-vary", Severity::Note, None, || {
                "steps of the script ask for different sizes: with another order of its batches, other memory \
                 is reserved"
                    .to_owned()
            });
            assessment.lower_to(Confidence::Likely);
        }
        return;
    };
    let at = assessment.memory.peak.at.as_ref();
    let is_in_training =
        at.is_none_or(|at| at.part.is_none_or(|part| part == ScriptPart::Training));
    let (lowest, highest) =
        ((run.allocated.min, run.reserved.min), (run.allocated.max, run.reserved.max));
    // An evaluation that needs more does so with every order.
    let others: &[(Bytes, Bytes)] = if is_in_training { &[lowest, highest] } else { &[highest] };
    assessment.extend_to("other_orders", others, subject.device());
    assessment.lower_to(Confidence::Likely);
    let (shortest, longest) = (lengths[0].0, lengths[lengths.len() - 1].0);
    assessment.notes.report("sizes-vary", Severity::Note, None, || {
        format!(
            "batches have lengths from {shortest} to {longest}: in {ORDERS} random orders of {ITERATIONS} of them, \
             training reserves {} to {}, in the median {}",
            run.reserved.min, run.reserved.max, run.reserved.median
        )
    });
}

/// Training with batches of these lengths in random orders; none if all have the same, or the recording does not show what
/// depends on them.
fn run(subject: &Subject<'_>, lengths: &[(u64, u64)]) -> Option<LengthRun> {
    if lengths.len() < 2 {
        return None;
    }
    let model = subject.prediction.length_model(Dimension::Sequence).ok()?;
    let varying = VaryingDimension::of(Dimension::Sequence, drawn(lengths))?;
    let settings =
        LengthSettings { varying, iterations: ITERATIONS, orders: ORDERS, seed: 0, exact: None };
    model.run(&settings, subject.prediction.setup()).ok()
}

/// Lengths with the same distribution, of which each is drawn with the same chance: all of them, or so many quantiles, with
/// the shortest and the longest.
fn drawn(lengths: &[(u64, u64)]) -> Vec<u64> {
    let count: u64 = lengths.iter().map(|(_, count)| count).sum();
    let places = count.min(DRAWN);
    let mut drawn = Vec::with_capacity(places as usize);
    let (mut before, mut next) = (0, 0);
    for &(length, count_of_it) in lengths {
        before += count_of_it;
        while next < places && next * (count - 1) / (places - 1).max(1) < before {
            drawn.push(length);
            next += 1;
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::drawn;

    #[test]
    fn lengths_are_drawn_by_the_number_of_their_batches() {
        assert_eq!(drawn(&[(7, 1)]), [7]);
        assert_eq!(drawn(&[(7, 2), (9, 1)]), [7, 7, 9]);
        assert_eq!(drawn(&[(1, 1), (5, 3), (9, 1)]), [1, 5, 5, 5, 9]);
        let many = drawn(&[(3, 1), (4, 99_998), (5, 1)]);
        assert_eq!(many.len(), 4096);
        assert_eq!((many[0], many[1], many[4094], many[4095]), (3, 4, 4, 5));
    }
}
