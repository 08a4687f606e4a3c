//! The answer about lengths that vary.

use crate::findings::findings;
use crate::setup;
use crate::style::{Ink, Style, keep_end, wrap};
use crate::words::{counted, verdict};
use xmem::predict::{Confidence, LengthRun, Quantiles};
use xmem::types::{Severity, printable};
use xmem::{Bytes, LengthsAnswer, Need, Verdict};

/// The complete answer: verdict, distribution of the peak, its growth, the fit and notes.
///
/// If the verdict is withheld, the figures would mislead, and only the reasons are given.
#[must_use]
pub fn lengths(trace: &str, answer: &LengthsAnswer, style: &Style) -> String {
    let notes = notes(answer, style);
    let parts = match answer.verdict {
        Verdict::Withheld => vec![headline(trace, answer, style), notes],
        _ => vec![
            headline(trace, answer, style),
            figures(answer, style),
            growth(answer, style),
            fit(answer, style),
            notes,
        ],
    };
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// One line: the verdict, and the range of the peak as nvidia-smi shows it, on this device and where there is room.
#[must_use]
pub fn lengths_brief(trace: &str, answer: &LengthsAnswer, style: &Style) -> String {
    let device = answer.device();
    let run = &answer.runs[0];
    let span = |over: Quantiles| match (over.min + device.context, over.max + device.context) {
        (low, high) if low == high => low.to_string(),
        (low, high) => format!("{low} to {high}"),
    };
    let all = run.orders.len();
    let room = format!("{} where there is room", span(run.reserved));
    let memory = Need::room(device.memory, &device.name);
    let need = match run.on_device {
        Some(there) if there == run.reserved => format!("takes {} of {memory}", span(there)),
        Some(there) if run.fitting == all => {
            format!("takes {} of {memory}, {room}", span(there))
        }
        _ if all == 1 => format!("takes {room}, of {memory}"),
        _ => format!("fits in {} of {all} orders: takes {room}, of {memory}", run.fitting),
    };
    format!(
        "{}  {need}  {}\n",
        verdict(answer.verdict, Confidence::Likely, style),
        printable(trace),
    )
}

fn headline(trace: &str, answer: &LengthsAnswer, style: &Style) -> String {
    let device = answer.device();
    let name = style.paint(Ink::Heading, &device.name);
    let on = match device.name.as_str() {
        "custom" => device.title.clone(),
        _ => format!("{name} ({}, {})", device.title, device.memory),
    };
    let run = &answer.runs[0];
    let orders = match (answer.verdict, run.orders.len()) {
        (Verdict::Withheld, _) | (_, 1) => String::new(),
        (_, all) => format!("  fits in {} of {all} orders", run.fitting),
    };
    let asked = &answer.settings;
    let about = match &asked.exact {
        Some(order) => format!(", {} in the order given", counted(order.len(), "iteration")),
        None => {
            format!(", {} of {} at random", counted(asked.iterations, "iteration"), asked.varying)
        }
    };
    let width = style.columns().saturating_sub(2 + about.chars().count());
    let mut page = format!(
        "{}{orders}  on {on}\n  {}{about}\n",
        verdict(answer.verdict, Confidence::Likely, style),
        style.paint(Ink::Faint, &keep_end(trace, width)),
    );
    if !setup::is_default(&run.setup) {
        page += &setup::lines(&run.setup, "trace", style);
    }
    page
}

/// A label, and the figure of a run.
type FigureRow = (&'static str, fn(&LengthRun) -> Bytes);

/// The column of a run.
fn heading(run: &LengthRun) -> &'static str {
    if run.setup.has_expandable_segments() { "expandable_segments" } else { "default segments" }
}

fn figures(answer: &LengthsAnswer, style: &Style) -> String {
    let context = answer.device().context;
    let is_one = answer.runs[0].orders.len() == 1;
    let mut rows: Vec<FigureRow> = vec![("all of the greatest length", |run| run.all_longest)];
    if is_one {
        rows.push(("in the order given", |run| run.reserved.max));
    } else {
        let random: [FigureRow; 5] = [
            ("random order: lowest", |run| run.reserved.min),
            ("  median", |run| run.reserved.median),
            ("  90th percentile", |run| run.reserved.p90),
            ("  95th percentile", |run| run.reserved.p95),
            ("  highest", |run| run.reserved.max),
        ];
        rows.extend(random);
    }
    let mut page = row(style.paint(Ink::Heading, "Peak reserved").as_ref(), "Peak reserved", {
        answer.runs.iter().map(|run| heading(run).to_owned())
    });
    for (label, value) in rows {
        let label = format!("  {label}");
        page += &row(&label, &label, answer.runs.iter().map(|run| value(run).to_string()));
    }
    let label = "  highest in nvidia-smi";
    let shown = |run: &LengthRun| (run.reserved.max + context).to_string();
    page += &row(label, label, answer.runs.iter().map(shown));
    let here = |run: &LengthRun| match run.on_device {
        _ if run.fitting < run.orders.len() => "out of memory".to_owned(),
        there => there.map_or_else(String::new, |there| (there.max + context).to_string()),
    };
    if answer.runs.iter().any(|run| run.on_device != Some(run.reserved)) {
        let label = "  highest on this device";
        page += &row(label, label, answer.runs.iter().map(here));
    }
    let label = "  highest peak allocated";
    page += &row(label, label, answer.runs.iter().map(|run| run.allocated.max.to_string()));
    let label = "  iterations to the last new peak";
    let settled = |run: &LengthRun| match (run.settled.median, run.settled.max) {
        (_, last) if is_one => last.to_string(),
        (median, last) => format!("{median} (at most {last})"),
    };
    page + &row(label, label, answer.runs.iter().map(settled))
}

/// A label and the values of the runs; `plain` is the label without color.
fn row(label: &str, plain: &str, values: impl Iterator<Item = String>) -> String {
    const LABEL: usize = 34;
    const VALUE: usize = 25;
    let space = " ".repeat(LABEL.saturating_sub(plain.chars().count()));
    let values: String = values.map(|value| format!("{value:>VALUE$}")).collect();
    format!("{label}{space}{values}\n")
}

fn growth(answer: &LengthsAnswer, style: &Style) -> String {
    let runs = &answer.runs;
    if runs[0].growth.len() < 2 {
        return String::new();
    }
    let is_one = runs[0].orders.len() == 1;
    let title = if is_one { "Peak so far" } else { "Peak so far: median (highest)" };
    let mut page = row(style.paint(Ink::Heading, title).as_ref(), title, {
        runs.iter().map(|run| heading(run).to_owned())
    });
    for (at, point) in runs[0].growth.iter().enumerate() {
        let label = format!("  after {}", counted(point.iterations, "iteration"));
        let value = |run: &LengthRun| {
            let point = run.growth[at];
            if is_one { point.max.to_string() } else { format!("{} ({})", point.median, point.max) }
        };
        page += &row(&label, &label, runs.iter().map(value));
    }
    page
}

fn fit(answer: &LengthsAnswer, style: &Style) -> String {
    let fit = &answer.fit;
    let words = answer.settings.varying.dimension.words();
    let lengths: Vec<String> = fit.lengths.iter().map(u64::to_string).collect();
    let parts = [
        (fit.constant, "are the same at all lengths"),
        (fit.affine, "grow in proportion"),
        (fit.square, "grow with the square"),
        (fit.interpolated, "lie between recorded sizes"),
        (fit.unmatched, "were seen at one length only"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, text)| format!("{count} {text}")).collect();
    let text = format!(
        "fitted to recorded iterations of {words} {}: of the {} that an iteration allocates, {}",
        lengths.join(", "),
        counted(fit.blocks, "block"),
        parts.join(", "),
    );
    let lines = wrap(&text, style.columns().saturating_sub(2));
    let text: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("{}\n{text}", style.paint(Ink::Heading, "Sizes"))
}

fn notes(answer: &LengthsAnswer, style: &Style) -> String {
    let text = findings(&answer.findings, Severity::Note, style);
    if text.is_empty() {
        return text;
    }
    format!("{}\n{text}", style.paint(Ink::Heading, "Notes"))
}
