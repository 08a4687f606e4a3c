//! A page with the tables and figures of an evaluation: one file that loads nothing and runs no script.

use super::evaluation_figures;
use crate::svg::canvas::Escaped;
use std::fmt::Write;
use xmem_eval::evaluation::Evaluation;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2328;--dim:#59636e;--paper:#fff;--edge:#d8dee4}\
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9198a1;--paper:#0d1117;--edge:#2a313c}}\
body{font:14px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;color:var(--ink);\
background:var(--paper);max-width:1000px;margin:32px auto;padding:0 20px}\
h1{font-size:22px;margin:0}h2{font-size:16px;margin:32px 0 8px}p{color:var(--dim);margin:4px 0 16px}\
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
th,td{padding:4px 12px 4px 0;text-align:right;border-bottom:1px solid var(--edge);white-space:nowrap}\
th{color:var(--dim);font-weight:500}th:first-child,td:first-child{text-align:left}svg{max-width:100%;height:auto}";

/// A table of the page: its heading, the headings of its columns, and rows.
#[derive(Clone, Debug, Default)]
pub struct PageTable {
    /// The heading.
    pub heading: String,
    /// Headings of columns.
    pub columns: Vec<String>,
    /// Rows of cells.
    pub rows: Vec<Vec<String>>,
}

/// The page, with tables that were made elsewhere.
#[must_use]
pub fn evaluation_page(evaluation: &Evaluation, subject: &str, tables: &[PageTable]) -> String {
    let title = match evaluation.title.as_str() {
        "" => "Evaluation",
        title => title,
    };
    let mut body = format!("<h1>{}</h1>\n<p>{}</p>\n", Escaped(title), Escaped(subject));
    let (first, others) = match tables.split_first() {
        Some((first, others)) => (Some(first), others),
        None => (None, tables),
    };
    first.into_iter().for_each(|first| table(&mut body, first));
    for (name, svg) in evaluation_figures(evaluation) {
        // Pictures in one document need names of their own.
        let labels = format!("aria-labelledby=\"{name}-title {name}-desc\"");
        let svg = svg
            .replacen("aria-labelledby=\"title desc\"", &labels, 1)
            .replacen("<title id=\"title\">", &format!("<title id=\"{name}-title\">"), 1)
            .replacen("<desc id=\"desc\">", &format!("<desc id=\"{name}-desc\">"), 1);
        let _ = writeln!(body, "{svg}");
    }
    others.iter().for_each(|other| table(&mut body, other));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n{body}</body>\n</html>\n",
        Escaped(title)
    )
}

fn table(body: &mut String, table: &PageTable) {
    if !table.heading.is_empty() {
        let _ = writeln!(body, "<h2>{}</h2>", Escaped(&table.heading));
    }
    let _ = writeln!(body, "<div class=\"scroll\"><table>");
    let _ = write!(body, "<tr>");
    for column in &table.columns {
        let _ = write!(body, "<th>{}</th>", Escaped(column));
    }
    let _ = writeln!(body, "</tr>");
    for row in &table.rows {
        let _ = write!(body, "<tr>");
        for cell in row {
            let _ = write!(body, "<td>{}</td>", Escaped(cell));
        }
        let _ = writeln!(body, "</tr>");
    }
    let _ = writeln!(body, "</table></div>");
}
