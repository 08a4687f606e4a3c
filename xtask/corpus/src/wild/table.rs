//! The table of the runs.

use super::judge::{Prediction, Row};
use crate::accuracy::Format;

const MIB: f64 = 1024.0 * 1024.0;
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
    match format {
        Format::Markdown => {
            println!("| {} |", HEAD.join(" | "));
            println!("|---|---|{}", "--:|".repeat(HEAD.len() - WORDS));
            for row in rows {
                let mut cells = cells(row);
                cells[0] = format!("`{}`", row.name);
                if let Some(link) = &row.link {
                    cells[1] = format!("[{}]({link})", row.script);
                }
                println!("| {} |", cells.join(" | "));
            }
        }
        Format::Text => {
            let mut lines = vec![HEAD.map(str::to_owned)];
            lines.extend(rows.iter().map(cells));
            let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
            let widths: Vec<usize> = (0..HEAD.len()).filter_map(width).collect();
            for line in &lines {
                let padded: Vec<String> = line
                    .iter()
                    .zip(&widths)
                    .enumerate()
                    .map(|(column, (cell, &width))| {
                        if column < WORDS {
                            format!("{cell:width$}")
                        } else {
                            format!("{cell:>width$}")
                        }
                    })
                    .collect();
                println!("{}", padded.join("  "));
            }
        }
    }
    println!();
}

fn cells(row: &Row) -> [String; 12] {
    let mib = |bytes: u64| format!("{:.1}", bytes as f64 / MIB);
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
