//! For the comment of a pull request.

use super::{DifferencePage, words};
use crate::markdown::cell;
use std::fmt::Write;
use xmem_studies::difference::{ByteChange, GroupFigures};

/// The complete page in Markdown of GitHub.
#[must_use]
pub fn markdown(page: &DifferencePage<'_>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(page, &mut text);
    text
}

fn write_page(page: &DifferencePage<'_>, out: &mut String) -> std::fmt::Result {
    let difference = page.difference;
    let sign = if page.is_beyond_limit() { "❌ " } else { "" };
    writeln!(out, "### {sign}GPU memory: {}\n", cell(&words::headline(page)))?;
    writeln!(out, "A: {}  \nB: {}\n", cell(page.names.0), cell(page.names.1))?;
    for note in words::notes(page) {
        writeln!(out, "- {}\n", cell(&note))?;
    }
    writeln!(out, "| peak | A | B | difference | |\n|---|--:|--:|--:|--:|")?;
    for (name, change) in words::peaks(page) {
        let share = words::percent(change);
        writeln!(out, "| {name} | {} | {} | **{change}** | {share} |", change.a, change.b)?;
    }
    if !difference.settings.is_empty() {
        writeln!(out, "\n| setting that differs | A | B |\n|---|---|---|")?;
        for other in &difference.settings {
            let value = |text: &str| if text.is_empty() { "none".to_owned() } else { cell(text) };
            let title = other.setting.title().replace('_', "\\_");
            writeln!(out, "| {title} | {} | {} |", value(&other.a), value(&other.b))?;
        }
    }
    let key = difference.key;
    writeln!(out, "\n<details><summary>{}</summary>\n", words::table_heading(key))?;
    writeln!(out, "| {} | A | blocks | B | blocks | difference |", key.name())?;
    writeln!(out, "|---|--:|--:|--:|--:|--:|")?;
    for row in difference.rows.iter().take(page.top) {
        let old = words::old_name(row, key);
        let was = if old.is_empty() { old } else { format!(" (in A: {})", cell(&old)) };
        write_row(out, &(cell(&words::name(row, key)) + &was), (row.a, row.b))?;
    }
    if let Some((rest, name)) = words::rest(page) {
        write_row(out, &name, rest)?;
    }
    write_row(out, "**all**", difference.total)?;
    writeln!(out, "\n</details>")?;
    if let Some((heading, sides)) = words::divergence(page) {
        writeln!(out, "\n{heading}")?;
        for (number, (side, sentence)) in sides.into_iter().enumerate() {
            let space = if number == 0 { "\n" } else { "" };
            writeln!(out, "{space}- {side} {}", cell(&sentence))?;
        }
    }
    Ok(())
}

fn write_row(
    out: &mut String,
    name: &str,
    (a, b): (GroupFigures, GroupFigures),
) -> std::fmt::Result {
    let blocks = |group: GroupFigures| group.blocks.map(|n| n.to_string()).unwrap_or_default();
    let change = ByteChange { a: a.bytes, b: b.bytes };
    let (blocks_a, blocks_b) = (blocks(a), blocks(b));
    writeln!(out, "| {name} | {} | {blocks_a} | {} | {blocks_b} | {change} |", a.bytes, b.bytes)
}
