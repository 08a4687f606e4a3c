//! A recording on a virtual GPU: what it could not know, and what it assumed.

use serde::Deserialize;
use xmem_types::{Diagnostics, Severity};

/// Places in the script that a diagnostic names.
const NAMED: usize = 3;

/// The facts of a virtual GPU, on which kernels have no effect.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VirtualGpu {
    /// True if the script used `torch.compile`.
    pub(crate) compiles: bool,
    /// Reads of values that were not known, by their places in the script.
    reads: Vec<Read>,
    /// Sizes that were assumed.
    assumed: Vec<Assumed>,
    /// What the libraries of the virtual GPU could not do.
    log: Vec<Logged>,
}

/// A place at which the script reads a value of the GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Read {
    /// `control flow`, `size` or `value`.
    purpose: String,
    place: String,
    times: u64,
}

/// An operator whose output has as many elements as the GPU finds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Assumed {
    operator: String,
    /// The share of elements.
    share: f64,
    times: u64,
}

/// An entry of the log: `call`, `size`, `cudnn` or `error`, and its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Logged {
    kind: String,
    text: String,
}

impl VirtualGpu {
    /// Returns whether memory depends on what was assumed: sizes, or workspaces that are missing.
    #[must_use]
    pub fn is_assumed(&self) -> bool {
        !self.assumed.is_empty() || self.log.iter().any(|entry| entry.kind == "cudnn")
    }

    /// Reports what a user of the answer should know.
    pub(crate) fn report(&self, notes: &mut Diagnostics) {
        for assumed in &self.assumed {
            notes.report("assumed-sizes", Severity::Warning, None, || {
                format!(
                    "{} depends on values that a virtual GPU does not compute ({} times): {} % of the \
                     elements are taken; `xmem profile --assume nonzero=SHARE` sets the share",
                    assumed.operator,
                    assumed.times,
                    (assumed.share * 1000.0).round() / 10.0
                )
            });
        }
        if self.compiles {
            notes.report("compiled", Severity::Note, None, || {
                "torch.compile ran with an empty cache, and kernels take no time on a virtual GPU: where the \
                 compiler measures several (autotuning), its choice may differ from that on a GPU, and the \
                 memory of a GPU run also depends on what its cache has"
                    .to_owned()
            });
        }
        for entry in self.log.iter().filter(|entry| entry.kind == "cudnn") {
            notes.report("missing-workspaces", Severity::Warning, None, || {
                format!("the workspaces of convolutions are missing: cuDNN {}", entry.text)
            });
        }
        let unknown: Vec<&str> = self.log_of("size");
        if !unknown.is_empty() {
            notes.report("unknown-workspaces", Severity::Note, None, || {
                format!("workspaces of unknown size count as empty: {}", unknown.join(", "))
            });
        }
        let missing: Vec<&str> = self.log_of("call");
        if !missing.is_empty() {
            notes.report("missing-calls", Severity::Note, None, || {
                format!("calls that the virtual GPU does not have: {}", missing.join(", "))
            });
        }
        for (purpose, code, meaning) in [
            ("control flow", "unknown-control-flow", "decides by values (taken for false or zero)"),
            ("size", "unknown-integers", "reads integers (taken for zero)"),
        ] {
            let reads: Vec<&Read> =
                self.reads.iter().filter(|read| read.purpose == purpose).collect();
            if reads.is_empty() {
                continue;
            }
            notes.report(code, Severity::Note, None, || {
                let times: u64 = reads.iter().map(|read| read.times).sum();
                let places: Vec<&str> =
                    reads.iter().take(NAMED).map(|read| read.place.as_str()).collect();
                let more = match reads.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more places"),
                };
                format!(
                    "the script {meaning} that a virtual GPU does not compute, {times} times, at {}{more}",
                    places.join(", ")
                )
            });
        }
    }

    fn log_of(&self, kind: &str) -> Vec<&str> {
        self.log
            .iter()
            .filter(|entry| entry.kind == kind)
            .map(|entry| entry.text.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(json: &str) -> (bool, Vec<String>) {
        let facts: VirtualGpu = serde_json::from_str(json).expect("facts");
        let mut notes = Diagnostics::default();
        facts.report(&mut notes);
        (facts.is_assumed(), notes.iter().map(|note| note.code.to_string()).collect())
    }

    #[test]
    fn what_memory_depends_on_is_told_from_what_is_only_unknown() {
        let rows: [(&str, bool, &[&str]); 7] = [
            ("{}", false, &[]),
            (r#"{"reads":[{"purpose":"value","place":"t.py:3","times":3}]}"#, false, &[]),
            (
                r#"{"reads":[{"purpose":"control flow","place":"t.py:3","times":3}]}"#,
                false,
                &["unknown-control-flow"],
            ),
            (
                r#"{"assumed":[{"operator":"aten::nonzero","share":0.5,"times":2}]}"#,
                true,
                &["assumed-sizes"],
            ),
            (r#"{"compiles":true}"#, false, &["compiled"]),
            (r#"{"log":[{"kind":"cudnn","text":"90100 is old"}]}"#, true, &["missing-workspaces"]),
            (
                r#"{"log":[{"kind":"size","text":"cudnnGetX"},{"kind":"call","text":"cudaY 801"}]}"#,
                false,
                &["unknown-workspaces", "missing-calls"],
            ),
        ];
        for (json, is_assumed, codes) in rows {
            let (assumed, found) = reported(json);
            assert_eq!(assumed, is_assumed, "{json}");
            assert_eq!(found, codes, "{json}");
        }
    }
}
