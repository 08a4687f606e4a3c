//! Answers line by line, for programs: as JSON documents or as CSV rows. The lines of an earlier
//! run are read here too, so that a run can be continued.

mod columns;
mod read;

pub use columns::{ANSWERS, AnswerCells, answer_columns, answers_of_columns};
pub use read::{ReadLinesError, ReadSummary, WrittenAnswer, read_lines};

use crate::document::Document;
use crate::encode;
use crate::replay::csv;

/// The format of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineFormat {
    /// One document per line.
    Json,
    /// One row per line, below a header. Columns are named by the path of their value in the
    /// document, with dots.
    Csv,
}

impl LineFormat {
    /// The text before the first line, with its newline; empty for JSON.
    #[must_use]
    pub fn header(self) -> String {
        match self {
            Self::Json => String::new(),
            Self::Csv => csv::header(),
        }
    }

    /// `text` as [`read_lines`] returns it from a line of this format. CSV has one line for each answer,
    /// and escapes what is not printable.
    #[must_use]
    pub fn read_back(self, text: &str) -> String {
        match self {
            Self::Json => text.to_owned(),
            Self::Csv => csv::text(&csv::cell(text)).to_owned(),
        }
    }

    /// A document as one line, with its newline.
    #[must_use]
    pub fn line(self, document: &Document<'_>) -> String {
        match self {
            Self::Json => encode::line(document),
            Self::Csv => csv::row(document),
        }
    }
}
