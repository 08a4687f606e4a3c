//! Answers line by line, for programs: as documents of JSON, or as rows of CSV. Lines that were
//! written earlier are read back here too, so that a run can be gone on with.

mod back;
mod csv;

pub use back::{Answered, BackError, ReadBack, read_back};

use crate::json::{self, Document};

/// The form of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// A document a line.
    Json,
    /// A row a line, below a header. The columns have the names that the values have in the
    /// documents, levels joined by dots.
    Csv,
}

impl Lines {
    /// What comes before the first line, final newline included; empty for JSON.
    #[must_use]
    pub fn header(self) -> String {
        match self {
            Self::Json => String::new(),
            Self::Csv => csv::header(),
        }
    }

    /// A document as one line, final newline included.
    #[must_use]
    pub fn line(self, document: &Document<'_>) -> String {
        match self {
            Self::Json => json::line(document),
            Self::Csv => csv::row(document),
        }
    }
}
