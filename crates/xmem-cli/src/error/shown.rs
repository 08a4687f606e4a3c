//! An error as it is shown: its texts name what stands in files and arguments, and are made printable
//! before the layout adds its own line feeds and colors.

use miette::{Diagnostic, LabeledSpan, Severity, SourceCode};
use std::error::Error;
use std::fmt;
use xmem::types::{printable, printable_lines};

/// An error with printable texts.
#[derive(Debug)]
pub(super) struct Shown {
    /// The error itself, whose source code is quoted.
    error: Box<dyn Diagnostic + Send + Sync>,
    message: String,
    help: String,
    cause: Option<Cause>,
}

/// A cause, and its own.
#[derive(Debug)]
struct Cause {
    message: String,
    cause: Option<Box<Cause>>,
}

impl Shown {
    /// The error behind its code. Without advice, it leads to its explanation.
    pub(super) fn new(error: Box<dyn Diagnostic + Send + Sync>, code: &str) -> Self {
        let message = format!("[{code}] {}", printable(&error.to_string()));
        let help = error.help().map_or_else(
            || format!("`xmem explain {code}` shows the cause and the fix"),
            |help| printable_lines(&help.to_string()).into_owned(),
        );
        let cause = error.source().map(Cause::new);
        Self { error, message, help, cause }
    }
}

impl Cause {
    fn new(error: &(dyn Error + 'static)) -> Self {
        // Errors of formats quote several lines.
        let message = printable_lines(&error.to_string()).into_owned();
        Self { message, cause: error.source().map(|cause| Box::new(Self::new(cause))) }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Shown {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as _)
    }
}

impl Diagnostic for Shown {
    fn severity(&self) -> Option<Severity> {
        self.error.severity()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.help))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.error.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let labels = self.error.labels()?;
        Some(Box::new(labels.map(|label| {
            let text = label.label().map(|text| printable(text).into_owned());
            LabeledSpan::new(text, label.offset(), label.len())
        })))
    }
}
