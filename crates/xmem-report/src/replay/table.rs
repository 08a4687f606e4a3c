//! A table of several answers, about several traces or one trace on several devices.

use crate::replay::text::confidence;
use crate::setup;
use crate::style::Style;
use crate::table::{Align, Table};
use crate::words::word;
use std::collections::{BTreeMap, BTreeSet};
use xmem::predict::AllocatorSetup;
use xmem::{Answer, Verdict};

/// The row of one answer. It is small, as a table may have thousands of rows.
#[derive(Clone, Debug)]
pub struct Row {
    trace: String,
    device: String,
    memory: String,
    /// `None` without an answer.
    setup: Option<AllocatorSetup>,
    verdict: &'static str,
    confidence: &'static str,
    warnings: String,
    allocated: String,
    reserved: String,
    on_device: String,
    headroom: String,
    min_capacity: String,
    peak: String,
    /// `None` without convolutions.
    convolutions: Option<String>,
}

impl Row {
    /// An answer about `trace`.
    #[must_use]
    pub fn answer(trace: &str, answer: &Answer) -> Self {
        let peak = &answer.memory.peak;
        if answer.verdict == Verdict::Withheld {
            // Figures of what is left of the trace would mislead.
            return Self {
                device: answer.device().name.clone(),
                memory: answer.device().memory.to_string(),
                setup: Some(answer.setup.clone()),
                verdict: word(answer.verdict, answer.memory.range.confidence),
                warnings: warnings(answer),
                peak: crate::words::withheld(answer.withheld.first().map(|why| why.code()))
                    .to_owned(),
                ..Self::failure(trace)
            };
        }
        Self {
            trace: trace.to_owned(),
            device: answer.device().name.clone(),
            memory: answer.device().memory.to_string(),
            setup: Some(answer.setup.clone()),
            verdict: word(answer.verdict, answer.memory.range.confidence),
            confidence: confidence(answer),
            warnings: warnings(answer),
            allocated: peak.allocated.to_string(),
            reserved: peak.reserved.to_string(),
            on_device: peak.device.to_string(),
            headroom: match (answer.headroom(), answer.shortfall()) {
                (_, Some(short)) => format!("-{short}"),
                (Some(free), None) => free.to_string(),
                (None, None) => String::new(),
            },
            min_capacity: answer.memory.min_capacity.map(|c| c.to_string()).unwrap_or_default(),
            peak: peak.at.as_ref().map(crate::places::short_moment).unwrap_or_default(),
            convolutions: crate::replay::text::convolution_source(answer),
        }
    }

    /// A trace without an answer.
    #[must_use]
    pub fn failure(trace: &str) -> Self {
        Self {
            trace: trace.to_owned(),
            device: String::new(),
            memory: String::new(),
            setup: None,
            verdict: "UNREADABLE",
            confidence: "",
            warnings: String::new(),
            allocated: String::new(),
            reserved: String::new(),
            on_device: String::new(),
            headroom: String::new(),
            min_capacity: String::new(),
            peak: String::new(),
            convolutions: None,
        }
    }
}

fn warnings(answer: &Answer) -> String {
    match answer.warnings() {
        0 => String::new(),
        count => count.to_string(),
    }
}

/// A table of answers. A trace, device or allocator that all rows share has no column. Columns for
/// devices or allocators replace those that differ less.
#[must_use]
pub fn table(rows: &[Row], style: &Style) -> String {
    let varies = Varies::among(rows);
    let common = common(rows);
    let mut table = Table::new(&[
        ("trace", Align::Rest),
        ("device", Align::Left),
        ("memory", Align::Right),
        ("allocator", Align::Left),
        ("verdict", Align::Left),
        ("confidence", Align::Left),
        ("warnings", Align::Right),
        ("allocated", Align::Right),
        ("reserved", Align::Right),
        ("nvidia-smi", Align::Right),
        ("headroom", Align::Right),
        ("min capacity", Align::Right),
        ("peak", Align::Left),
    ]);
    let traces: Vec<&str> = rows.iter().map(|row| row.trace.as_str()).collect();
    let shown = |varies: bool, cell: &str| if varies { cell.to_owned() } else { String::new() };
    for (row, name) in rows.iter().zip(short_names(&traces)) {
        let allocator = row.setup.as_ref().map(|setup| own(setup, &common)).unwrap_or_default();
        table.row([
            shown(varies.traces, &name),
            shown(varies.devices, &row.device),
            shown(varies.devices, &row.memory),
            shown(varies.allocators, &allocator),
            row.verdict.to_owned(),
            row.confidence.to_owned(),
            row.warnings.clone(),
            shown(!varies.devices && !varies.allocators, &row.allocated),
            row.reserved.clone(),
            row.on_device.clone(),
            row.headroom.clone(),
            row.min_capacity.clone(),
            shown(!varies.devices && !varies.allocators, &row.peak),
        ]);
    }
    let heading = match rows.first() {
        Some(row) if !varies.traces => format!("  {}\n\n", row.trace),
        _ => String::new(),
    };
    let below = match varies.allocators {
        true if common.is_empty() => String::new(),
        true => format!("\n{}", setup::allocator_line(&common, style)),
        false => allocators(rows, style),
    };
    heading + &table.render(style) + &below + &convolutions(rows)
}

