//! The table of the runs.

use super::judge::{Prediction, Row};
use crate::table::{self, Format, Table};

const HEAD: [&str; 12] = [
    "run",
    "script",
    "allocated",
    "CPU",
    "error",
    "reserved",
    "CPU",
    "error",
    "range",
    "holds",
    "confidence",
    "virtual GPU",
];
/// Columns of words, before those of figures.
const WORDS: usize = 2;

/// Prints the runs; sizes are in MiB.
pub(super) fn print(rows: &[Row], format: Format) {
    let mut table = Table { head: HEAD, words: WORDS, rows: rows.iter().map(cells).collect() };
    match format {
        Format::Markdown => {
            for (cells, row) in table.rows.iter_mut().zip(rows) {
                cells[0] = format!("`{}`", row.name);
                if let Some(link) = &row.link {
                    cells[1] = format!("[{}]({link})", row.script);
                }
            }
            println!("{}", table.markdown());
        }
        Format::Text => println!("{}", table.aligned()),
    }
}

fn cells(row: &Row) -> [String; 12] {
    let mib = |bytes: u64| format!("{:.1}", table::mib(bytes as f64));
    let sign = if row.is_lower_bound { "≥ " } else { "" };
    let truth = |bytes: u64| format!("{sign}{}", mib(bytes));
    let per_cent = |error: f64| format!("{error:+.2} %");
    let of = |say: &dyn Fn(&Prediction) -> String| row.cpu.as_ref().map(say).unwrap_or_default();
    [
        row.name.clone(),
        row.script.clone(),
        truth(row.truth.allocated),
        of(&|it| mib(it.peaks.allocated)),
        of(&|it| per_cent(it.errors(row.truth)[0])),
        truth(row.truth.reserved),
        of(&|it| mib(it.peaks.reserved)),
        of(&|it| per_cent(it.errors(row.truth)[1])),
        of(&|it| match it.range {
            range if range.low == range.high => "–".to_owned(),
            range => format!("{} to {}", mib(range.low), mib(range.high)),
        }),
        of(&|it| if it.range.holds(row.truth.reserved) { "yes" } else { "no" }.to_owned()),
        of(&|it| if it.withheld { "withheld".to_owned() } else { it.confidence.clone() }),
        row.virtual_gpu.as_ref().map_or_else(String::new, |it| {
            let [allocated, reserved] = it.errors(row.truth);
            format!("{allocated:+.2} %, {reserved:+.2} %")
        }),
    ]
}
