//! The table of the cases.

use super::case::{Pair, Row, Set};
use crate::table::{Format, Table, mib};

const HEAD: [&str; 11] = [
    "case",
    "PyTorch",
    "device",
    "allocated",
    "recorded",
    "error",
    "reserved",
    "recorded",
    "error",
    "allocated curve",
    "reserved curve",
];

/// Columns of words, before those of figures.
const WORDS: usize = 3;

/// Prints the cases of a set; sizes are in MiB.
pub(super) fn print(rows: &[&Row], set: Set, format: Format) {
    let mut table =
        Table { head: HEAD, words: WORDS, rows: rows.iter().map(|row| cells(row)).collect() };
    match format {
        Format::Markdown => {
            for cells in &mut table.rows {
                cells[0] = format!("`{}`", cells[0]);
            }
            println!("Set `{}`:\n\n{}", set.name(), table.markdown());
        }
        Format::Text => println!("set {}, sizes in MiB\n{}", set.name(), table.aligned()),
    }
}

fn cells(row: &Row) -> [String; 11] {
    let [a, b, c] = judged(row.allocated);
    let [d, e, f] = judged(row.reserved);
    let [g, h] = row.curves.map_or([String::new(), String::new()], |curves| {
        curves.map(|distance| format!("{distance:.2} %"))
    });
    let torch = row.case.torch.split('+').next().unwrap_or_default().to_owned();
    let device = row.case.device.trim_start_matches("NVIDIA ").trim_start_matches("GeForce ");
    [row.case.name.clone(), torch, device.to_owned(), a, b, c, d, e, f, g, h]
}

fn judged(pair: Pair) -> [String; 3] {
    [
        format!("{:.1}", mib(pair.estimated)),
        format!("{:.1}", mib(pair.recorded)),
        format!("{:+.2} %", pair.error()),
    ]
}
