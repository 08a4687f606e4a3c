//! A recorded case, and what xmem makes of it.

use crate::traces;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use xmem_task::Error;

/// Bytes.
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
/// The smallest segment that a request of more than 1 MiB gets: `kLargeBuffer` in PyTorch's
/// `c10/cuda/CUDACachingAllocator.cpp`.
const SEGMENT: f64 = 20.0 * 1024.0 * 1024.0;

/// Whether a case may be looked at while rules are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    Rules,
    Untouched,
}

impl Set {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Untouched => "untouched",
        }
    }
}

/// A folder with a trace and a recording.
#[derive(Clone, Debug)]
pub(super) struct Case {
    folder: PathBuf,
    pub(super) name: String,
    pub(super) set: Set,
    pub(super) device: String,
    pub(super) torch: String,
    /// How the optimizer runs on the GPU, where it is not by its default.
    optimizer: Option<String>,
    allocated: f64,
    reserved: f64,
}

/// An estimated and a recorded figure, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) estimated: f64,
    pub(super) recorded: f64,
}

impl Pair {
    /// Signed error in per cent of the recorded value.
    pub(super) fn error(self) -> f64 {
        100.0 * (self.estimated - self.recorded) / self.recorded
    }
}

/// What xmem makes of a case.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) case: Case,
    pub(super) allocated: Pair,
    pub(super) reserved: Pair,
    /// How far the curves of allocated and reserved memory run from the recorded ones after the
    /// first iteration, in per cent; none for jobs of one iteration.
    pub(super) curves: Option<[f64; 2]>,
    /// The differences of `xmem.validate/1`.
    pub(super) differences: Vec<Value>,
}

impl Row {
    /// Whether all that is wrong is one segment more or less in a small job.
    pub(super) fn is_one_segment(&self) -> bool {
        let off = (self.reserved.estimated - self.reserved.recorded).abs();
        off > 0.0 && off <= SEGMENT && self.reserved.recorded < GIB
    }
}

impl Case {
    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        let meta = traces::table(&folder.join(traces::META))?;
        let path = folder.join(traces::EXPECTED);
        let expected = traces::table(&path)?;
        let get = |keys: [&str; 2]| expected.get(keys[0]).and_then(|table| table.get(keys[1]));
        let text = |keys| get(keys).and_then(toml::Value::as_str).map(str::to_owned);
        let figure = |keys| get(keys).and_then(toml::Value::as_integer).map(|bytes| bytes as f64);
        let unclear = || Error::Figures { path: path.clone() };
        let set = match meta.get("set").and_then(toml::Value::as_str) {
            None | Some("rules") => Set::Rules,
            Some("untouched") => Set::Untouched,
            Some(_) => return Err(Error::Figures { path: folder.join(traces::META) }),
        };
        Ok(Self {
            folder: folder.to_owned(),
            name: traces::name(folder),
            set,
            device: text(["device", "name"]).ok_or_else(unclear)?,
            torch: text(["versions", "torch"]).ok_or_else(unclear)?,
            optimizer: meta.get("optimizer-impl").and_then(|v| v.as_str()).map(str::to_owned),
            allocated: figure(["peak", "allocated-bytes"]).ok_or_else(unclear)?,
            reserved: figure(["peak", "reserved-bytes"]).ok_or_else(unclear)?,
        })
    }

    /// Holds the estimate against the recording; `cudnn` knows the workspaces of convolutions.
    pub(super) fn estimate(self, program: &Path, cudnn: &str) -> Result<Row, Error> {
        let answer = self.validate(program, cudnn)?;
        let unclear = || Error::Figures { path: self.folder.join(traces::SNAPSHOT) };
        let peak = |name: &str| answer["peaks"][name]["estimated_bytes"].as_f64();
        let mut differences = Vec::new();
        if let Some(list) = answer["differences"].as_array() {
            differences.clone_from(list);
        }
        Ok(Row {
            allocated: Pair {
                estimated: peak("allocated").ok_or_else(unclear)?,
                recorded: self.allocated,
            },
            reserved: Pair {
                estimated: peak("reserved").ok_or_else(unclear)?,
                recorded: self.reserved,
            },
            curves: curves(&answer),
            differences,
            case: self,
        })
    }

    fn validate(&self, program: &Path, cudnn: &str) -> Result<Value, Error> {
        let mut command = Command::new(program);
        command.arg("validate").arg(self.folder.join("trace.json.zst"));
        command.arg("--snapshot").arg(self.folder.join(traces::SNAPSHOT));
        command.args(["--device", &self.device, "--format", "json", "-q"]);
        command.args(["--cudnn", cudnn]);
        if let Some(optimizer) = &self.optimizer {
            command.args(["--optimizer-impl", optimizer]);
        }
        let spelled = format!("{command:?}");
        let done = command.output().map_err(Error::start(&spelled))?;
        // 1 says that the estimate is off, which is what is asked here.
        if !matches!(done.status.code(), Some(0 | 1)) {
            eprintln!("{}", String::from_utf8_lossy(&done.stderr));
            return Err(Error::Failed { command: spelled });
        }
        serde_json::from_slice(&done.stdout).map_err(Error::Answer)
    }
}

