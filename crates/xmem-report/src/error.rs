//! `xmem.error/1`: the entry of a trace without an answer, in lists of several traces.

use serde::Serialize;

/// The schema of [`ErrorDocument`].
pub(crate) const ERROR: &str = "xmem.error/1";

/// The entry of a trace without an answer in a list.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ErrorDocument<'a> {
    schema: &'static str,
    /// The input, as given on the command line.
    trace: &'a str,
    /// As in xmem.replay/2, if the error concerns these settings; null if the trace cannot be read under any settings.
    settings: Option<&'a str>,
    /// The code of the error, which `xmem explain` explains: XM and four digits.
    code: &'a str,
    /// The error, and what to do next.
    error: String,
    /// The causes, outermost first.
    causes: Vec<String>,
}

impl<'a> ErrorDocument<'a> {
    /// The document of an error and its code about `trace`, the input as the user named it; with `settings`, if
    /// the error concerns these, and not the trace under all settings.
    #[must_use]
    pub fn new(
        trace: &'a str,
        settings: Option<&'a str>,
        (code, error): (&'a str, &dyn std::error::Error),
    ) -> Self {
        let causes = std::iter::successors(error.source(), |e| e.source());
        Self {
            schema: ERROR,
            trace,
            settings,
            code,
            error: error.to_string(),
            causes: causes.map(ToString::to_string).collect(),
        }
    }
}
