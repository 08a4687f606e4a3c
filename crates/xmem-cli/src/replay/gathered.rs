//! Several answers as one page, in the order of the traces.

use super::batch::{About, Batch};
use super::failure::Failure;
use super::tally::Tally;
use crate::complaint::Complaint;
use crate::output;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use xmem::Answer;
use xmem_report::json::{self, Rules};
use xmem_report::text::{self, Look, Row};

/// What came of each question; `T` is kept of an answer.
type Entries<T> = Vec<(About, Result<T, Failure>)>;

/// A table. Of each answer, no more than its row is in memory.
pub(super) fn as_text(
    batch: &Batch<'_>,
    look: &Look,
    file: Option<&Path>,
) -> Result<Tally, Complaint> {
    let (entries, tally) = gather(batch, |trace, answer| Row::answer(trace, &answer));
    let row = |(about, result): &(About, Result<Row, Failure>)| match result {
        Ok(row) => row.clone(),
        Err(_) => Row::failure(batch.name(*about)),
    };
    let page = text::table(&entries.iter().map(row).collect::<Vec<_>>(), look);
    output::write(page.as_bytes(), file)?;
    Ok(complain(batch, entries, tally))
}

/// A list of documents.
pub(super) fn as_json(
    batch: &Batch<'_>,
    rules: Rules,
    file: Option<&Path>,
) -> Result<Tally, Complaint> {
    let (entries, tally) = gather(batch, |_, answer| answer);
    let documents = entries.iter().map(|(about, result)| batch.document(*about, result, rules));
    let page = json::pretty(&documents.collect::<Vec<_>>());
    output::write(page.as_bytes(), file)?;
    Ok(complain(batch, entries, tally))
}

fn gather<T: Send>(
    batch: &Batch<'_>,
    keep: impl Fn(&str, Answer) -> T + Sync,
) -> (Entries<T>, Tally) {
    let shared = Mutex::new((Vec::new(), Tally::default()));
    batch.run(
        |_| true,
        |about, result| {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let (entries, tally) = &mut *shared;
            let result = result.map(|answer| {
                tally.answered(&answer);
                keep(batch.name(about), answer)
            });
            if result.is_err() {
                batch.progress.bad();
            }
            entries.push((about, result));
        },
    );
    let (mut entries, tally) = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    entries.sort_by_key(|(about, _)| *about);
    (entries, tally)
}

fn complain<T>(batch: &Batch<'_>, entries: Entries<T>, mut tally: Tally) -> Tally {
    for (about, result) in entries {
        if let Err(failure) = result {
            tally.failed(failure.complaint(batch.name(about)).print());
        }
    }
    tally
}
