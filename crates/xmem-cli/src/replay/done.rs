//! Going on with a file of lines: which answers it has, and what of it is to go.

use super::batch::About;
use super::settings::Settings;
use super::traces::{Named, Trace};
use crate::complaint::Complaint;
use crate::exit::Exit;
use crate::output::{self, Broken};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::path::Path;
use xmem_report::lines::{BackError, Lines, ReadBack, read_back};

/// The answers that are there.
#[derive(Default)]
pub(super) struct Done {
    answers: BTreeSet<(usize, usize)>,
    /// What they lead to.
    pub(super) exit: Option<Exit>,
    /// Whether the file has what comes before its lines.
    pub(super) header: bool,
}

impl Done {
    pub(super) fn has(&self, about: About) -> bool {
        about.settings.is_some_and(|settings| self.answers.contains(&(about.trace, settings)))
    }
}

/// Reads what `file` answers of what is asked now; then takes errors and a line that was cut off out
/// of it. A file that is not there has no answers.
pub(super) fn take_up(
    file: &Path,
    form: Lines,
    traces: &[Named],
    settings: &[Settings],
) -> Result<Done, Complaint> {
    let wrong =
        |error: BackError| Complaint::SkipDone { path: file.to_owned(), source: Box::new(error) };
    let lines = match open(file) {
        Ok(lines) => lines,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Done::default()),
        Err(error) => return Err(wrong(error.into())),
    };
    let traces: BTreeMap<&str, usize> = traces
        .iter()
        .enumerate()
        .filter_map(|(at, named)| Some((unmistakable(named)?, at)))
        .collect();
    let settings: BTreeMap<&str, usize> =
        settings.iter().enumerate().map(|(at, settings)| (settings.words.as_str(), at)).collect();
    let mut done = Done::default();
    let found = read_back(form, lines, |answered, _| {
        let trace = traces.get(answered.trace.as_str());
        let settings = answered.settings.and_then(|words| settings.get(words.as_str()));
        if let (Some(&trace), Some(&settings)) = (trace, settings) {
            done.answers.insert((trace, settings));
            done.exit = done.exit.max(Some(answered.verdict.into()));
        }
        Ok(())
    });
    let ReadBack { header, useless } = found.map_err(wrong)?;
    done.header = header;
    if useless > 0 {
        clean(file, form, wrong)?;
        done.header = true;
    }
    Ok(done)
}

/// A name that no other path has.
fn unmistakable(named: &Named) -> Option<&str> {
    match &named.trace {
        Trace::At(path) => path.to_str(),
        Trace::Hidden(_) => None,
    }
}

fn open(file: &Path) -> io::Result<BufReader<File>> {
    if std::fs::metadata(file)?.is_file() {
        File::open(file).map(BufReader::new)
    } else {
        Err(io::Error::other("it is not a plain file that can be read back"))
    }
}

/// Leaves only answers in `file`.
fn clean(
    file: &Path,
    form: Lines,
    wrong: impl Fn(BackError) -> Complaint,
) -> Result<(), Complaint> {
    output::stream(Some(file), |out| {
        out.write_all(form.header().as_bytes())?;
        let copied = read_back(form, open(file)?, |_, line| out.write_all(line));
        match copied {
            Ok(_) => Ok(()),
            Err(BackError::Io(error)) => Err(Broken::Sink(error)),
            Err(other) => Err(wrong(other).into()),
        }
    })
}
