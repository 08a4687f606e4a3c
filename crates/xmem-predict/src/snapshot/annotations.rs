//! Iterations and phases as the annotations of a snapshot.

use super::DEVICE;
use super::stacks::iteration_label;
use std::cmp::Reverse;
use std::ops::Range;
use xmem_analyzer::Profile;
use xmem_snapshot::{Annotation, AnnotationStage, Snapshot};
use xmem_types::{IterationId, Nanos};

/// Adds a begin and an end for each iteration and phase, as far as it lies within `span`, by time.
pub(super) fn annotate(profile: &Profile, span: &Range<Nanos>, snapshot: &mut Snapshot) {
    let base = profile.base_time();
    let clip = |time: Nanos| (base + time).clamp(span.start, span.end);
    let iterations = profile.iterations.iter().enumerate().map(|(index, iteration)| {
        let name = iteration_label(IterationId::new(index));
        (iteration.start, iteration.end, Depth::Iteration, name)
    });
    let phases = profile
        .phases
        .chunk_by(|a, b| a.phase == b.phase && a.iteration == b.iteration && a.end == b.start);
    let phases = phases.map(|run| {
        let (first, last) = (&run[0], &run[run.len() - 1]);
        (first.start, last.end, Depth::Phase, first.phase.name().to_owned())
    });
    let mut ends = Vec::new();
    for (start, end, depth, name) in iterations.chain(phases) {
        let (start, end) = (clip(start), clip(end));
        if start < end {
            ends.push((start, Turn::Begins(depth), name.clone()));
            ends.push((end, Turn::Ends(Reverse(depth)), name));
        }
    }
    ends.sort_by_key(|&(time, turn, _)| (time, turn));
    snapshot.annotations = ends
        .into_iter()
        .map(|(time, turn, name)| Annotation {
            stage: match turn {
                Turn::Begins(_) => AnnotationStage::Start,
                Turn::Ends(_) => AnnotationStage::End,
            },
            name: snapshot.strings.intern(&name),
            device: DEVICE,
            time: Some(time),
        })
        .collect();
}

/// The nesting of annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Depth {
    Iteration,
    Phase,
}

/// The order of annotations at the same time: ends come first, from the inside out; then begins,
/// from the outside in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Ends(Reverse<Depth>),
    Begins(Depth),
}
