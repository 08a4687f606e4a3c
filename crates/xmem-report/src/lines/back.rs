//! Lines that were written earlier.

use super::{Lines, csv};
use serde::Deserialize;
use std::io::{self, BufRead};
use thiserror::Error;
use xmem::Verdict;

/// An answer that is there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The input as it was named.
    pub trace: String,
    /// What was asked; none in lines of versions that did not say it.
    pub settings: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
}

/// What else is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadBack {
    /// Whether the header is.
    pub header: bool,
    /// Lines that are no answers: errors, and a last one that was cut off.
    pub useless: u64,
}

/// Why lines cannot be read back.
#[derive(Debug, Error)]
pub enum BackError {
    /// The file cannot be read, or what is done with the lines fails.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Something else is in the file.
    #[error("line {number} was not written by `xmem replay`, or not in this form")]
    Foreign {
        /// The line, counted from 1.
        number: u64,
    },
    /// The first line names other columns.
    #[error("its columns are not those that this version of xmem writes")]
    OtherColumns,
}

/// What one whole line is.
enum Written {
    Answer(Answered),
    Failure,
}

/// Reads lines of `form`, and gives each answer among them to `answer` with its line, newline
/// included. Only one line is in memory at a time.
///
/// # Errors
/// If reading or `answer` fails, or something else than such lines is there.
pub fn read_back(
    form: Lines,
    mut from: impl BufRead,
    mut answer: impl FnMut(Answered, &[u8]) -> io::Result<()>,
) -> Result<ReadBack, BackError> {
    let mut found = ReadBack { header: form == Lines::Json, useless: 0 };
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.last() != Some(&b'\n') {
            found.useless += 1;
            break;
        }
        if !found.header {
            found.header = true;
            if line != form.header().as_bytes() {
                return Err(BackError::OtherColumns);
            }
            continue;
        }
        let written = match form {
            Lines::Json => of_json(&line),
            Lines::Csv => of_csv(&line),
        };
        match written.ok_or(BackError::Foreign { number })? {
            Written::Answer(answered) => answer(answered, &line)?,
            Written::Failure => found.useless += 1,
        }
    }
    Ok(found)
}

fn of_json(line: &[u8]) -> Option<Written> {
    #[derive(Deserialize)]
    struct Line {
        schema: String,
        trace: String,
        settings: Option<String>,
        verdict: Option<String>,
    }
    let Line { schema, trace, settings, verdict } = serde_json::from_slice(line).ok()?;
    match schema.as_str() {
        "xmem.error/1" => Some(Written::Failure),
        "xmem.replay/1" => {
            Some(Written::Answer(Answered { trace, settings, verdict: named(&verdict?)? }))
        }
        _ => None,
    }
}

fn of_csv(line: &[u8]) -> Option<Written> {
    let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(line);
    let record = reader.records().next()?.ok()?;
    if record.len() != csv::COLUMNS.len() {
        return None;
    }
    let field = |name| {
        let column = csv::COLUMNS.iter().position(|column| *column == name)?;
        record.get(column).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    if field("error").is_some() {
        return Some(Written::Failure);
    }
    let verdict = named(&field("verdict")?)?;
    Some(Written::Answer(Answered { trace: field("trace")?, settings: field("settings"), verdict }))
}

fn named(verdict: &str) -> Option<Verdict> {
    let all = [Verdict::Fits, Verdict::DoesNotFit, Verdict::Withheld];
    all.into_iter().find(|known| known.name() == verdict)
}
