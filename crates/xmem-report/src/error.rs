//! `xmem.error/1`: the entry of a trace without an answer, in lists of several traces.

use serde::Serialize;

/// The schema of [`ErrorDocument`].
pub(crate) const ERROR: &str = "xmem.error/1";

/// The error of a trace without an answer.
#[derive(Serialize)]
pub struct ErrorDocument<'a> {
    schema: &'static str,
    trace: &'a str,
    settings: Option<&'a str>,
    error: String,
    causes: Vec<String>,
}

impl<'a> ErrorDocument<'a> {
    /// The document of an error about `trace`, the input as the user named it; with `settings`, if
    /// the error concerns these, and not the trace under all settings.
    #[must_use]
    pub fn new(trace: &'a str, settings: Option<&'a str>, error: &dyn std::error::Error) -> Self {
        let causes = std::iter::successors(error.source(), |e| e.source());
        Self {
            schema: ERROR,
            trace,
            settings,
            error: error.to_string(),
            causes: causes.map(ToString::to_string).collect(),
        }
    }
}
