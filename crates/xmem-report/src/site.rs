//! Recorded call sites, as text and as part of other documents.

use serde::Serialize;
use xmem_eval::Site;

/// The operator and the innermost line of Python.
pub(crate) fn site(site: &Site) -> String {
    let parts = [site.op.as_deref(), site.line.as_deref()];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "(no call stack)".to_owned() } else { parts.join("  ") }
}

/// The line of the user's own code in the call stack.
pub(crate) fn source(site: &Site) -> Option<&str> {
    site.caller.as_deref()
}

/// The place in the program, from the recorded call stack.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SiteDto<'a> {
    /// Innermost operator; only where C++ frames were recorded.
    op: Option<&'a str>,
    /// Innermost Python frame.
    line: Option<&'a str>,
    /// Innermost Python frame outside of installed packages, if that is another one.
    caller: Option<&'a str>,
}

impl<'a> From<&'a Site> for SiteDto<'a> {
    fn from(site: &'a Site) -> Self {
        Self { op: site.op.as_deref(), line: site.line.as_deref(), caller: site.caller.as_deref() }
    }
}
