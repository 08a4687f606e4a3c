//! A recording that one of several commands made on the way to its answer: how it ended, and what the script printed.

use std::path::PathBuf;
use xmem_recorder::{CutShort, RecordError, Recorded, RestEnd};

/// Lines of what a script printed that are shown where its recording failed.
const PRINTED_LINES: usize = 15;

/// An attempt to record a command whose output goes to a file.
pub(crate) struct Attempt {
    pub(crate) recorded: Result<Recorded, RecordError>,
    /// The file with what the script printed.
    pub(crate) printed: PathBuf,
}

impl Attempt {
    /// Returns whether the script ran as far as it was let run; `fails_anyway` is true if the job as it is fails later, too.
    pub(crate) fn runs(&self, fails_anyway: bool) -> bool {
        let Ok(recorded) = &self.recorded else { return false };
        let fails = recorded.rest.as_ref().is_some_and(|r| matches!(r.end, RestEnd::Exception(_)));
        recorded.cut_short.is_none() && (!fails || fails_anyway && !self.is_out_of_memory())
    }

    /// Returns whether the user stopped it.
    pub(crate) fn is_interrupted(&self) -> bool {
        match &self.recorded {
            Ok(recorded) => recorded.cut_short == Some(CutShort::Interrupted),
            Err(error) => error.is_interrupted(),
        }
    }

    /// Returns whether an allocation failed that the script did not handle.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        let of_error = |text: &str| text.contains("OutOfMemoryError");
        let printed = || self.last_lines().iter().any(|line| of_error(line));
        match &self.recorded {
            Ok(Recorded { cut_short: Some(CutShort::Raised(text)), .. }) => of_error(text),
            Ok(Recorded { cut_short: None, rest, .. }) => {
                rest.as_ref().is_some_and(|r| matches!(r.end, RestEnd::Exception(_))) && printed()
            }
            Ok(_) => printed(),
            Err(error) => of_error(&error.to_string()) || printed(),
        }
    }

    /// The complete recording, or the reason why there is none.
    pub(crate) fn complete(&self) -> Result<&Recorded, String> {
        if self.is_interrupted() {
            return Err("interrupted".to_owned());
        }
        let recorded = self.recorded.as_ref().map_err(|error| {
            self.last_lines()
                .pop()
                .map_or_else(|| error.to_string(), |line| format!("{error}: {line}"))
        })?;
        match &recorded.cut_short {
            Some(reason) => Err(self.why(reason)),
            None => Ok(recorded),
        }
    }

    /// Why it is incomplete.
    fn why(&self, reason: &CutShort) -> String {
        match reason {
            CutShort::Raised(text) if is_of_values(text) => format!(
                "the script raised {} (values are not computed on a virtual GPU, which may be why)",
                one_line(text)
            ),
            CutShort::Raised(text) => format!("the script raised {}", one_line(text)),
            CutShort::Exit(status) => {
                let line = self.last_lines().pop();
                let line = line.map_or_else(String::new, |line| format!(": {line}"));
                format!("the script ended with {status}{line}")
            }
            CutShort::Memory(_) => "this machine ran out of memory".to_owned(),
            CutShort::Timeout(_) => "the time was up".to_owned(),
            _ => "its recording is incomplete".to_owned(),
        }
    }

    /// The last lines that the script printed.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        let text = std::fs::read(&self.printed).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let from = lines.len().saturating_sub(PRINTED_LINES);
        lines[from..].iter().map(|line| xmem::types::printable(line).to_string()).collect()
    }
}

/// Whether an exception may be raised for a value that was not computed.
fn is_of_values(text: &str) -> bool {
    ["ValueError", "AssertionError", "IndexError", "KeyError"]
        .iter()
        .any(|name| text.starts_with(name))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
