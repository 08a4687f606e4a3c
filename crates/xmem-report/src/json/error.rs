//! `xmem.error/1`: stands for an answer that could not be given, in lists of several traces.

use serde::Serialize;

/// Why a trace has no answer.
#[derive(Serialize)]
pub struct ErrorDocument<'a> {
    schema: &'static str,
    trace: &'a str,
    settings: Option<&'a str>,
    error: String,
    causes: Vec<String>,
}

impl<'a> ErrorDocument<'a> {
    /// The document for an error about `trace`, the input as the user named it; with `settings`, if
    /// it is about these and not about the trace whatever the settings.
    #[must_use]
    pub fn new(trace: &'a str, settings: Option<&'a str>, error: &dyn std::error::Error) -> Self {
        let causes = std::iter::successors(error.source(), |e| e.source());
        Self {
            schema: "xmem.error/1",
            trace,
            settings,
            error: error.to_string(),
            causes: causes.map(ToString::to_string).collect(),
        }
    }
}
