//! The evaluation as tables for a document.

use super::tables::{self, EvalTable};
use crate::markdown::cell;
use xmem_eval::evaluation::Evaluation;

/// The tables in Markdown.
#[must_use]
pub fn evaluation_in_markdown(evaluation: &Evaluation) -> String {
    let mut page = format!("{}.\n", tables::subject(evaluation));
    for EvalTable { heading, columns, rows } in tables::tables(evaluation) {
        if !heading.is_empty() {
            page += &format!("\n{}:\n", cell(&heading));
        }
        page += "\n";
        page += &line(&columns);
        let rules = (0..columns.len()).map(|at| if at == 0 { "---" } else { "--:" });
        page += &format!("| {} |\n", rules.collect::<Vec<_>>().join(" | "));
        page.extend(rows.iter().map(|row| line(row)));
    }
    page
}

fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
    format!("| {} |\n", cells.join(" | "))
}
