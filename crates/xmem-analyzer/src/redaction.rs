//! A trace for others to read: what is known to be needed stays, everything else is left out.
//!
//! Numbers, shapes, types and the names of operators, modules, classes and functions stay, as an answer is about them.
//! Files become base names, texts of the user's become numbers, and metadata that no answer reads is dropped. What may be
//! in a text is decided in `text`; this module knows where texts are.

mod text;

use crate::lines;
use crate::recording::{CONVOLUTIONS_KEY, KEY, MEASURES_KEY, REST_KEY};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use xmem_trace::Rewrite;

/// Metadata that a program adds and an estimate reads: releases and settings
/// (`JobEnvironment::from_metadata` of xmem-predict), and what the profiler adds itself.
const KEPT_VALUES: [&str; 10] = [
    "displayTimeUnit",
    "distributedInfo",
    "torch_version",
    "pytorch_version",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "CUBLAS_WORKSPACE_CONFIG",
    "cuda_runtime_version",
];

/// Arguments of events whose texts stay, as far as [`text::plain`] has them.
const KEPT_ARGUMENTS: [&str; 11] = [
    "Input type",
    "Collective name",
    "dtype",
    "Process Group Name",
    "Process Group Description",
    "Group Ranks",
    "In split size",
    "Out split size",
    "labels",
    "Device Type",
    "Addr",
];

/// The changes. Names of annotations are numbered in the order of the trace.
#[derive(Debug, Default)]
pub struct Redaction {
    annotations: BTreeMap<String, usize>,
}

impl Rewrite for Redaction {
    fn value(&mut self, key: &str, value: &str) -> Option<String> {
        match key {
            KEY => Some(changed(value, "", &mut |key, text| recorded(key, text))),
            REST_KEY => Some(changed(value, "", &mut |key, text| match key {
                "places" => text::python(text),
                "detail" => text::end(text),
                _ => text::plain(text),
            })),
            CONVOLUTIONS_KEY | MEASURES_KEY | lines::KEY => {
                Some(changed(value, "", &mut |_, text| text::plain(text)))
            }
            _ if KEPT_VALUES.contains(&key) => Some(match value.as_bytes().first() {
                Some(b'{' | b'[') => changed(value, "", &mut |_, text| text::plain(text)),
                _ => quoted(&text::setting(value)),
            }),
            _ => None,
        }
    }

    fn event(&mut self, event: &str, to: &mut String) -> bool {
        let Ok(fields) = serde_json::from_str::<Fields<'_>>(event) else { return false };
        let of = |name: &str| {
            let found = fields.0.iter().find(|(key, _)| key == name);
            found.and_then(|(_, raw)| serde_json::from_str::<String>(raw.get()).ok())
        };
        let (category, name) = (of("cat").unwrap_or_default(), of("name").unwrap_or_default());
        let is_metadata = of("ph").as_deref() == Some("M");
        to.push('{');
        for (at, (key, raw)) in fields.0.iter().enumerate() {
            if at > 0 {
                to.push_str(", ");
            }
            to.push_str(&quoted(&text::identifier(key)));
            to.push_str(": ");
            match key.as_str() {
                "name" if raw.get().starts_with('"') => {
                    to.push_str(&quoted(&self.name(&category, &name)));
                }
                "args" if is_metadata => {
                    to.push_str(&changed(raw.get(), "", &mut |_, _| described(&name)));
                }
                "args" => to.push_str(&changed(raw.get(), "", &mut argument)),
                _ => to.push_str(&changed(raw.get(), key, &mut |_, text| text::plain(text))),
            }
        }
        to.push('}');
        true
    }
}

impl Redaction {
    fn name(&mut self, category: &str, name: &str) -> String {
        match category {
            "python_function" => text::python(name),
            "user_annotation" | "gpu_user_annotation" if !text::is_of_pytorch(name) => {
                let next = self.annotations.len() + 1;
                let number = *self.annotations.entry(name.to_owned()).or_insert(next);
                // A name with a space is a frame to the analysis, as the one that it stands for may be.
                let space = if name.contains(['#', ' ']) { ' ' } else { '_' };
                format!("annotation{space}{number}")
            }
            _ => text::plain(name),
        }
    }
}

/// The name of a process or thread, and other descriptions of them.
fn described(of: &str) -> String {
    match of {
        "process_name" => "python",
        "thread_name" => "thread",
        "process_labels" => "CPU",
        _ => "",
    }
    .to_owned()
}

fn argument(key: &str, text: &str) -> String {
    match key {
        "Concrete Inputs" => text::concrete(text),
        _ if KEPT_ARGUMENTS.contains(&key) => text::plain(text),
        _ => String::new(),
    }
}

/// A text of the recorder's notes.
fn recorded(key: &str, text: &str) -> String {
    match key {
        "notes" => String::new(),
        "detail" => text::end(text),
        "library" | "place" => text::base_name(text).to_owned(),
        _ if is_variable(key) => text::setting(text),
        _ => text::plain(text),
    }
}

