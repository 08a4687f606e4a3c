//! A comparison of an estimate with a recording.

use crate::Comparison;
use crate::fields::{Fields, fields};
use crate::findings::findings;
use crate::places::{moment, op_path, short_moment};
use crate::site::{site, source};
use crate::style::{Ink, Style, keep_end};
use crate::table::{Align, Table};
use crate::words::counted;
use xmem::Bytes;
use xmem::predict::Place;
use xmem::types::{Severity, printable};
use xmem_eval::{DifferenceGroup, DifferenceKind, Judged, Moment, Validation};

/// Verdict, peaks, matching requests, phases, roles, and the causes of differences, of which the
/// first `top` kinds are listed.
#[must_use]
pub fn validation(
    inputs: &Comparison<'_>,
    judged: &Validation,
    top: usize,
    style: &Style,
) -> String {
    let mut parts = vec![
        headline(inputs, judged, style),
        peaks(judged, style),
        fields(requests(judged), style),
        phases(judged, style),
    ];
    if let Some(at) = &judged.moment {
        parts.push(peak(at, style));
        parts.push(roles(judged, style));
    }
    parts.push(differences(judged, top, style));
    let notes = findings(&judged.findings, Severity::Warning, style);
    if !notes.is_empty() {
        parts.push(format!("{}\n{notes}", style.paint(Ink::Heading, "Notes")));
    }
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// One line: the verdict.
#[must_use]
pub fn validation_brief(inputs: &Comparison<'_>, judged: &Validation, style: &Style) -> String {
    format!("{}  {}\n", verdict(inputs, judged, style), printable(inputs.trace))
}

fn verdict(inputs: &Comparison<'_>, judged: &Validation, style: &Style) -> String {
    let reserved = judged.peaks.reserved;
    let (word, ink) = match (reserved.error(), judged.is_within(inputs.tolerance)) {
        _ if !judged.is_judged() => ("NO VERDICT", Ink::Warning),
        (0, _) => ("EXACT", Ink::Good),
        (_, true) => ("CLOSE", Ink::Good),
        (_, false) => ("OFF", Ink::Bad),
    };
    let word = style.paint(ink, word);
    format!("{word}  peak reserved {}", error_words(reserved))
}

/// `1.03 % too high`.
fn error_words(judged: Judged) -> String {
    let percent = 100.0 * judged.relative().abs();
    match judged.error() {
        0 => "equal to the recording".to_owned(),
        error if error > 0 => format!("{percent:.2} % too high"),
        _ => format!("{percent:.2} % too low"),
    }
}

fn headline(inputs: &Comparison<'_>, judged: &Validation, style: &Style) -> String {
    let against = format!("{} on {}", inputs.trace, inputs.device);
    let recorded = format!(
        "compared with {}, device {}, PyTorch {}",
        inputs.snapshot, judged.rerun.device.0, judged.rerun.setup.config.release
    );
    let width = style.columns().saturating_sub(2);
    format!(
        "{}\n  {}\n  {}\n",
        verdict(inputs, judged, style),
        style.paint(Ink::Faint, &keep_end(&against, width)),
        style.paint(Ink::Faint, &keep_end(&recorded, width)),
    )
}

fn peaks(judged: &Validation, style: &Style) -> String {
    let mut table = judged_table("");
    for (name, peak) in [
        ("peak allocated", judged.peaks.allocated),
        ("peak requested", judged.peaks.requested),
        ("peak reserved", judged.peaks.reserved),
    ] {
        table.row(judged_row(name.to_owned(), peak));
    }
    table.render(style)
}

fn judged_table(first: &'static str) -> Table {
    Table::new(&[
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
pub(crate) fn signed(bytes: i64) -> String {
    let size = Bytes(bytes.unsigned_abs());
    match bytes {
        0 => "0".to_owned(),
        _ if bytes > 0 => format!("+{size}"),
        _ => format!("-{size}"),
    }
}

fn requests(judged: &Validation) -> Fields {
    let counts = &judged.requests;
    let parts = [
        (counts.moved, "moved in time"),
        (counts.resized, "of another size"),
        (counts.extra, "only estimated"),
        (counts.missing, "only recorded"),
        (counts.outside, "estimated outside the recorded range"),
    ];
    let mut text = format!(
        "{} estimated, {} recorded: {} equal",
        counts.estimated, counts.recorded, counts.same
    );
    for (count, words) in parts.iter().filter(|(count, _)| *count > 0) {
        text += &format!(", {count} {words}");
    }
    vec![("blocks", text)]
}

/// The phases in which the two differ, or a line if all are equal.
fn phases(judged: &Validation, style: &Style) -> String {
    let all = judged.phases.len();
    if all == 0 {
        return String::new();
    }
    let different: Vec<_> =
        judged.phases.iter().filter(|phase| phase.allocated.error() != 0).collect();
    let heading = style.paint(Ink::Heading, "Peak allocated memory by phase");
    if different.is_empty() {
        return format!("{heading}: equal in all {all}\n");
    }
    let mut table = judged_table("phase");
    for phase in &different {
        let name = moment_of(phase.iteration, phase.phase);
        table.row(judged_row(name, phase.allocated));
    }
    let rest = match all - different.len() {
        0 => String::new(),
        n => format!("  equal in {}\n", counted(n, "other phase")),
    };
    format!("{heading}\n{}{rest}", table.render(style))
}

fn moment_of(iteration: Option<xmem::types::IterationId>, phase: xmem::analyzer::Phase) -> String {
    short_moment(&Place {
        iteration,
        phase,
        op_path: Vec::new(),
        part: None,
        module: None,
        line: None,
    })
}

fn peak(at: &Moment, style: &Style) -> String {
    let heading = style.paint(Ink::Heading, "Peak of the recording");
    let mut lines: Fields = vec![
        ("event", at.entry.0.to_string()),
        ("estimated place", format!("{}, {}", moment(&at.place), op_path(&at.place))),
        ("module", at.place.module.clone().unwrap_or_default()),
        ("line", at.place.line.clone().unwrap_or_default()),
    ];
    if !at.site.is_empty() {
        lines.push(("recorded place", site(&at.site)));
        lines.extend(source(&at.site).map(|source| ("", format!("from {source}"))));
    }
    lines.push((
        "allocated",
        format!("{} recorded, {} estimated", at.allocated.recorded, at.allocated.estimated),
    ));
    if let Some(elsewhere) = &at.estimated_peak {
        let module = elsewhere.module.as_deref().unwrap_or_default();
        let text = format!("{}, {} {module}", moment(elsewhere), op_path(elsewhere));
        lines.push(("estimated peak", text));
    }
    format!("{heading}\n{}", fields(lines, style))
}

fn roles(judged: &Validation, style: &Style) -> String {
    let mut table = judged_table("role");
    for row in &judged.roles {
        let name = row.role.map_or_else(
            || "(not in the estimate)".to_owned(),
            |role| role.name().replace('_', " "),
        );
        table.row(judged_row(name, row.bytes));
    }
    format!(
        "{}\n{}",
        style.paint(Ink::Heading, "Memory at the peak of the recording by role"),
        table.render(style)
    )
}

fn differences(judged: &Validation, top: usize, style: &Style) -> String {
    let heading = style.paint(Ink::Heading, "Causes of the differences");
    if judged.differences.is_empty() {
        return format!("{heading}: no differences\n");
    }
    let mut page = format!("{heading}\n");
    for group in judged.differences.iter().take(top) {
        page += &difference(group, style);
    }
    let more = judged.differences.len().saturating_sub(top);
    if more > 0 {
        page += &format!("  {more} more kinds: see --top and --format json\n");
    }
    page
}

fn difference(group: &DifferenceGroup, style: &Style) -> String {
    let effect = match group.at_peak {
        0 => "not at peak".to_owned(),
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
    let width = style.columns().saturating_sub(16);
    let mut line = |label: &str, text: &str| {
        let text = keep_end(text, width.saturating_sub(label.chars().count()));
        page += &format!("{:16}{}\n", "", style.paint(Ink::Faint, &format!("{label}{text}")));
    };
    for (word, place) in [("", &group.place), ("after ", &group.after)] {
        let Some(place) = place else { continue };
        line(&format!("{word}{}: ", short_moment(place)), &op_path(place));
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
        DifferenceKind::Held => format!("{estimated} alive in the estimate only"),
        DifferenceKind::NotHeld => format!("{recorded} alive in the recording only"),
        DifferenceKind::Rounding => format!("{estimated} in a block of another size"),
    }
}
