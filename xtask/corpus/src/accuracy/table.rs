//! The table of the cases.

use super::Format;
use super::case::{Pair, Row, Set};

const MIB: f64 = 1024.0 * 1024.0;
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

/// Prints the cases of a set; sizes are in MiB.
pub(super) fn print(rows: &[&Row], set: Set, format: Format) {
    let mut lines: Vec<[String; 11]> = rows.iter().map(|row| cells(row)).collect();
    match format {
        Format::Markdown => {
            println!("Set `{}`:\n", set.name());
            println!("| {} |", HEAD.join(" | "));
            println!("|---|---|---|{}", "--:|".repeat(HEAD.len() - 3));
            for line in &lines {
                println!("| `{}` | {} |", line[0], line[1..].join(" | "));
            }
        }
        Format::Text => {
            println!("set {}, sizes in MiB", set.name());
            lines.insert(0, HEAD.map(str::to_owned));
            let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
            let widths: Vec<usize> = (0..HEAD.len()).filter_map(width).collect();
            for line in &lines {
                let cells: Vec<String> = line.iter().zip(&widths).enumerate().map(pad).collect();
                println!("{}", cells.join("  "));
            }
        }
    }
    println!();
}

fn pad((column, (cell, &width)): (usize, (&String, &usize))) -> String {
    if column < 3 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
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
        format!("{:.1}", pair.estimated / MIB),
        format!("{:.1}", pair.recorded / MIB),
        format!("{:+.2} %", pair.error()),
    ]
}