/// Returns whether a key is the name of an environment variable.
fn is_variable(key: &str) -> bool {
    key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// JSON with its texts changed by a function of the key that they belong to.
fn changed(raw: &str, key: &str, change: &mut dyn FnMut(&str, &str) -> String) -> String {
    let raw = raw.trim();
    match raw.as_bytes().first() {
        Some(b'"') => {
            let text = serde_json::from_str::<String>(raw).unwrap_or_default();
            quoted(&change(key, &text))
        }
        // Numbers, of which most lists consist.
        Some(b'[') if raw.contains(['"', '{']) => {
            let items = serde_json::from_str::<Vec<&RawValue>>(raw).unwrap_or_default();
            let items: Vec<String> =
                items.into_iter().map(|item| changed(item.get(), key, change)).collect();
            format!("[{}]", items.join(", "))
        }
        Some(b'{') => {
            let fields = serde_json::from_str::<Fields<'_>>(raw).unwrap_or(Fields(Vec::new()));
            let fields: Vec<String> = fields
                .0
                .into_iter()
                .map(|(key, item)| {
                    let value = changed(item.get(), &key, change);
                    format!("{}: {value}", quoted(&text::identifier(&key)))
                })
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        _ => raw.to_owned(),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Keys and values of an object in its order, not yet read.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry::<String, &RawValue>()? {
                    fields.push(entry);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(InOrder).map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn event(text: &str) -> String {
        let mut to = String::new();
        assert!(Redaction::default().event(text, &mut to), "{text}");
        to
    }

    #[test]
    fn an_event_keeps_what_an_answer_is_about() {
        for text in [
            r#"{"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 7, "tid": 7, "ts": 4497792407125.247, "dur": 8.593, "args": {"External id": 1, "Concrete Inputs": ["", "[2, 3]", "1e-05", "False", "cuda:0"], "Input type": ["float", "ScalarList"], "Input Dims": [[2, 3], []]}}"#,
            r#"{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "args": {"Addr": 64, "Bytes": -512}}"#,
            r#"{"ph": "X", "cat": "user_annotation", "name": "Optimizer.step#AdamW.step"}"#,
            r#"{"ph": "X", "cat": "python_function", "name": "torch/nn/modules/module.py(1779): _call_impl"}"#,
            r#"{"ph": "X", "cat": "python_function", "name": "nn.Module: Linear_3"}"#,
        ] {
            assert_eq!(event(text), text);
        }
    }

    #[test]
    fn texts_of_the_user_do_not_stay() {
        let rows = [
            (
                r#"{"cat": "python_function", "name": "/home/me/secret/train.py(3): main"}"#,
                r#"{"cat": "python_function", "name": "train.py(3): main"}"#,
            ),
            (
                r#"{"cat": "python_function", "name": "project/train.py(3): main"}"#,
                r#"{"cat": "python_function", "name": "train.py(3): main"}"#,
            ),
            (
                r#"{"cat": "user_annotation", "name": "load s3://bucket?key=1"}"#,
                r#"{"cat": "user_annotation", "name": "annotation 1"}"#,
            ),
            (
                r#"{"cat": "cpu_op", "name": "my::op", "args": {"Concrete Inputs": ["hunter2"], "Call stack": "/home/me/x.py", "other": 3}}"#,
                r#"{"cat": "cpu_op", "name": "my::op", "args": {"Concrete Inputs": [""], "Call stack": "", "other": 3}}"#,
            ),
            (
                r#"{"ph": "M", "name": "process_name", "args": {"name": "train --token=1"}}"#,
                r#"{"ph": "M", "name": "process_name", "args": {"name": "python"}}"#,
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(event(text), expected);
        }
    }

    #[test]
    fn metadata_that_no_answer_reads_is_left_out() {
        let mut redaction = Redaction::default();
        for (key, value, expected) in [
            ("host_name", "node17", None),
            ("traceName", "/home/me/trace.json", None),
            ("my_key", "hunter2", None),
            ("displayTimeUnit", "ms", Some(r#""ms""#)),
            ("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64", Some(r#""max_split_size_mb:64""#)),
            ("PYTORCH_CUDA_ALLOC_CONF", "https://me@x/", Some(r#""""#)),
            (
                "distributedInfo",
                r#"{"backend": "nccl", "rank": 0}"#,
                Some(r#"{"backend": "nccl", "rank": 0}"#),
            ),
        ] {
            assert_eq!(redaction.value(key, value).as_deref(), expected, "{key}");
        }
        let recording = r#"{"schema": "xmem.recording.1", "environment": {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"},
            "cudnn": {"library": "/home/me/venv/libcudnn.so.9", "release": "9.19.0"}, "notes": ["weights of me"],
            "ended": {"reason": "exception", "detail": "E: postgres://me:hunter2@db/x", "needed": 7},
            "models": [{"class": "__main__.Net", "modules": {"fc": "Linear"}}]}"#;
        expect![[r#"{"schema": "xmem.recording.1", "environment": {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}, "cudnn": {"library": "libcudnn.so.9", "release": "9.19.0"}, "notes": [""], "ended": {"reason": "exception", "detail": "", "needed": 7}, "models": [{"class": "__main__.Net", "modules": {"fc": "Linear"}}]}"#]]
        .assert_eq(&redaction.value(KEY, recording).expect("kept"));
    }
}
