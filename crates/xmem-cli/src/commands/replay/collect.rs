//! Several answers as one text or document, in the order of the traces.

use super::batch::{Batch, Question};
use super::ranks::Jobs;
use super::summary::Summary;
use super::trace_error::TraceError;
use crate::error::CliError;
use crate::global::Verbosity;
use crate::output;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use xmem::Answer;
use xmem_report::json::{self, Rules};
use xmem_report::text::{self, Row, Style};
use xmem_studies::ranks::RankAnswer;

/// The result of each question; `T` is what is kept of an answer.
type Entries<T> = Vec<(Question, Result<T, TraceError>)>;

/// Writes a table. Only the row of each answer is kept in memory.
pub(super) fn as_text(
    batch: &Batch<'_>,
    style: &Style,
    (file, verbosity): (Option<&Path>, Verbosity),
) -> Result<Summary, CliError> {
    let (entries, summary) = gather(batch, |trace, answer| {
        (Row::answer(trace, &answer), RankAnswer::new(trace, &answer))
    });
    let row = |(about, result): &(Question, Result<(Row, RankAnswer), TraceError>)| match result {
        Ok((row, _)) => row.clone(),
        Err(_) => Row::failure(batch.name(*about)),
    };
    let ranks = entries
        .iter()
        .filter_map(|(about, result)| result.as_ref().ok().map(|(_, rank)| (*about, rank.clone())));
    let jobs = Jobs::find(ranks, verbosity);
    let table = text::table(&entries.iter().map(row).collect::<Vec<_>>(), style);
    let page = jobs.to_text(batch, style) + &table;
    output::write(page.as_bytes(), file)?;
    Ok(print_errors(batch, entries, summary))
}

/// Writes an array of documents.
pub(super) fn as_json(
    batch: &Batch<'_>,
    rules: Rules,
    (file, verbosity): (Option<&Path>, Verbosity),
) -> Result<Summary, CliError> {
    let (entries, summary) = gather(batch, |_, answer| answer);
    let ranks = entries.iter().filter_map(|(about, result)| {
        let answer = result.as_ref().ok()?;
        Some((*about, RankAnswer::new(batch.name(*about), answer)))
    });
    let jobs = Jobs::find(ranks, verbosity);
    let documents = entries.iter().map(|(about, result)| batch.document(*about, result, rules));
    let documents: Vec<_> = documents.chain(jobs.documents(batch)).collect();
    let page = json::pretty(&documents);
    output::write(page.as_bytes(), file)?;
    Ok(print_errors(batch, entries, summary))
}

fn gather<T: Send>(
    batch: &Batch<'_>,
    keep: impl Fn(&str, Answer) -> T + Sync,
) -> (Entries<T>, Summary) {
    let shared = Mutex::new((Vec::new(), Summary::default()));
    batch.run(
        |_| true,
        |about, result| {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let (entries, summary) = &mut *shared;
            let result = result.map(|answer| {
                summary.answered(&answer);
                keep(batch.name(about), answer)
            });
            if result.is_err() {
                batch.progress.failed();
            }
            entries.push((about, result));
        },
    );
    let (mut entries, summary) = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    entries.sort_by_key(|(about, _)| *about);
    (entries, summary)
}

fn print_errors<T>(batch: &Batch<'_>, entries: Entries<T>, mut summary: Summary) -> Summary {
    for (about, result) in entries {
        if let Err(failure) = result {
            summary.failed(failure.into_cli_error(batch.name(about)).print());
        }
    }
    summary
}