/// The mean distances over all iterations but the first, in per cent.
fn curves(answer: &Value) -> Option<[f64; 2]> {
    let later: Vec<&Value> = answer["curves"]
        .as_array()?
        .iter()
        .filter(|curve| curve["iteration"].as_u64().is_some_and(|iteration| iteration > 0))
        .collect();
    let mean = |name: &str| -> Option<f64> {
        let values: Vec<f64> = later.iter().filter_map(|curve| curve[name].as_f64()).collect();
        (!values.is_empty()).then(|| 100.0 * values.iter().sum::<f64>() / values.len() as f64)
    };
    Some([mean("allocated")?, mean("reserved")?])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    pub(in crate::accuracy) const MIB: f64 = 1024.0 * 1024.0;

    /// A row of so many MiB of peak reserved, and exact otherwise.
    pub(in crate::accuracy) fn row(estimated: f64, recorded: f64) -> Row {
        let pair = |estimated: f64, recorded: f64| Pair {
            estimated: estimated * MIB,
            recorded: recorded * MIB,
        };
        Row {
            case: Case {
                folder: PathBuf::new(),
                name: format!("of-{recorded}"),
                set: Set::Rules,
                device: "NVIDIA A100".to_owned(),
                torch: "2.11.0".to_owned(),
                optimizer: None,
                allocated: recorded * MIB,
                reserved: recorded * MIB,
            },
            allocated: pair(recorded, recorded),
            reserved: pair(estimated, recorded),
            curves: Some([0.0, 0.0]),
            differences: Vec::new(),
        }
    }

    #[test]
    fn curves_are_compared_after_the_first_iteration() {
        let curve = |iteration: u32, allocated: f64| json!({"iteration": iteration, "allocated": allocated, "reserved": 0.01});
        let answer = json!({"curves": [curve(0, 9.0), curve(1, 0.02), curve(2, 0.04)]});
        let [allocated, reserved] = curves(&answer).expect("two iterations");
        assert!((allocated - 3.0).abs() < 1e-9 && (reserved - 1.0).abs() < 1e-9);
        assert!(curves(&json!({"curves": [curve(0, 9.0)]})).is_none());
    }

    #[test]
    fn one_segment_is_forgiven_in_small_jobs_only() {
        assert!(row(120.0, 100.0).is_one_segment());
        assert!(!row(121.0, 100.0).is_one_segment(), "more than a segment");
        assert!(!row(2020.0, 2000.0).is_one_segment(), "a large job");
        assert!(!row(100.0, 100.0).is_one_segment(), "nothing is wrong");
    }
}
