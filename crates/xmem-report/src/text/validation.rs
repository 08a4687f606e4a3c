//! An estimate held against a recording.

use super::answer::counted;
use super::findings::findings;
use super::labelled::{Lines, labelled};
use super::look::{Ink, Look, keep_end};
use super::places::{moment, moment_in_short, op_path};
use super::site::{site, source};
use super::tabular::{Align, Tabular};
use crate::Comparison;
use xmem::{Bytes, Place, Severity};
use xmem_eval::{DifferenceGroup, DifferenceKind, Judged, Moment, Validation};

/// Verdict, peaks, how far requests are the same, phases, roles, and where the differences come
/// from, of which the first `top` kinds are listed.
#[must_use]
pub fn validation(inputs: &Comparison<'_>, judged: &Validation, top: usize, look: &Look) -> String {
    let mut parts = vec![
        headline(inputs, judged, look),
        peaks(judged, look),
        labelled(requests(judged), look),
        phases(judged, look),
    ];
    if let Some(at) = &judged.moment {
        parts.push(peak(at, look));
        parts.push(roles(judged, look));
    }
    parts.push(differences(judged, top, look));
    let notes = findings(&judged.findings, Severity::Warning, look);
    if !notes.is_empty() {
        parts.push(format!("{}\n{notes}", look.paint(Ink::Heading, "To know")));
    }
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// One line: the verdict.
#[must_use]
pub fn validation_brief(inputs: &Comparison<'_>, judged: &Validation, look: &Look) -> String {
    format!("{}  {}\n", verdict(inputs, judged, look), inputs.trace)
}

fn verdict(inputs: &Comparison<'_>, judged: &Validation, look: &Look) -> String {
    let reserved = judged.peaks.reserved;
    let (word, ink) = match (reserved.error(), judged.is_within(inputs.tolerance)) {
        (0, _) => ("EXACT", Ink::Good),
        (_, true) => ("CLOSE", Ink::Good),
        (_, false) => ("OFF", Ink::Bad),
    };
    let word = look.paint(ink, word);
    format!("{word}  peak reserved {}", error_words(reserved))
}

/// `1.03 % too high`.
fn error_words(judged: Judged) -> String {
    let percent = 100.0 * judged.relative().abs();
    match judged.error() {
        0 => "as recorded".to_owned(),
        error if error > 0 => format!("{percent:.2} % too high"),
        _ => format!("{percent:.2} % too low"),
    }
}

fn headline(inputs: &Comparison<'_>, judged: &Validation, look: &Look) -> String {
    let against = format!("{} on {}", inputs.trace, inputs.device);
    let recorded = format!(
        "against {}, device {}, PyTorch {}",
        inputs.snapshot, judged.rerun.device.0, judged.rerun.setup.config.release
    );
    let room = look.columns().saturating_sub(2);
    format!(
        "{}\n  {}\n  {}\n",
        verdict(inputs, judged, look),
        look.paint(Ink::Faint, &keep_end(&against, room)),
        look.paint(Ink::Faint, &keep_end(&recorded, room)),
    )
}

fn peaks(judged: &Validation, look: &Look) -> String {
    let mut table = judged_table("");
    for (name, peak) in [
        ("peak allocated", judged.peaks.allocated),
        ("peak asked for", judged.peaks.requested),
        ("peak reserved", judged.peaks.reserved),
    ] {
        table.row(judged_row(name.to_owned(), peak));
    }
    table.render(look)
}

fn judged_table(first: &'static str) -> Tabular {
    Tabular::new(&[
        (first, Align::Left),
        ("estimate", Align::Right),
        ("recorded", Align::Right),
        ("error", Align::Right),
        ("", Align::Right),
    ])
}

fn judged_row(name: String, judged: Judged) -> [String; 5] {
    let percent = match judged.error() {
        0 => String::new(),
        _ if judged.recorded == Bytes::ZERO => String::new(),
        _ => format!("{:+.2} %", 100.0 * judged.relative()),
    };
    [
        name,
        judged.estimated.to_string(),
        judged.recorded.to_string(),
        signed(judged.error()),
        percent,
    ]
}

/// `+1.50 MiB`, `0`.
fn signed(bytes: i64) -> String {
    let size = Bytes(bytes.unsigned_abs());
    match bytes {
        0 => "0".to_owned(),
        _ if bytes > 0 => format!("+{size}"),
        _ => format!("-{size}"),
    }
}

fn requests(judged: &Validation) -> Lines {
    let counts = &judged.requests;
    let parts = [
        (counts.moved, "a little earlier or later"),
        (counts.resized, "of another size"),
        (counts.extra, "only estimated"),
        (counts.missing, "only recorded"),
        (counts.outside, "estimated outside of the recording"),
    ];
    let mut told = format!(
        "{} estimated, {} recorded: {} the same",
        counts.estimated, counts.recorded, counts.same
    );
    for (count, words) in parts.iter().filter(|(count, _)| *count > 0) {
        told += &format!(", {count} {words}");
    }
    vec![("blocks", told)]
}

/// Only the phases in which the two differ; if there are none, that is said.
fn phases(judged: &Validation, look: &Look) -> String {
    let all = judged.phases.len();
    if all == 0 {
        return String::new();
    }
    let different: Vec<_> =
        judged.phases.iter().filter(|phase| phase.allocated.error() != 0).collect();
    let heading = look.paint(Ink::Heading, "Highest allocated memory by phase");
    if different.is_empty() {
        return format!("{heading}: the same in all {all}\n");
    }
    let mut table = judged_table("phase");
    for phase in &different {
        let name = moment_of(phase.iteration, phase.phase);
        table.row(judged_row(name, phase.allocated));
    }
    let rest = match all - different.len() {
        0 => String::new(),
        n => format!("  the same in {}\n", counted(n, "other phase")),
    };
    format!("{heading}\n{}{rest}", table.render(look))
}

fn moment_of(iteration: Option<xmem::IterationId>, phase: xmem::Phase) -> String {
    moment_in_short(&Place { iteration, phase, op_path: Vec::new(), module: None, line: None })
}

fn peak(at: &Moment, look: &Look) -> String {
    let heading = look.paint(Ink::Heading, "Where the recording allocates most");
    let mut lines: Lines = vec![
        ("event", at.entry.0.to_string()),
        ("in the estimate", format!("{}, {}", moment(&at.place), op_path(&at.place))),
        ("module", at.place.module.clone().unwrap_or_default()),
        ("line", at.place.line.clone().unwrap_or_default()),
    ];
    if !at.site.is_empty() {
        lines.push(("recorded at", site(&at.site)));
        lines.extend(source(&at.site).map(|source| ("", format!("from {source}"))));
    }
    lines.push((
        "allocated there",
        format!("{}, estimated {}", at.allocated.recorded, at.allocated.estimated),
    ));
    if let Some(elsewhere) = &at.estimated_peak {
        let module = elsewhere.module.as_deref().unwrap_or_default();
        let told = format!("{}, {} {module}", moment(elsewhere), op_path(elsewhere));
        lines.push(("estimate peaks at", told));
    }
    format!("{heading}\n{}", labelled(lines, look))
}

fn roles(judged: &Validation, look: &Look) -> String {
    let mut table = judged_table("role");
    for row in &judged.roles {
        let name = row.role.map_or_else(
            || "(not in the estimate)".to_owned(),
            |role| role.name().replace('_', " "),
        );
        table.row(judged_row(name, row.bytes));
    }
    format!("{}\n{}", look.paint(Ink::Heading, "What is allocated there"), table.render(look))
}

fn differences(judged: &Validation, top: usize, look: &Look) -> String {
    let heading = look.paint(Ink::Heading, "Where the differences come from");
    if judged.differences.is_empty() {
        return format!("{heading}: there are none\n");
    }
    let mut page = format!("{heading}\n");
    for group in judged.differences.iter().take(top) {
        page += &difference(group, look);
    }
    let more = judged.differences.len().saturating_sub(top);
    if more > 0 {
        page += &format!("  and {more} more kinds: see --top and --format json\n");
    }
    page
}

fn difference(group: &DifferenceGroup, look: &Look) -> String {
    let effect = match group.at_peak {
        0 => "not there".to_owned(),
        bytes => signed(bytes),
    };
    let count = match (group.count, group.count_at_peak) {
        (count, 0) => format!("{count} ×"),
        (count, there) if count == there => format!("{count} ×"),
        (count, there) => format!("{there} of {count} ×"),
    };
    let by = [group.role.map(|role| role.name().replace('_', " ")), group.rule.map(str::to_owned)];
    let by = by.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let by = if by.is_empty() { by } else { format!(" [{by}]") };
    let mut page = format!("  {effect:>12}  {count} {}{by}\n", what(group));
    let room = look.columns().saturating_sub(16);
    let mut line = |label: &str, text: &str| {
        let text = keep_end(text, room.saturating_sub(label.chars().count()));
        page += &format!("{:16}{}\n", "", look.paint(Ink::Faint, &format!("{label}{text}")));
    };
    for (word, place) in [("", &group.place), ("after ", &group.after)] {
        let Some(place) = place else { continue };
        line(&format!("{word}{}: ", moment_in_short(place)), &op_path(place));
        let source = [place.module.as_deref(), place.line.as_deref()];
        let source = source.into_iter().flatten().collect::<Vec<_>>().join(", ");
        if !source.is_empty() {
            line("", &source);
        }
    }
    if !group.site.is_empty() {
        let from = source(&group.site).map_or_else(String::new, |from| format!(" from {from}"));
        line("recorded: ", &format!("{}{from}", site(&group.site)));
    }
    page
}

/// `88.38 MiB instead of 262.12 MiB`.
fn what(group: &DifferenceGroup) -> String {
    let estimated = group.estimated.unwrap_or_default();
    let recorded = group.recorded.unwrap_or_default();
    match group.kind {
        DifferenceKind::Extra => format!("only in the estimate: {estimated}"),
        DifferenceKind::Missing => format!("only in the recording: {recorded}"),
        DifferenceKind::Resized => format!("{estimated} instead of {recorded}"),
        DifferenceKind::Held => format!("{estimated} held, where the recording does not have it"),
        DifferenceKind::NotHeld => format!("{recorded} not held, where the recording has it"),
        DifferenceKind::Rounding => format!("{estimated} in a block of another size"),
    }
}
