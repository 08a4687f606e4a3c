//! Several answers as lines, each written as soon as it is available, or as the rows of a table.

use super::batch::Batch;
use super::dataset::Dataset;
use super::error::ReplayFailure;
use super::ranks::Jobs;
use super::resume::Completed;
use super::summary::Summary;
use crate::error::CliError;
use crate::exit::Exit;
use crate::file_size_limit::explain;
use crate::global::Verbosity;
use crate::output::OutputFailure;
use crate::terminal;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use xmem::types::printable_lines;
use xmem_report::json::{Document, Rules};
use xmem_report::lines::{AnswerCells, LineFormat};
use xmem_studies::ranks::RankAnswer;

/// The destination of answers.
pub(super) enum Sink {
    Lines(Lines),
    Table(Box<Dataset>),
}

/// The destination of lines.
pub(super) struct Lines {
    form: LineFormat,
    header_is_due: bool,
    /// False if the file may have answers of earlier runs.
    is_new: bool,
    place: Place,
}

enum Place {
    Stdout,
    File {
        path: PathBuf,
        how: OpenOptions,
        /// Opened for the first line, so that an existing file is replaced only by an answer.
        file: Option<File>,
    },
}

/// An answer or an error, ready to be written.
enum Entry {
    Line(String),
    Row(AnswerCells),
}

/// Why an entry was not written.
enum Broken {
    Line(io::Error),
    Part(CliError),
}

impl Sink {
    const fn form(&self) -> Option<LineFormat> {
        match self {
            Self::Lines(lines) => Some(lines.form),
            Self::Table(_) => None,
        }
    }

    /// Returns whether answers about several traces are written, too: where all answers are there, and each is a document of
    /// its own.
    fn wants_jobs(&self) -> bool {
        matches!(self, Self::Lines(lines) if lines.is_new && lines.form == LineFormat::Json)
    }

    fn put(&mut self, entry: Entry) -> Result<(), Broken> {
        match (self, entry) {
            (Self::Lines(lines), Entry::Line(line)) => lines.put(&line).map_err(Broken::Line),
            (Self::Table(table), Entry::Row(row)) => table.put(row).map_err(Broken::Part),
            // An entry is made for its sink.
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<(), Broken> {
        match self {
            Self::Lines(_) => Ok(()),
            Self::Table(table) => table.flush().map_err(Broken::Part),
        }
    }

    fn into_cli_error(self, broken: Broken) -> Option<CliError> {
        match (self, broken) {
            (_, Broken::Part(error)) => Some(error),
            (Self::Lines(lines), Broken::Line(source)) => lines.into_cli_error(source),
            (Self::Table(_), Broken::Line(_)) => None,
        }
    }
}

/// The entry of a document.
fn entry(form: Option<LineFormat>, document: &Document<'_>) -> Entry {
    match form {
        Some(form) => Entry::Line(form.line(document)),
        None => Entry::Row(AnswerCells::of(document)),
    }
}

impl Lines {
    /// A sink that writes to standard output, or replaces `file`.
    pub(super) fn replace(form: LineFormat, file: Option<&Path>) -> Self {
        let mut how = OpenOptions::new();
        how.write(true).create(true).truncate(true);
        let place = match file {
            Some(path) => Place::File { path: path.to_owned(), how, file: None },
            None => Place::Stdout,
        };
        Self { form, header_is_due: true, is_new: true, place }
    }

    /// A sink that appends to `file`, which already has the answers in `done`.
    pub(super) fn append(form: LineFormat, file: &Path, done: &Completed) -> Self {
        let mut how = OpenOptions::new();
        how.append(true).create(true);
        let place = Place::File { path: file.to_owned(), how, file: None };
        Self { form, header_is_due: !done.header, is_new: false, place }
    }

    /// Writes a line with a single write, so that no line is left incomplete.
    fn put(&mut self, line: &str) -> io::Result<()> {
        let mut text = if self.header_is_due { self.form.header() } else { String::new() };
        text += line;
        match &mut self.place {
            Place::Stdout => {
                let mut out = terminal::stdout();
                out.write_all(text.as_bytes())?;
                out.flush()?;
            }
            Place::File { path, how, file } => {
                let file = match file {
                    Some(file) => file,
                    None => file.insert(how.open(path)?),
                };
                file.write_all(printable_lines(&text).as_bytes())?;
            }
        }
        self.header_is_due = false;
        Ok(())
    }

    fn into_cli_error(self, source: io::Error) -> Option<CliError> {
        let source = explain(source);
        match self.place {
            Place::Stdout if source.kind() == ErrorKind::BrokenPipe => None,
            Place::Stdout => Some(OutputFailure::Stdout { source }.into()),
            Place::File { path, file: None, .. } => {
                Some(OutputFailure::File { path, source }.into())
            }
            Place::File { path, .. } => Some(ReplayFailure::Append { path, source }.into()),
        }
    }
}

/// Answers the questions that are not `done`, writes the lines to `sink`, and returns the summary.
pub(super) fn run(
    batch: &Batch<'_>,
    rules: Rules,
    done: &Completed,
    sink: Sink,
    verbosity: Verbosity,
) -> Result<Summary, CliError> {
    let (form, wants_jobs) = (sink.form(), sink.wants_jobs());
    let shared = Mutex::new((sink, Summary::default(), None, Vec::new()));
    batch.run(
        |about| !done.has(about),
        |about, result| {
            let entry = entry(form, &batch.document(about, &result, rules));
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let (sink, summary, broken, ranks) = &mut *shared;
            if broken.is_some() {
                return;
            }
            if let Err(error) = batch.progress.aside(|| sink.put(entry)) {
                batch.stop.now();
                *broken = Some(error);
                return;
            }
            match result {
                Ok(answer) => {
                    summary.answered(&answer);
                    if wants_jobs {
                        ranks.push((about, RankAnswer::new(batch.name(about), &answer)));
                    }
                }
                Err(failure) => {
                    batch.progress.failed();
                    summary.failed(
                        batch.progress.aside(|| failure.into_cli_error(batch.name(about)).print()),
                    );
                }
            }
        },
    );
    let (mut sink, mut summary, mut broken, ranks) =
        shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    if broken.is_none() && batch.stop.signalled().is_none() {
        let jobs = Jobs::find(ranks, verbosity);
        let entries = jobs.documents(batch).map(|job| entry(form, &job));
        broken = entries.map(|entry| sink.put(entry)).find_map(Result::err);
    }
    if broken.is_none() {
        broken = sink.finish().err();
    }
    if let Some(error) = broken.and_then(|error| sink.into_cli_error(error)) {
        return Err(error);
    }
    let stopped = batch.stop.signalled().into_iter();
    summary.exit = stopped.chain(done.exit).fold(summary.exit, Exit::max);
    Ok(summary)
}
