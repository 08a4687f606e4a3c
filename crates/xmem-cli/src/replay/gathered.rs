//! Several answers as one page, in the order of the traces.

use super::batch::Batch;
use super::failure::Failure;
use super::tally::Tally;
use crate::complaint::Complaint;
use crate::output;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use xmem::Answer;
use xmem_report::json::{self, Document, Rules};
use xmem_report::text::{self, Look, Row};

/// What came of one question; `T` is kept of an answer.
struct Entry<'a, T> {
    trace: &'a str,
    words: Option<&'a str>,
    result: Result<T, Failure>,
}

/// A table. Of each answer, no more than its row is in memory.
pub(super) fn as_text(
    batch: &Batch<'_>,
    look: &Look,
    file: Option<&Path>,
) -> Result<Tally, Complaint> {
    let (entries, tally) = gather(batch, |trace, answer| Row::answer(trace, &answer));
    let row = |entry: &Entry<'_, Row>| match &entry.result {
        Ok(row) => row.clone(),
        Err(_) => Row::failure(entry.trace),
    };
    let page = text::table(&entries.iter().map(row).collect::<Vec<_>>(), look);
    output::write(page.as_bytes(), file)?;
    Ok(complain(entries, tally))
}

/// A list of documents.
pub(super) fn as_json(
    batch: &Batch<'_>,
    rules: Rules,
    file: Option<&Path>,
) -> Result<Tally, Complaint> {
    let (entries, tally) = gather(batch, |_, answer| answer);
    let documents: Vec<_> = entries.iter().map(|entry| document(entry, rules)).collect();
    let page = json::pretty(&documents);
    drop(documents);
    output::write(page.as_bytes(), file)?;
    Ok(complain(entries, tally))
}

fn document<'a>(entry: &'a Entry<'_, Answer>, rules: Rules) -> Document<'a> {
    match &entry.result {
        Ok(answer) => Document::answer(entry.trace, entry.words.unwrap_or_default(), answer, rules),
        Err(failure) => Document::error(entry.trace, entry.words, failure),
    }
}

fn gather<'a, T: Send>(
    batch: &'a Batch<'_>,
    keep: impl Fn(&str, Answer) -> T + Sync,
) -> (Vec<Entry<'a, T>>, Tally) {
    let shared = Mutex::new((Vec::new(), Tally::default()));
    batch.run(
        |_| true,
        |about, result| {
            let trace = batch.traces[about.trace].name.as_str();
            let words = about.settings.map(|settings| batch.settings[settings].words.as_str());
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let (entries, tally) = &mut *shared;
            let result = result.map(|answer| {
                tally.answered(&answer);
                keep(trace, answer)
            });
            if result.is_err() {
                batch.progress.bad();
            }
            entries.push(((about.trace, about.settings), Entry { trace, words, result }));
        },
    );
    let (mut entries, tally) = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    entries.sort_by_key(|(order, _)| *order);
    (entries.into_iter().map(|(_, entry)| entry).collect(), tally)
}

fn complain<T>(entries: Vec<Entry<'_, T>>, mut tally: Tally) -> Tally {
    for Entry { trace, result, .. } in entries {
        if let Err(failure) = result {
            tally.failed(failure.complaint(trace).print());
        }
    }
    tally
}
