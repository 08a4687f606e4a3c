//! A page for a browser: one file, no script, no other files.

use super::{DifferencePage, words};
use std::fmt::Write;
use xmem::types::printable;
use xmem_studies::difference::{ByteChange, GroupFigures};

/// What a browser may load: the page's own style. Bars have their widths as style.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = "\
:root{color-scheme:light dark;--text:#1f2328;--faint:#59636e;--page:#fff;--line:#d1d9e0;--more:#cf222e;--less:#1a7f37}
@media(prefers-color-scheme:dark){:root{--text:#e6edf3;--faint:#9198a1;--page:#0d1117;--line:#3d444d;--more:#ff7b72;--less:#3fb950}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--page);max-width:70rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
p.faint,td.faint{color:var(--faint)}
div.wide{overflow-x:auto}
table{border-collapse:collapse}
th,td{padding:.2rem .7rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
td.more{color:var(--more)}td.less{color:var(--less)}
td.name{overflow-wrap:anywhere;min-width:14rem}
tr.all td{font-weight:600}
td.bar{min-width:8rem}
td.bar span{display:block;height:.7rem;margin-top:.4rem}
td.bar span.more{background:var(--more)}td.bar span.less{background:var(--less)}
";

/// The complete page.
#[must_use]
pub fn html(page: &DifferencePage<'_>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(page, &mut text);
    text
}

fn write_page(page: &DifferencePage<'_>, out: &mut String) -> std::fmt::Result {
    let headline = escaped(&words::headline(page));
    writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width\">")?;
    writeln!(out, "<title>xmem diff: {headline}</title>\n<style>\n{STYLE}</style>")?;
    writeln!(out, "<h1>{headline}</h1>")?;
    let (a, b) = page.names;
    writeln!(out, "<p class=\"faint\">A: {}<br>B: {}</p>", escaped(a), escaped(b))?;
    for note in words::notes(page) {
        writeln!(out, "<p>{}</p>", escaped(&note))?;
    }
    write_peaks(page, out)?;
    write_settings(page, out)?;
    write_groups(page, out)?;
    if let Some((heading, sides)) = words::divergence(page) {
        writeln!(out, "<h2>{}</h2>", escaped(&heading))?;
        for (side, sentence) in sides {
            writeln!(out, "<p><b>{side}</b> {}</p>", escaped(&sentence))?;
        }
    }
    writeln!(out, "</html>")
}

fn write_peaks(page: &DifferencePage<'_>, out: &mut String) -> std::fmt::Result {
    writeln!(out, "<h2>Peaks</h2>\n<div class=\"wide\"><table>")?;
    writeln!(
        out,
        "<tr><th>peak<th class=\"n\">A<th class=\"n\">B<th class=\"n\">difference<th class=\"n\"></tr>"
    )?;
    for (name, change) in words::peaks(page) {
        writeln!(
            out,
            "<tr><td>{name}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n {}\">{change}<td class=\"n\">{}</tr>",
            change.a,
            change.b,
            direction(change),
            words::percent(change)
        )?;
    }
    writeln!(out, "</table></div>")
}

fn write_settings(page: &DifferencePage<'_>, out: &mut String) -> std::fmt::Result {
    if page.difference.settings.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>Settings that differ</h2>\n<div class=\"wide\"><table>")?;
    writeln!(out, "<tr><th>setting<th>A<th>B</tr>")?;
    for other in &page.difference.settings {
        let value = |text: &str| if text.is_empty() { "none".to_owned() } else { escaped(text) };
        let title = other.setting.title();
        writeln!(out, "<tr><td>{title}<td>{}<td>{}</tr>", value(&other.a), value(&other.b))?;
    }
    writeln!(out, "</table></div>")
}

fn write_groups(page: &DifferencePage<'_>, out: &mut String) -> std::fmt::Result {
    let difference = page.difference;
    let key = difference.key;
    let largest = difference.rows.first().map_or(0, |row| row.bytes().size().get());
    writeln!(out, "<h2>{}</h2>\n<div class=\"wide\"><table>", words::table_heading(key))?;
    writeln!(
        out,
        "<tr><th class=\"n\">difference<th><th class=\"n\">A<th class=\"n\">blocks<th class=\"n\">B\
         <th class=\"n\">blocks<th>{}<th>in A</tr>",
        key.name()
    )?;
    for row in difference.rows.iter().take(page.top) {
        let (name, old) = (words::name(row, key), words::old_name(row, key));
        write_row(out, "", (row.a, row.b), largest, (&name, &old))?;
    }
    if let Some((rest, name)) = words::rest(page) {
        write_row(out, "", rest, 0, (&name, ""))?;
    }
    write_row(out, " class=\"all\"", difference.total, 0, ("all", ""))?;
    writeln!(out, "</table></div>")
}

/// A row, with a bar of the difference as a share of `largest` unless that is zero.
fn write_row(
    out: &mut String,
    class: &str,
    (a, b): (GroupFigures, GroupFigures),
    largest: u64,
    (name, old): (&str, &str),
) -> std::fmt::Result {
    let change = ByteChange { a: a.bytes, b: b.bytes };
    let direction = direction(change);
    let blocks = |group: GroupFigures| group.blocks.map(|n| n.to_string()).unwrap_or_default();
    let bar = match largest {
        0 => String::new(),
        largest => {
            let share = 100.0 * change.size().get() as f64 / largest as f64;
            format!("<span class=\"{direction}\" style=\"width:{share:.1}%\"></span>")
        }
    };
    writeln!(
        out,
        "<tr{class}><td class=\"n {direction}\">{change}<td class=\"bar\">{bar}<td class=\"n\">{}\
         <td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"name\">{}\
         <td class=\"name faint\">{}</tr>",
        a.bytes,
        blocks(a),
        b.bytes,
        blocks(b),
        escaped(name),
        escaped(old)
    )
}

fn direction(change: ByteChange) -> &'static str {
    match change.a.cmp(&change.b) {
        std::cmp::Ordering::Less => "more",
        std::cmp::Ordering::Equal => "same",
        std::cmp::Ordering::Greater => "less",
    }
}

/// Text without the characters that mean something in HTML.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for c in printable(text).chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            other => safe.push(other),
        }
    }
    safe
}
