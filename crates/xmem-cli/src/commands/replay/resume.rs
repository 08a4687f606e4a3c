//! Continuing a file of lines: its answers are skipped, its errors removed and retried.

use super::batch::Question;
use super::error::ReplayFailure;
use super::settings::Settings;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{self, WriteError};
use crate::traces::{Source, TraceInput};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::path::Path;
use xmem_report::lines::{LineFormat, ReadLinesError, ReadSummary, WrittenAnswer, read_lines};

/// The answers that the file already has.
#[derive(Default)]
pub(super) struct Completed {
    answers: BTreeSet<(usize, usize)>,
    /// Their exit code.
    pub(super) exit: Option<Exit>,
    /// `true` if the file begins with the header.
    pub(super) header: bool,
}

impl Completed {
    pub(super) fn has(&self, about: Question) -> bool {
        about.settings.is_some_and(|settings| self.answers.contains(&(about.trace, settings)))
    }
}

/// The current questions, as earlier answers name them.
pub(super) struct Known {
    traces: BTreeMap<String, usize>,
    settings: BTreeMap<String, usize>,
}

impl Known {
    /// `read_back` gives a text as it is read from an answer.
    pub(super) fn new(
        traces: &[TraceInput],
        settings: &[Settings],
        read_back: impl Fn(&str) -> String,
    ) -> Self {
        let traces = traces.iter().enumerate();
        let settings = settings.iter().enumerate();
        Self {
            traces: traces
                .filter_map(|(at, named)| Some((read_back(unique_name(named)?), at)))
                .collect(),
            settings: settings.map(|(at, settings)| (read_back(&settings.options), at)).collect(),
        }
    }

    /// Notes an earlier answer, if it is to a current question.
    pub(super) fn add(&self, answered: WrittenAnswer, done: &mut Completed) {
        let trace = self.traces.get(&answered.trace);
        let settings = answered.settings.and_then(|words| self.settings.get(&words));
        if let (Some(&trace), Some(&settings)) = (trace, settings) {
            done.answers.insert((trace, settings));
            done.exit = done.exit.max(Some(answered.verdict.into()));
        }
    }
}

/// Reads the answers of `file` to the current questions, and removes errors and an incomplete last
/// line from it. A missing file has no answers.
pub(super) fn read_completed(
    file: &Path,
    form: LineFormat,
    traces: &[TraceInput],
    settings: &[Settings],
) -> Result<Completed, CliError> {
    let wrong = |error: ReadLinesError| ReplayFailure::SkipDone {
        path: file.to_owned(),
        source: Box::new(error),
    };
    let lines = match open(file) {
        Ok(lines) => lines,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Completed::default()),
        Err(error) => return Err(wrong(error.into()).into()),
    };
    let known = Known::new(traces, settings, |text| form.read_back(text));
    let mut done = Completed::default();
    let found = read_lines(form, lines, |answered, _| {
        known.add(answered, &mut done);
        Ok(())
    });
    let ReadSummary { header, unusable } = found.map_err(wrong)?;
    done.header = header;
    if unusable > 0 {
        clean(file, form, wrong)?;
        done.header = true;
    }
    Ok(done)
}

/// The name, if no other path has the same one.
fn unique_name(named: &TraceInput) -> Option<&str> {
    match &named.source {
        Source::File(path) => path.to_str(),
        Source::Unreadable(_) => None,
        Source::Object(..) => Some(&named.name),
    }
}

fn open(file: &Path) -> io::Result<BufReader<File>> {
    if std::fs::metadata(file)?.is_file() {
        File::open(file).map(BufReader::new)
    } else {
        Err(io::Error::other("not a regular file"))
    }
}

/// Removes everything but answers from `file`.
fn clean(
    file: &Path,
    form: LineFormat,
    wrong: impl Fn(ReadLinesError) -> ReplayFailure,
) -> Result<(), CliError> {
    output::stream(Some(file), |out| {
        out.write_all(form.header().as_bytes())?;
        let copied = read_lines(form, open(file)?, |_, line| out.write_all(line));
        match copied {
            Ok(_) => Ok(()),
            Err(ReadLinesError::Io(error)) => Err(WriteError::Output(error)),
            Err(other) => Err(wrong(other).into()),
        }
    })
}
