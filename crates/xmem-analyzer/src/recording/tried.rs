//! What `xmem fit` found out about the recorded job with changes, which it adds to a trace under a key of its own (schema
//! `xmem.measures.1`).

use serde::Deserialize;
use xmem_types::{Bytes, Diagnostics, Severity, printable};

/// The top-level key of a trace under which `xmem fit --keep` keeps what it found.
pub const KEY: &str = "xmem_measures";

const SCHEMA: &str = "xmem.measures.1";

/// The most measures that are read: `xmem fit` keeps a few.
const MAX_MEASURES: usize = 32;

/// The job with changes, as it was recorded for one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriedMeasures {
    /// The device, by its name in the catalogue.
    pub device: String,
    /// Measures with which the job was recorded, the best first.
    pub measures: Vec<TriedMeasure>,
    /// The largest value of the number in the command with which the job runs as it is.
    pub largest: Option<LargestValue>,
}

/// Measures with which a job was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriedMeasure {
    /// Their names, as the command line takes them (`fused,checkpointing=2`).
    pub names: String,
    /// The GPUs that they divide the job over.
    pub gpus: u32,
    /// The least device memory with which the job runs.
    pub needs: Bytes,
    /// The time of a step against that of the job as it is, in percent (120 is a fifth longer).
    pub step_percent: Option<u32>,
}

/// The largest value of a number with which a job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargestValue {
    /// The name of the number.
    pub name: String,
    /// Its value.
    pub value: u64,
    /// The least device memory with which the job runs with it.
    pub needs: Bytes,
}

impl TriedMeasures {
    /// The measures with which the job runs on a device in so much of its memory, the best first; none on another device than
    /// that of the recordings.
    pub fn fitting<'t>(
        &'t self,
        device: &str,
        memory: Bytes,
    ) -> impl Iterator<Item = &'t TriedMeasure> + use<'t> {
        let is_here = self.device == device;
        self.measures.iter().filter(move |one| is_here && one.needs <= memory)
    }

    /// The largest value with which it runs there as it is.
    #[must_use]
    pub fn fitting_value(&self, device: &str, memory: Bytes) -> Option<&LargestValue> {
        self.largest.as_ref().filter(|one| self.device == device && one.needs <= memory)
    }
}

#[derive(Deserialize)]
struct KeptDto {
    schema: String,
    device: String,
    #[serde(default)]
    measures: Vec<MeasureDto>,
    #[serde(default)]
    largest: Option<LargestDto>,
}

#[derive(Deserialize)]
struct MeasureDto {
    names: String,
    gpus: u32,
    needs_bytes: u64,
    #[serde(default)]
    step_percent: Option<u32>,
}

#[derive(Deserialize)]
struct LargestDto {
    name: String,
    value: u64,
    needs_bytes: u64,
}

/// What was found, in the raw text of the key's value.
pub(crate) fn read(raw: &str, notes: &mut Diagnostics) -> Option<TriedMeasures> {
    match serde_json::from_str::<KeptDto>(raw) {
        Ok(kept) if kept.schema == SCHEMA => Some(kept.read()),
        _ => {
            notes.report("recording-measures", Severity::Warning, None, || {
                format!("`{KEY}` has an unexpected form: the results of xmem fit in it are ignored")
            });
            None
        }
    }
}

impl KeptDto {
    fn read(self) -> TriedMeasures {
        let text = |text: &str| printable(text).into_owned();
        let measures = self.measures.into_iter().take(MAX_MEASURES).map(|one| TriedMeasure {
            names: text(&one.names),
            gpus: one.gpus,
            needs: Bytes(one.needs_bytes),
            step_percent: one.step_percent,
        });
        TriedMeasures {
            device: text(&self.device),
            measures: measures.collect(),
            largest: self.largest.map(|one| LargestValue {
                name: text(&one.name),
                value: one.value,
                needs: Bytes(one.needs_bytes),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_read_and_another_form_is_ignored() {
        let good = r#"{"schema":"xmem.measures.1","device":"t4-16g","later":1,"measures":[
            {"names":"fused,checkpointing=2","gpus":1,"needs_bytes":7,"step_percent":120,"changes":"nothing"}],
            "largest":{"name":"batch","value":6,"needs_bytes":9}}"#;
        let mut notes = Diagnostics::default();
        let found = read(good, &mut notes).expect("read");
        assert!(notes.is_empty());
        assert_eq!(found.device, "t4-16g");
        let measure = TriedMeasure {
            names: "fused,checkpointing=2".to_owned(),
            gpus: 1,
            needs: Bytes(7),
            step_percent: Some(120),
        };
        assert_eq!(found.measures, [measure]);
        let largest = LargestValue { name: "batch".to_owned(), value: 6, needs: Bytes(9) };
        assert_eq!(found.largest, Some(largest));

        for bad in [
            "7",
            "{}",
            r#"{"schema":"xmem.measures.2","device":"t4-16g"}"#,
            r#"{"schema":"xmem.measures.1","device":"t4-16g","measures":[{"names":"fused"}]}"#,
            r#"{"schema":"xmem.measures.1","device":"t4-16g","largest":{"name":"b","value":-1,"needs_bytes":1}}"#,
        ] {
            let mut notes = Diagnostics::default();
            assert_eq!(read(bad, &mut notes), None, "{bad}");
            assert!(notes.get("recording-measures").is_some(), "{bad}");
        }
    }
}
