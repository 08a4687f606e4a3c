//! Several answers as lines, each written as soon as it is there.

use super::batch::Batch;
use super::done::Done;
use super::tally::Tally;
use crate::complaint::Complaint;
use crate::exit::Exit;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use xmem_report::json::Rules;
use xmem_report::lines::Lines;

/// Where lines go.
pub(super) struct Sink {
    form: Lines,
    header_is_due: bool,
    place: Place,
}

enum Place {
    Stdout,
    File {
        path: PathBuf,
        how: OpenOptions,
        /// It is opened for the first line, so that what was there is lost only to an answer.
        file: Option<File>,
    },
}

impl Sink {
    /// Standard output, or `file` from its beginning.
    pub(super) fn anew(form: Lines, file: Option<&Path>) -> Self {
        let mut how = OpenOptions::new();
        how.write(true).create(true).truncate(true);
        let place = match file {
            Some(path) => Place::File { path: path.to_owned(), how, file: None },
            None => Place::Stdout,
        };
        Self { form, header_is_due: true, place }
    }

    /// The end of `file`, which has what is `done`.
    pub(super) fn behind(form: Lines, file: &Path, done: &Done) -> Self {
        let mut how = OpenOptions::new();
        how.append(true).create(true);
        let place = Place::File { path: file.to_owned(), how, file: None };
        Self { form, header_is_due: !done.header, place }
    }

    /// Writes a line with one write, so that it is there whole or not at all.
    fn put(&mut self, line: &str) -> io::Result<()> {
        let mut text = if self.header_is_due { self.form.header() } else { String::new() };
        text += line;
        match &mut self.place {
            Place::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes())?;
                out.flush()?;
            }
            Place::File { path, how, file } => {
                let file = match file {
                    Some(file) => file,
                    None => file.insert(how.open(path)?),
                };
                file.write_all(text.as_bytes())?;
            }
        }
        self.header_is_due = false;
        Ok(())
    }

    fn complaint(self, source: io::Error) -> Option<Complaint> {
        match self.place {
            Place::Stdout if source.kind() == ErrorKind::BrokenPipe => None,
            Place::Stdout => Some(Complaint::Stdout { source }),
            Place::File { path, file: None, .. } => Some(Complaint::Write { path, source }),
            Place::File { path, .. } => Some(Complaint::Append { path, source }),
        }
    }
}

/// Does what is not `done`, and writes it to `sink`; what comes of it all.
pub(super) fn run(
    batch: &Batch<'_>,
    rules: Rules,
    done: &Done,
    sink: Sink,
) -> Result<Tally, Complaint> {
    let form = sink.form;
    let shared = Mutex::new((sink, Tally::default(), None));
    batch.run(
        |about| !done.has(about),
        |about, result| {
            let line = form.line(&batch.document(about, &result, rules));
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let (sink, tally, broken) = &mut *shared;
            if broken.is_some() {
                return;
            }
            if let Err(error) = batch.progress.aside(|| sink.put(&line)) {
                batch.stop.at_once();
                *broken = Some(error);
                return;
            }
            match result {
                Ok(answer) => tally.answered(&answer),
                Err(failure) => {
                    batch.progress.bad();
                    tally.failed(
                        batch.progress.aside(|| failure.complaint(batch.name(about)).print()),
                    );
                }
            }
        },
    );
    let (sink, mut tally, broken) = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(complaint) = broken.and_then(|error| sink.complaint(error)) {
        return Err(complaint);
    }
    let stopped = batch.stop.signalled().into_iter();
    tally.exit = stopped.chain(done.exit).fold(tally.exit, Exit::max);
    Ok(tally)
}
