//! The clearing of gradients, if nothing marks it: the span in which most of them are freed.

use crate::block::{Block, Role};
use crate::spans::{Phase, PhaseSpan};
use rustc_hash::FxHashMap;
use xmem_types::{Diagnostics, Nanos, Severity};

/// The phases with a `ZeroGrad` span where at least half of a pass's gradients are freed together,
/// outside of backward and of the optimizer's step; as they are if a span is marked already.
pub(crate) fn find(
    phases: Vec<PhaseSpan>,
    blocks: &[Block],
    notes: &mut Diagnostics,
) -> Vec<PhaseSpan> {
    if phases.iter().any(|p| p.phase == Phase::ZeroGrad) {
        return phases;
    }
    let mut kept: FxHashMap<usize, u32> = FxHashMap::default();
    let mut freed: FxHashMap<usize, (usize, u32, Nanos, Nanos)> = FxHashMap::default();
    let span_at = |time: Nanos| phases.partition_point(|p| p.start <= time).checked_sub(1);
    for block in blocks.iter().filter(|b| b.role == Role::Gradient) {
        let Some(made) = span_at(block.alloc_time) else { continue };
        if !block.lasts_beyond(phases[made].end) {
            continue;
        }
        *kept.entry(made).or_default() += 1;
        let Some(time) = block.free_time else { continue };
        let Some(at) = span_at(time) else { continue };
        if matches!(phases[at].phase, Phase::Data | Phase::Forward) {
            let entry = freed.entry(at).or_insert((made, 0, time, time));
            entry.1 += 1;
            entry.2 = entry.2.min(time);
            entry.3 = entry.3.max(time);
        }
    }
    let mut places: Vec<_> = freed
        .into_iter()
        .filter(|(_, (made, count, ..))| kept.get(made).is_some_and(|n| count * 2 >= *n))
        .map(|(at, (_, _, from, to))| (at, from, to + Nanos(1)))
        .collect();
    places.sort_unstable();
    notes.report_many("zero-grad-by-frees", Severity::Note, None, places.len() as u64, || {
        "zero_grad is not annotated: gradients are assumed to be cleared where they are freed"
            .into()
    });
    if places.is_empty() {
        return phases;
    }
    let mut cut = Vec::with_capacity(phases.len() + 2 * places.len());
    let mut places = places.into_iter().peekable();
    for (row, &whole) in phases.iter().enumerate() {
        let Some((_, from, to)) = places.next_if(|(at, ..)| *at == row) else {
            cut.push(whole);
            continue;
        };
        let to = to.min(whole.end);
        let pieces = [
            PhaseSpan { end: from, ..whole },
            PhaseSpan { start: from, end: to, phase: Phase::ZeroGrad, mark: None, ..whole },
            PhaseSpan { start: to, ..whole },
        ];
        cut.extend(pieces.into_iter().filter(|p| p.end > p.start));
    }
    cut
}
