//! cuDNN in a recording: the library of the recorded environment, and its answers about convolutions, which
//! `xmem profile` adds to a trace under a key of their own (schema `xmem.convolutions.1`).

use serde::Deserialize;
use std::collections::BTreeMap;
use xmem_types::{Bytes, Diagnostics, Severity, printable};

/// The top-level key of a trace under which `xmem profile` keeps the answers of cuDNN.
pub const KEY: &str = "xmem_convolutions";

const SCHEMA: &str = "xmem.convolutions.1";

/// A cuDNN library in the recorded environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CudnnLibrary {
    /// The path of the library.
    pub library: Option<String>,
    /// Its release (`9.19.0`).
    pub release: Option<String>,
}

/// The answers of cuDNN about the job's convolutions on one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CudnnAnswers {
    /// The release of the library.
    pub release: String,
    /// The device, as it was described to the library.
    pub device: String,
    /// The workspaces of each convolution, in the order of its plans.
    pub workspaces: BTreeMap<String, Vec<Bytes>>,
}

#[derive(Deserialize)]
struct KeptDto {
    schema: String,
    #[serde(default)]
    answers: Vec<AnswersDto>,
}

#[derive(Deserialize)]
struct AnswersDto {
    release: String,
    device: String,
    workspaces: BTreeMap<String, Vec<u64>>,
}

/// The answers in the raw text of the key's value.
pub(crate) fn read(raw: &str, notes: &mut Diagnostics) -> Vec<CudnnAnswers> {
    match serde_json::from_str::<KeptDto>(raw) {
        Ok(KeptDto { schema, answers }) if schema == SCHEMA => {
            answers.into_iter().map(AnswersDto::answers).collect()
        }
        _ => {
            notes.report("recording-convolutions", Severity::Warning, None, || {
                format!("`{KEY}` has an unexpected form: the answers of cuDNN in it are ignored")
            });
            Vec::new()
        }
    }
}

impl AnswersDto {
    fn answers(self) -> CudnnAnswers {
        let sizes = |sizes: Vec<u64>| sizes.into_iter().map(Bytes).collect();
        let workspaces = self.workspaces.into_iter();
        CudnnAnswers {
            release: printable(&self.release).into_owned(),
            device: printable(&self.device).into_owned(),
            workspaces: workspaces.map(|(question, all)| (question, sizes(all))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_another_form_is_ignored() {
        let good = r#"{"schema":"xmem.convolutions.1","answers":[
            {"release":"9.19.0","device":"{\"a\":1}","workspaces":{"forward f32":[7,0]},"later":1}]}"#;
        let mut notes = Diagnostics::default();
        let answers = read(good, &mut notes);
        assert!(notes.is_empty());
        let workspaces = BTreeMap::from([("forward f32".to_owned(), vec![Bytes(7), Bytes(0)])]);
        let (release, device) = ("9.19.0".to_owned(), "{\"a\":1}".to_owned());
        assert_eq!(answers, [CudnnAnswers { release, device, workspaces }]);

        for bad in [
            "7",
            "{}",
            r#"{"schema":"xmem.convolutions.2","answers":[]}"#,
            r#"{"schema":"xmem.convolutions.1","answers":[{"release":"9.19.0"}]}"#,
            r#"{"schema":"xmem.convolutions.1","answers":[
                {"release":"9.19.0","device":"","workspaces":{"forward":[-1]}}]}"#,
        ] {
            let mut notes = Diagnostics::default();
            assert_eq!(read(bad, &mut notes), [], "{bad}");
            assert!(notes.get("recording-convolutions").is_some(), "{bad}");
        }
    }
}