/// The sources of the convolutions' workspaces, each with the number of its answers if there are several.
fn convolutions(rows: &[Row]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for source in rows.iter().filter_map(|row| row.convolutions.as_deref()) {
        *counts.entry(source).or_default() += 1;
    }
    let several = counts.len() > 1;
    let lines = counts.iter().map(|(source, count)| match (several, count) {
        (false, _) => format!("  {source}\n"),
        (true, 1) => format!("  {source} (1 answer)\n"),
        (true, _) => format!("  {source} ({count} answers)\n"),
    });
    if counts.is_empty() { String::new() } else { format!("\n{}", lines.collect::<String>()) }
}

/// The properties in which the rows differ.
struct Varies {
    traces: bool,
    devices: bool,
    /// The same trace was replayed on the same device more than once.
    allocators: bool,
}

impl Varies {
    fn among(rows: &[Row]) -> Self {
        let answers = || rows.iter().filter(|row| row.setup.is_some());
        let devices: BTreeSet<_> = answers().map(|row| (&row.device, &row.memory)).collect();
        let pairs: BTreeSet<_> = answers().map(|row| (&row.trace, &row.device)).collect();
        Self {
            traces: rows.windows(2).any(|pair| pair[0].trace != pair[1].trace),
            devices: devices.len() > 1,
            allocators: pairs.len() < answers().count(),
        }
    }
}

/// The description of the allocator that all answers share.
fn common(rows: &[Row]) -> Vec<String> {
    let mut setups = rows.iter().filter_map(|row| row.setup.as_ref());
    let mut common = setups.next().map(|setup| setup::parts(setup, "trace")).unwrap_or_default();
    for setup in setups {
        let parts = setup::parts(setup, "trace");
        common.retain(|part| parts.contains(part));
    }
    common
}

/// The description of one allocator beyond the common part.
fn own(setup: &AllocatorSetup, common: &[String]) -> String {
    let mut parts = setup::parts(setup, "trace");
    parts.retain(|part| !common.contains(part));
    if parts.is_empty() { "no options".to_owned() } else { parts.join(", ") }
}

/// The descriptions of allocators other than the default one.
fn allocators(rows: &[Row], style: &Style) -> String {
    let setups = rows.iter().filter_map(|row| row.setup.as_ref());
    let texts: BTreeSet<String> = setups
        .filter(|setup| !setup::is_default(setup))
        .map(|setup| setup::lines(setup, "trace", style))
        .collect();
    if texts.is_empty() { String::new() } else { format!("\n{}", Vec::from_iter(texts).concat()) }
}

/// Paths without the folders and the file name that all of them share.
pub(crate) fn short_names(paths: &[&str]) -> Vec<String> {
    let parts: Vec<Vec<&str>> = paths.iter().map(|p| p.split('/').collect()).collect();
    let shortest = parts.iter().map(Vec::len).min().unwrap_or(0);
    let shared = |at: &dyn Fn(&[&str]) -> Option<String>| {
        parts.windows(2).all(|pair| at(&pair[0]) == at(&pair[1]))
    };
    let part = |p: &[&str], i: usize| p.get(i).map(|&t| t.to_owned());
    let head = (0..shortest.saturating_sub(1)).take_while(|&i| shared(&|p| part(p, i))).count();
    let tail = (1..shortest - head.min(shortest))
        .take_while(|&i| shared(&|p| part(p, p.len() - i)))
        .count();
    parts.iter().map(|p| p[head..p.len() - tail].join("/")).collect()
}

#[cfg(test)]
mod tests {
    use super::short_names;

    #[test]
    fn what_all_paths_share_is_left_out() {
        let short = |paths: &[&str]| short_names(paths).join(" ");
        assert_eq!(short(&["t/a/trace.json", "t/b/trace.json"]), "a b");
        assert_eq!(short(&["t/a.json", "t/b.json"]), "a.json b.json");
        assert_eq!(short(&["a.json", "t/a.json"]), "a.json t/a.json");
        assert_eq!(short(&["t/a.json", "t/a.json"]), "a.json a.json");
        assert_eq!(short(&["-", "x"]), "- x");
        assert_eq!(short(&["t/a/x/trace.json", "t/b/trace.json"]), "a/x b");
        assert_eq!(short(&[]), "");
    }
}
