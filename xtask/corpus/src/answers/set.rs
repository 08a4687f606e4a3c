//! The sets of answers: which devices, and with which options the traces are replayed.

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use xmem_task::{Error, repo};

/// One answer for each trace and device, with the same options.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) name: &'static str,
    devices: &'static str,
    options: &'static [&'static str],
}

/// Five architectures, from Turing to Blackwell.
const DEVICES: &str = "rtx3060-12g,t4-16g,a100-40g,h100-80g,b200-180g";
/// A small and a large one, for what takes longer.
const TWO_DEVICES: &str = "t4-16g,h100-80g";

/// Every set. The first four are what users see; the others reach rules and settings that are off by
/// default, and list so many blocks that hardly any is left out.
pub(super) const SETS: [Set; 6] = [
    Set { name: "model", devices: DEVICES, options: &["--cudnn", "model"] },
    Set { name: "model-explain", devices: DEVICES, options: &["--cudnn", "model", "--explain"] },
    Set { name: "cudnn", devices: DEVICES, options: &["--cudnn", "traces/cudnn"] },
    Set {
        name: "cudnn-explain",
        devices: DEVICES,
        options: &["--cudnn", "traces/cudnn", "--explain"],
    },
    Set {
        name: "for-loop",
        devices: TWO_DEVICES,
        options: &[
            "--cudnn=model",
            "--explain",
            "--top=300",
            "--min-capacity",
            "--torch=2.6",
            "--zero-grad=pos0",
            "--optimizer-impl=for-loop",
        ],
    },
    Set {
        name: "fused-expandable",
        devices: TWO_DEVICES,
        options: &[
            "--cudnn=none",
            "--explain",
            "--top=300",
            "--zero-grad=pos1",
            "--set-to-none=false",
            "--optimizer-impl=fused",
            "--alloc-conf=expandable_segments:True",
        ],
    },
];

impl Set {
    /// The file of its answers in a folder.
    pub(super) fn file(&self) -> String {
        format!("{}.jsonl", self.name)
    }

    /// What the program answers, one document a line, in an order that does not depend on which trace
    /// was done first.
    pub(super) fn ask(&self, program: &Path) -> Result<String, Error> {
        let mut command = Command::new(program);
        command.args(["replay", "traces", "--format", "jsonl", "--jobs", "2", "--quiet"]);
        command.args(["--devices", self.devices]).args(self.options).current_dir(repo::root());
        let spelled = format!("{command:?}");
        let done = command.output().map_err(Error::start(&spelled))?;
        // 1: a job does not fit; 4: a verdict is withheld. Both are answers.
        if !matches!(done.status.code(), Some(0 | 1 | 4)) {
            eprintln!("{}", String::from_utf8_lossy(&done.stderr));
            return Err(Error::Failed { command: spelled });
        }
        sorted(&String::from_utf8_lossy(&done.stdout)).map_err(Error::Answer)
    }
}

/// The lines in the order of trace and device.
fn sorted(text: &str) -> Result<String, serde_json::Error> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let answer: Value = serde_json::from_str(line)?;
        lines.push((Subject::of(&answer), line));
    }
    lines.sort();
    Ok(lines.into_iter().flat_map(|(_, line)| [line, "\n"]).collect())
}

/// The trace and the device that an answer is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subject {
    pub(super) trace: String,
    pub(super) device: String,
}

impl Subject {
    /// Reads them from an answer; a text that is missing is empty.
    pub(super) fn of(answer: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self { trace: text(&answer["trace"]), device: text(&answer["device"]["name"]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_ordered_by_trace_and_device() {
        let line = |trace: &str, device: &str| {
            format!("{{\"trace\":\"{trace}\",\"device\":{{\"name\":\"{device}\"}}}}\n")
        };
        let text = [line("b", "x"), line("a", "y"), line("a", "x")].concat();
        let expected = [line("a", "x"), line("a", "y"), line("b", "x")].concat();
        assert_eq!(sorted(&text).expect("JSON"), expected);
        assert!(sorted("killed").is_err());
    }

    #[test]
    fn names_of_sets_differ() {
        let names: std::collections::BTreeSet<&str> = SETS.iter().map(|set| set.name).collect();
        assert_eq!(names.len(), SETS.len());
    }
}
