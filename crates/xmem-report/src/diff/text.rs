//! For people.

use super::{DifferencePage, words};
use crate::style::{Ink, Style, keep_end, wrap};
use crate::table::{Align, Table};
use xmem_studies::difference::{ByteChange, GroupFigures};

/// The complete page.
#[must_use]
pub fn text(page: &DifferencePage<'_>, style: &Style) -> String {
    let mut parts = vec![
        headline(page, style),
        peaks(page, style),
        settings(page, style),
        groups(page, style),
        divergence(page, style),
    ];
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// One line, for `--quiet`.
#[must_use]
pub fn brief(page: &DifferencePage<'_>) -> String {
    let (a, b) = page.names;
    format!(
        "{}  {} {}\n",
        words::headline(page),
        xmem::types::printable(a),
        xmem::types::printable(b)
    )
}

fn headline(page: &DifferencePage<'_>, style: &Style) -> String {
    let ink = match (page.is_beyond_limit(), page.limit) {
        (true, _) => Ink::Bad,
        (false, Some(_)) => Ink::Good,
        (false, None) => Ink::Heading,
    };
    let mut text = format!("{}\n", style.paint(ink, &words::headline(page)));
    let width = style.columns().saturating_sub(5);
    for (side, name) in [("A", page.names.0), ("B", page.names.1)] {
        text += &format!("  {side}  {}\n", style.paint(Ink::Faint, &keep_end(name, width)));
    }
    for note in words::notes(page) {
        for line in wrap(&note, style.columns().saturating_sub(2)) {
            text += &format!("  {}\n", style.paint(Ink::Warning, &line));
        }
    }
    text
}

fn peaks(page: &DifferencePage<'_>, style: &Style) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("peak", Left),
        ("A", Right),
        ("B", Right),
        ("difference", Right),
        ("", Right),
    ]);
    for (name, change) in words::peaks(page) {
        table.row([
            name.to_owned(),
            change.a.to_string(),
            change.b.to_string(),
            change.to_string(),
            words::percent(change),
        ]);
    }
    let (a, b) = (words::peak_at(page.runs.0), words::peak_at(page.runs.1));
    let mut text = table.render(style);
    if !a.is_empty() || !b.is_empty() {
        let at = if a == b {
            format!("allocated peaks in {a}")
        } else {
            format!("allocated peaks in {a} (A), {b} (B)")
        };
        text += &format!("  {}\n", style.paint(Ink::Faint, &at));
    }
    text
}

fn settings(page: &DifferencePage<'_>, style: &Style) -> String {
    use Align::{Left, Rest};
    if page.difference.settings.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[("setting", Left), ("A", Rest), ("B", Rest)]);
    let value = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
    for other in &page.difference.settings {
        table.row([other.setting.title().to_owned(), value(&other.a), value(&other.b)]);
    }
    format!("{}\n{}", style.paint(Ink::Heading, "Settings that differ"), table.render(style))
}

fn groups(page: &DifferencePage<'_>, style: &Style) -> String {
    use Align::{Rest, Right};
    let difference = page.difference;
    let key = difference.key;
    let mut table = Table::new(&[
        ("difference", Right),
        ("A", Right),
        ("blocks", Right),
        ("B", Right),
        ("blocks", Right),
        (key.name(), Rest),
        ("in A", Rest),
    ]);
    for row in difference.rows.iter().take(page.top) {
        table.row(cells((row.a, row.b), words::name(row, key), words::old_name(row, key)));
    }
    if let Some((rest, name)) = words::rest(page) {
        table.row(cells(rest, name, String::new()));
    }
    table.row(cells(difference.total, "all".to_owned(), String::new()));
    let heading = words::table_heading(key);
    format!("{}\n{}", style.paint(Ink::Heading, &heading), table.render(style))
}

fn cells((a, b): (GroupFigures, GroupFigures), name: String, old: String) -> [String; 7] {
    let blocks = |group: GroupFigures| group.blocks.map(|n| n.to_string()).unwrap_or_default();
    let change = ByteChange { a: a.bytes, b: b.bytes };
    [change.to_string(), a.bytes.to_string(), blocks(a), b.bytes.to_string(), blocks(b), name, old]
}

fn divergence(page: &DifferencePage<'_>, style: &Style) -> String {
    let Some((heading, sides)) = words::divergence(page) else { return String::new() };
    let mut text = format!("{}\n", style.paint(Ink::Heading, &heading));
    for (side, sentence) in sides {
        for (row, line) in wrap(&sentence, style.columns().saturating_sub(5)).iter().enumerate() {
            let side = if row == 0 { side } else { " " };
            text += &format!("  {side}  {line}\n");
        }
    }
    text
}
