//! The words that all forms share.

use super::DifferencePage;
use xmem::types::IterationId;
use xmem::{Bytes, Verdict};
use xmem_studies::difference::{
    ByteChange, ComparisonRun, DifferenceKey, DifferenceRow, GroupFigures, NameMatch, PeakFigure,
    RequestAction, RunRequest,
};

/// The figures and what they are called.
pub(super) fn peaks(page: &DifferencePage<'_>) -> [(&'static str, ByteChange); 3] {
    let difference = page.difference;
    [
        ("allocated", difference.allocated),
        ("reserved", difference.reserved),
        ("device", difference.device),
    ]
}

/// `peak reserved grew by 12.00 MiB (+1.20 %)`.
pub(super) fn headline(page: &DifferencePage<'_>) -> String {
    if page.difference.is_empty() {
        return "no difference".to_owned();
    }
    let figure = page.limit.map_or(PeakFigure::Reserved, |(_, figure)| figure);
    let change = page.difference.peak(figure);
    let share = percent(change);
    let share = if share.is_empty() { share } else { format!(" ({share})") };
    let name = match figure {
        PeakFigure::Device => "the peak of the device".to_owned(),
        figure => format!("peak {}", figure.name()),
    };
    let moved = match change.a.cmp(&change.b) {
        std::cmp::Ordering::Less => format!("{name} grew by {}{share}", change.size()),
        std::cmp::Ordering::Equal => format!("{name} is the same: {}", change.a),
        std::cmp::Ordering::Greater => format!("{name} shrank by {}{share}", change.size()),
    };
    match page.limit {
        Some((limit, _)) if page.is_beyond_limit() => format!("{moved}, more than {limit}"),
        _ => moved,
    }
}

/// `+1.20 %`; empty if nothing differs, or if there was nothing before.
pub(super) fn percent(change: ByteChange) -> String {
    if change.a == change.b {
        return String::new();
    }
    change.percent().map(|percent| format!("{percent:+.2} %")).unwrap_or_default()
}

/// The name of a group, or a word for what has none.
pub(super) fn name(row: &DifferenceRow, key: DifferenceKey) -> String {
    shown(row.name(), key)
}

/// The name of a group in the first run if it was another, and whether it is a renamed one.
pub(super) fn old_name(row: &DifferenceRow, key: DifferenceKey) -> String {
    let old = row.old_name().map(|old| shown(old, key)).unwrap_or_default();
    match row.matched {
        NameMatch::Renamed => format!("{old} (renamed)"),
        _ => old,
    }
}

fn shown(name: &str, key: DifferenceKey) -> String {
    match (name, key) {
        ("", DifferenceKey::Op) => "(no operator)".to_owned(),
        ("", key) => format!("(no {})", key.name()),
        (name, _) => name.to_owned(),
    }
}

/// The heading of the table.
pub(super) fn table_heading(key: DifferenceKey) -> String {
    let by = match key {
        DifferenceKey::Role => "role",
        DifferenceKey::Module => "module",
        DifferenceKey::Line => "line",
        DifferenceKey::Op => "operator",
    };
    format!("Allocated at the peak, by {by}")
}

/// The row of what is not shown, with its name; none if everything is shown.
pub(super) fn rest(page: &DifferencePage<'_>) -> Option<((GroupFigures, GroupFigures), String)> {
    let difference = page.difference;
    let has_unchanged = difference.unchanged.bytes > Bytes::ZERO;
    let hidden = difference.rows.len().saturating_sub(page.top);
    let others = match hidden {
        1 => "1 other".to_owned(),
        more => format!("{more} others"),
    };
    let name = match (hidden, has_unchanged) {
        (0, false) => return None,
        (0, true) => "unchanged".to_owned(),
        (_, false) => others,
        (_, true) => format!("{others}, and what is unchanged"),
    };
    Some((difference.rest(page.top), name))
}

/// What is to be said about a run beside its figures.
pub(super) fn notes(page: &DifferencePage<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    for (side, run) in [("A", page.runs.0), ("B", page.runs.1)] {
        match run.verdict {
            Verdict::Fits => {}
            Verdict::DoesNotFit => notes.push(format!("{side} does not fit on its device")),
            Verdict::DamagedFits | Verdict::DamagedDoesNotFit => notes.push(format!(
                "the recording of {side} is damaged: the difference may come from that"
            )),
            Verdict::Withheld => notes.push(format!(
                "no verdict about {side}: too much is missing from its recording, or it is damaged; \
                 `xmem replay` says what"
            )),
        }
    }
    notes
}

/// Where a run has its peak: `forward of iteration 2`.
pub(super) fn peak_at(run: &ComparisonRun) -> String {
    run.peak_at.as_ref().map(|(iteration, phase)| place(phase, *iteration)).unwrap_or_default()
}

fn place(phase: &str, iteration: Option<IterationId>) -> String {
    match iteration {
        Some(iteration) => format!("{phase} of iteration {}", iteration.0),
        None => phase.to_owned(),
    }
}

/// The heading of the first request that is not the same, and the requests of both; or a line that there is none.
pub(super) fn divergence(
    page: &DifferencePage<'_>,
) -> Option<(String, Vec<(&'static str, String)>)> {
    let (of_a, of_b) = page.difference.requests?;
    let Some(first) = &page.difference.divergence else {
        return Some((format!("Both runs make the same {of_a} requests"), Vec::new()));
    };
    let heading = format!(
        "The runs part at request {} ({of_a} requests in A, {of_b} in B)",
        first.request + 1
    );
    let side = |request: &Option<RunRequest>| {
        request.as_ref().map_or_else(|| "ends before".to_owned(), sentence)
    };
    Some((heading, vec![("A", side(&first.a)), ("B", side(&first.b))]))
}

/// `allocates 12.00 MiB at aten::mm, GPT_0 > Block_0, train.py(12): forward (forward of iteration 1)`.
fn sentence(request: &RunRequest) -> String {
    let does = match request.kind {
        Some(RequestAction::Allocation) => format!("allocates {}", request.bytes),
        Some(RequestAction::Free) => format!("frees {}", request.bytes),
        None => "requests no bytes".to_owned(),
    };
    let allocated_by = match (request.kind, request.op.is_empty()) {
        (_, true) => String::new(),
        (Some(RequestAction::Free), false) => format!(" of {}", request.op),
        _ => format!(" at {}", request.op),
    };
    let places = [&request.module, &request.line];
    let places = places.into_iter().filter(|text| !text.is_empty());
    let places: String = places.map(|text| format!(", {text}")).collect();
    let when = place(request.phase.name(), request.iteration);
    format!("{does}{allocated_by}{places} ({when}; then {} allocated)", request.allocated)
}
