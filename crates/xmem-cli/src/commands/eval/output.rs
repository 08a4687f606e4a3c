//! Writes an evaluation.

use super::args::{EvalArgs, EvalFormat};
use super::error::EvalFailure;
use crate::error::CliError;
use crate::{output, style};
use std::path::Path;
use xmem_eval::evaluation::Evaluation;
use xmem_report::text::EvalTable;
use xmem_report::{csv, json, text};
use xmem_view::PageTable;

/// Writes the answer.
pub(super) fn write(
    args: &EvalArgs,
    evaluation: &Evaluation,
    is_quiet: bool,
) -> Result<(), CliError> {
    if let Some(folder) = &args.figures {
        figures(folder, evaluation)?;
    }
    let file = args.output.as_deref();
    let page = match args.format {
        EvalFormat::Parquet => {
            let table = xmem_view::evaluation_parquet(evaluation);
            return output::bytes(file, |out| Ok(out.write_all(&table)?));
        }
        EvalFormat::Text if is_quiet => text::evaluation_brief(evaluation),
        EvalFormat::Text => text::evaluation(evaluation, &style::of_output(file)),
        EvalFormat::Json => json::pretty(&json::EvalDocument::new(evaluation)),
        EvalFormat::Csv => csv::evaluation(evaluation),
        EvalFormat::Markdown => text::evaluation_in_markdown(evaluation),
        EvalFormat::Html => html(evaluation),
    };
    output::write(page.as_bytes(), file)
}

fn html(evaluation: &Evaluation) -> String {
    let tables: Vec<PageTable> = text::evaluation_tables(evaluation)
        .into_iter()
        .map(|EvalTable { heading, columns, rows }| PageTable { heading, columns, rows })
        .collect();
    xmem_view::evaluation_page(evaluation, &text::evaluation_subject(evaluation), &tables)
}

fn figures(folder: &Path, evaluation: &Evaluation) -> Result<(), CliError> {
    std::fs::create_dir_all(folder)
        .map_err(|source| EvalFailure::Figures { path: folder.to_owned(), source })?;
    for (name, figure) in xmem_view::evaluation_figures(evaluation) {
        output::write(figure.as_bytes(), Some(&folder.join(format!("{name}.svg"))))?;
    }
    Ok(())
}
