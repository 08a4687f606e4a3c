//! Reading the lines of an earlier run.

use super::LineFormat;
use crate::error::ERROR;
use crate::ranks::json::RANKS;
use crate::replay::csv;
use crate::replay::json::REPLAY;
use crate::variants::json::VARIANTS;
use serde::Deserialize;
use std::io::{self, BufRead};
use thiserror::Error;
use xmem::Verdict;

/// An answer of an earlier run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenAnswer {
    /// The input as the user named it.
    pub trace: String,
    /// The settings of the answer; `None` in lines of versions without this field.
    pub settings: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
}

/// The other content of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadSummary {
    /// `true` if the file begins with the header.
    pub header: bool,
    /// The number of lines without an answer about one trace: errors, answers for jobs of several traces, and an
    /// incomplete last line.
    pub unusable: u64,
}

/// An error of reading lines.
#[derive(Debug, Error)]
pub enum ReadLinesError {
    /// The file cannot be read, or the callback fails.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line of the file is not an answer.
    #[error("line {number} was not written by `xmem replay` in this format")]
    Foreign {
        /// The line, counted from 1.
        number: u64,
    },
    /// A line was written by a version of xmem with another schema.
    #[error(
        "line {number} has schema {found} of another version of xmem; this version writes {REPLAY}"
    )]
    OtherSchema {
        /// The line, counted from 1.
        number: u64,
        /// Its schema.
        found: String,
    },
    /// The header has other columns.
    #[error("its columns differ from those of this version of xmem")]
    OtherColumns,
}

/// The content of a complete line.
enum Line {
    Answer(WrittenAnswer),
    Failure,
    /// An answer with another schema.
    Other(String),
}

/// Reads lines in the format `form`, and passes each answer to `answer` with its line, including
/// the newline. Only one line is in memory at a time.
///
/// # Errors
/// If reading or `answer` fails, or a line is something else.
pub fn read_lines(
    form: LineFormat,
    mut from: impl BufRead,
    mut answer: impl FnMut(WrittenAnswer, &[u8]) -> io::Result<()>,
) -> Result<ReadSummary, ReadLinesError> {
    let mut found = ReadSummary { header: form == LineFormat::Json, unusable: 0 };
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.last() != Some(&b'\n') {
            found.unusable += 1;
            break;
        }
        if !found.header {
            found.header = true;
            if line != form.header().as_bytes() {
                return Err(ReadLinesError::OtherColumns);
            }
            continue;
        }
        let written = match form {
            LineFormat::Json => parse_json(&line),
            LineFormat::Csv => parse_csv(&line),
        };
        match written.ok_or(ReadLinesError::Foreign { number })? {
            Line::Answer(answered) => answer(answered, &line)?,
            Line::Failure => found.unusable += 1,
            Line::Other(found) => return Err(ReadLinesError::OtherSchema { number, found }),
        }
    }
    Ok(found)
}

fn parse_json(line: &[u8]) -> Option<Line> {
    #[derive(Deserialize)]
    struct Document {
        schema: String,
        trace: Option<String>,
        settings: Option<String>,
        verdict: Option<String>,
    }
    let Document { schema, trace, settings, verdict } = serde_json::from_slice(line).ok()?;
    match schema.as_str() {
        // The answer for a job is no longer that of all its ranks when others come.
        ERROR | RANKS | VARIANTS => Some(Line::Failure),
        REPLAY => Some(Line::Answer(WrittenAnswer {
            trace: trace?,
            settings,
            verdict: verdict_by_name(&verdict?)?,
        })),
        other if other.starts_with("xmem.replay/") => Some(Line::Other(schema)),
        _ => None,
    }
}

fn parse_csv(line: &[u8]) -> Option<Line> {
    let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(line);
    let record = reader.records().next()?.ok()?;
    if record.len() != csv::COLUMNS.len() {
        return None;
    }
    let field = |name| {
        let column = csv::COLUMNS.iter().position(|column| *column == name)?;
        record.get(column).filter(|text| !text.is_empty()).map(|text| csv::text(text).to_owned())
    };
    if field("error").is_some() {
        return Some(Line::Failure);
    }
    let verdict = verdict_by_name(&field("verdict")?)?;
    Some(Line::Answer(WrittenAnswer {
        trace: field("trace")?,
        settings: field("settings"),
        verdict,
    }))
}

pub(super) fn verdict_by_name(verdict: &str) -> Option<Verdict> {
    Verdict::ALL.into_iter().find(|known| known.name() == verdict)
}
