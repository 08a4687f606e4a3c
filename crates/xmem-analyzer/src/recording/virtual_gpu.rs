//! A recording on a virtual GPU: what it could not know, and what it assumed.

use serde::Deserialize;
use xmem_types::{Bytes, Diagnostics, Severity, WithheldReason};

/// Places in the script that a diagnostic names.
const NAMED: usize = 3;

/// A bound for what a recording may say, so that no sum overflows.
const MAX_OUTSIDE: u64 = 1 << 50;

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
    /// The peaks that PyTorch counted.
    peaks: Option<Peaks>,
    /// The peaks of the same command under the lowest assumed shares.
    other_peaks: Option<Peaks>,
    /// The peaks of the same command with a host that runs ahead of the GPU.
    run_ahead_peaks: Option<Peaks>,
    /// Bytes that the program took from the device outside PyTorch's allocator.
    outside: u64,
    /// The peak of pinned memory of the host, in bytes.
    pub(super) pinned: Option<u64>,
    /// What the libraries of the virtual GPU could not do.
    log: Vec<Logged>,
}

/// What was not known up to the end of a script.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Limits {
    reads: Vec<Read>,
    assumed: Vec<Assumed>,
    log: Vec<Logged>,
}

/// Peaks of memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Peaks {
    allocated: u64,
    reserved: u64,
}

/// The purposes of reads whose values decide what the script does: those of truth values, most of which ask whether all is
/// well, and those of numbers that are compared right there.
const TRUTH: &str = "control flow";
const COMPARISON: &str = "comparison";

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
    /// The name of the assumption; none if nothing sensible can be assumed.
    assumption: Option<String>,
    share: Option<f64>,
    /// True if the user gave the share, or a range of shares that was recorded.
    bounded: bool,
    times: u64,
}

/// An entry of the log: `call`, `size`, `estimate`, `cudnn` or `error`, and its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Logged {
    kind: String,
    text: String,
}

impl VirtualGpu {
    /// The memory that the program took from the device outside PyTorch's allocator: symmetric memory, and what libraries
    /// allocate themselves.
    #[must_use]
    pub fn outside(&self) -> Bytes {
        Bytes(self.outside.min(MAX_OUTSIDE))
    }

    /// The peak of pinned memory of the host (`torch.cuda.host_memory_stats`); none where PyTorch does not count it.
    #[must_use]
    pub fn pinned(&self) -> Option<Bytes> {
        self.pinned.map(|size| Bytes(size.min(MAX_OUTSIDE)))
    }

    /// Takes what was not known up to the end of the script, of which that up to the last recorded iteration is a part.
    pub(super) fn extend_to(&mut self, Limits { reads, assumed, log }: Limits) {
        (self.reads, self.assumed, self.log) = (reads, assumed, log);
    }

    /// Returns whether memory depends on what was assumed and has no bounds: sizes, or workspaces that are
    /// missing.
    #[must_use]
    pub fn is_assumed(&self) -> bool {
        let has_bounds = |assumed: &Assumed| self.other_peaks.is_some() || assumed.is_upper_bound();
        !self.assumed.iter().all(has_bounds)
            || self.log.iter().any(|entry| matches!(entry.kind.as_str(), "cudnn" | "estimate"))
    }

    /// Returns whether sizes without bounds were recorded at their maximum: the job needs no more memory than was recorded,
    /// and may need less.
    #[must_use]
    pub fn is_upper_bound(&self) -> bool {
        self.assumed.iter().any(Assumed::is_upper_bound)
    }

    /// Returns whether the script branches on comparisons of numbers that were not computed.
    #[must_use]
    pub fn decides_by_unknown_values(&self) -> bool {
        self.reads.iter().any(|read| read.purpose == COMPARISON)
    }

    /// Peaks of allocated and of reserved memory that PyTorch counted (`torch.cuda.memory_stats`).
    #[must_use]
    pub fn counted_peaks(&self) -> Option<(Bytes, Bytes)> {
        let peaks = self.peaks.filter(|peaks| *peaks != Peaks::default())?;
        Some((Bytes(peaks.allocated), Bytes(peaks.reserved)))
    }

    /// Peaks of allocated and of reserved memory of the same command with the lowest assumed shares, if sizes
    /// follow from a range of shares.
    #[must_use]
    pub fn lowest_peaks(&self) -> Option<(Bytes, Bytes)> {
        let peaks = self.other_peaks.filter(|_| !self.assumed.is_empty())?;
        Some((Bytes(peaks.allocated), Bytes(peaks.reserved)))
    }

    /// Peaks of allocated and of reserved memory of the same command where work is complete when the host waits for it,
    /// if they were recorded. Those of the recording itself are with work that is complete at once.
    #[must_use]
    pub fn run_ahead_peaks(&self) -> Option<(Bytes, Bytes)> {
        self.run_ahead_peaks.map(|peaks| (Bytes(peaks.allocated), Bytes(peaks.reserved)))
    }

