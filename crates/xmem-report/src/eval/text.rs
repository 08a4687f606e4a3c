//! The evaluation as text.

use super::tables::{self, EvalTable};
use crate::style::{Ink, Style};
use crate::table::{Align, Table};
use xmem::types::printable;
use xmem_eval::evaluation::Evaluation;

/// The most failures that are named.
const FAILURES: usize = 10;

/// The complete answer: a table of estimators, one of second rounds, one for each factor, and the effects of factors.
#[must_use]
pub fn evaluation(evaluation: &Evaluation, style: &Style) -> String {
    let title = match evaluation.title.as_str() {
        "" => "Evaluation",
        title => title,
    };
    let mut page = format!("{}\n", style.paint(Ink::Heading, &printable(title)));
    page += &format!("  {}\n\n", tables::subject(evaluation));
    for (at, table) in tables::tables(evaluation).iter().enumerate() {
        if at > 0 {
            page += "\n";
        }
        if !table.heading.is_empty() {
            page += &format!("{}\n", style.paint(Ink::Heading, &table.heading));
        }
        page += &rendered(table, style);
    }
    page + &failures(evaluation, style)
}

/// A line for each estimator.
#[must_use]
pub fn evaluation_brief(evaluation: &Evaluation) -> String {
    let mut page = String::new();
    for (place, name) in evaluation.estimators.iter().enumerate() {
        let summary = tables::of_group(evaluation, place, tables::ALL);
        let median = summary.errors.map_or_else(
            || "no errors".to_owned(),
            |errors| format!("median error {}", tables::percent(errors.median)),
        );
        page += &format!("{}: {} runs, {median}\n", printable(name), summary.runs);
    }
    page
}

fn rendered(table: &EvalTable, style: &Style) -> String {
    let aligned = |(at, column): (usize, &String)| {
        let is_text = at == 0 || ["jobs", "factor"].contains(&column.as_str());
        (column.clone(), if is_text { Align::Left } else { Align::Right })
    };
    let mut columns = Table::named(table.columns.iter().enumerate().map(aligned).collect());
    for row in &table.rows {
        columns.row(row.clone());
    }
    columns.render(style)
}

fn failures(evaluation: &Evaluation, style: &Style) -> String {
    let all = &evaluation.failures;
    if all.is_empty() {
        return String::new();
    }
    let mut page = format!("\n{}\n", style.paint(Ink::Heading, "Not evaluated"));
    for failure in all.iter().take(FAILURES) {
        let estimator =
            failure.estimator.as_deref().map(|name| format!(", {name}")).unwrap_or_default();
        let line = format!("  {}{estimator}: {}", failure.configuration, failure.reason);
        page += &format!("{}\n", printable(&line));
    }
    if all.len() > FAILURES {
        page += &format!("  … and {} more\n", all.len() - FAILURES);
    }
    page
}
