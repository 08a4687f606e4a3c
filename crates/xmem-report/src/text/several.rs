//! Several traces: a row each.

use super::look::Look;
use super::tabular::{Align, Tabular};
use xmem::{Answer, Verdict};

/// A table of answers; traces without one have a row that says so.
#[must_use]
pub fn table<'a>(
    entries: impl IntoIterator<Item = (&'a str, Option<&'a Answer>)>,
    look: &Look,
) -> String {
    let mut table = Tabular::new(&[
        ("verdict", Align::Left),
        ("allocated", Align::Right),
        ("reserved", Align::Right),
        ("nvidia-smi", Align::Right),
        ("headroom", Align::Right),
        ("min capacity", Align::Right),
        ("peak in", Align::Left),
        ("trace", Align::Rest),
    ]);
    for (trace, answer) in entries {
        match answer {
            Some(answer) => table.row(row(trace, answer)),
            None => {
                let mut cells = vec![String::new(); 8];
                "UNREADABLE".clone_into(&mut cells[0]);
                trace.clone_into(&mut cells[7]);
                table.row(cells);
            }
        }
    }
    table.render(look)
}

fn row(trace: &str, answer: &Answer) -> [String; 8] {
    let peak = &answer.peak;
    let verdict = match answer.verdict {
        Verdict::Fits => "FITS",
        Verdict::DoesNotFit => "DOES NOT FIT",
        Verdict::Withheld => "NO VERDICT",
    };
    let headroom = match (answer.headroom(), answer.shortfall()) {
        (_, Some(short)) => format!("-{short}"),
        (Some(free), None) => free.to_string(),
        (None, None) => String::new(),
    };
    [
        verdict.to_owned(),
        peak.allocated.to_string(),
        peak.reserved.to_string(),
        peak.device.to_string(),
        headroom,
        answer.min_capacity.map(|c| c.to_string()).unwrap_or_default(),
        peak.at.as_ref().map(super::places::moment).unwrap_or_default(),
        trace.to_owned(),
    ]
}