    /// Reports what a user of the answer should know. Sizes that follow from values and have no bounds withhold the
    /// verdict.
    pub(crate) fn report(&self, notes: &mut Diagnostics) {
        for assumed in &self.assumed {
            if assumed.bounded || assumed.is_upper_bound() {
                notes.report_many(
                    "assumed-sizes",
                    Severity::Warning,
                    None,
                    assumed.times.max(1),
                    || assumed.sentence(),
                );
            } else {
                notes.withhold(WithheldReason::AssumedSizes, assumed.times.max(1), || {
                    assumed.sentence()
                });
            }
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
        let estimated: Vec<&str> = self.log_of("estimate");
        if !estimated.is_empty() {
            notes.report("estimated-workspaces", Severity::Warning, None, || {
                format!(
                    "workspaces are as measured on an H100 with CUDA 13.0 and cuDNN 9.19, which do not give them \
                     without a GPU: {}",
                    estimated.join(", ")
                )
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
                format!("unsupported CUDA calls: {}", missing.join(", "))
            });
        }
        for (purposes, code, meaning) in [
            (
                &[TRUTH, COMPARISON][..],
                "unknown-control-flow",
                "decides by values (taken for false or zero)",
            ),
            (&["size"], "unknown-integers", "reads integers (taken for zero)"),
        ] {
            let is_meant = |read: &&Read| purposes.contains(&read.purpose.as_str());
            let reads: Vec<&Read> = self.reads.iter().filter(is_meant).collect();
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

impl Assumed {
    /// Returns whether the user gave no bounds for the size, and it was recorded at its maximum.
    fn is_upper_bound(&self) -> bool {
        let grows_with_share = matches!(self.assumption.as_deref(), Some("nonzero" | "unique"));
        grows_with_share && !self.bounded && self.share.is_some_and(|share| share >= 1.0)
    }

    fn sentence(&self) -> String {
        let head = format!(
            "what {} gives decides sizes, and depends on values that a virtual GPU does not compute",
            self.operator
        );
        let Some(name) = &self.assumption else {
            return format!("{head}: record on the CPU, without --virtual-gpu");
        };
        let percent = (self.share.unwrap_or_default() * 1000.0).round() / 10.0;
        let meaning = match name.as_str() {
            "nonzero" => format!("{percent} % of the elements are taken for nonzero"),
            "unique" => format!("{percent} % of the elements are taken for distinct"),
            "routing" if percent == 0.0 => {
                "each place is taken to have the largest element equally often".to_owned()
            }
            "routing" => format!(
                "{percent} % of the rows are taken to have the largest elements in the same places"
            ),
            other => format!("{other} is taken for {percent} %"),
        };
        let advice = if self.bounded {
            String::new()
        } else if self.is_upper_bound() {
            format!(
                ", the most that there can be; `xmem profile --assume {name}=LOW..HIGH` gives the answer a range"
            )
        } else {
            format!("; `xmem profile --assume {name}=LOW..HIGH` gives the answer a range")
        };
        format!("{head}: {meaning}{advice}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_needs_a_recording_at_the_lowest_shares() {
        let assumed = r#""assumed":[{"operator":"aten::unique","assumption":"unique","share":1,"bounded":true}]"#;
        let facts = |json: &str| serde_json::from_str::<VirtualGpu>(json).expect("facts");
        let with = facts(&format!(r#"{{{assumed},"other_peaks":{{"allocated":5,"reserved":9}}}}"#));
        assert_eq!(with.lowest_peaks(), Some((Bytes(5), Bytes(9))));
        assert!(!with.is_assumed(), "the range says it");
        assert_eq!(facts(&format!("{{{assumed}}}")).lowest_peaks(), None);
        assert!(!with.is_upper_bound(), "the user bounded it");
        let unused = facts(r#"{"other_peaks":{"allocated":5,"reserved":9}}"#);
        assert_eq!(unused.lowest_peaks(), None, "no size followed from an assumption");
    }

    #[test]
    fn the_peaks_of_a_host_that_runs_ahead_are_those_of_the_other_recording() {
        let facts = |json: &str| serde_json::from_str::<VirtualGpu>(json).expect("facts");
        let with = facts(r#"{"run_ahead_peaks":{"allocated":5,"reserved":9}}"#);
        assert_eq!(with.run_ahead_peaks(), Some((Bytes(5), Bytes(9))));
        assert_eq!(facts(r#"{"run_ahead_peaks":null}"#).run_ahead_peaks(), None);
    }

    fn reported(json: &str) -> (bool, Vec<String>) {
        let facts: VirtualGpu = serde_json::from_str(json).expect("facts");
        let mut notes = Diagnostics::default();
        facts.report(&mut notes);
        let withheld = if notes.withheld_reasons().is_empty() { "" } else { " withheld" };
        let codes = notes.iter().map(|note| format!("{}{withheld}", note.code));
        (facts.is_assumed(), codes.collect())
    }

    #[test]
    fn what_memory_depends_on_is_told_from_what_is_only_unknown() {
        let rows: [(&str, bool, &[&str]); 12] = [
            ("{}", false, &[]),
            (r#"{"reads":[{"purpose":"value","place":"t.py:3","times":3}]}"#, false, &[]),
            (
                r#"{"reads":[{"purpose":"control flow","place":"t.py:3","times":3}]}"#,
                false,
                &["unknown-control-flow"],
            ),
            (
                r#"{"reads":[{"purpose":"comparison","place":"t.py:3","times":3}]}"#,
                false,
                &["unknown-control-flow"],
            ),
            (
                r#"{"assumed":[{"operator":"aten::nonzero","assumption":"nonzero","share":0.5,"bounded":true}]}"#,
                true,
                &["assumed-sizes"],
            ),
            (r#"{"compiles":true}"#, false, &["compiled"]),
            (
                r#"{"assumed":[{"operator":"aten::nonzero","assumption":"nonzero","share":1,"bounded":false}]}"#,
                false,
                &["assumed-sizes"],
            ),
            (
                r#"{"assumed":[{"operator":"aten::topk","assumption":"routing","share":0,"bounded":false}]}"#,
                true,
                &["assumed-sizes withheld"],
            ),
            (
                r#"{"assumed":[{"operator":"aten::bincount","assumption":null,"share":null}]}"#,
                true,
                &["assumed-sizes withheld"],
            ),
            (
                r#"{"log":[{"kind":"estimate","text":"cudnnGetRNNTempSpaceSizes"}]}"#,
                true,
                &["estimated-workspaces"],
            ),
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
