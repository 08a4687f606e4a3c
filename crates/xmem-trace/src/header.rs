//! The top-level keys of a trace file.

use crate::columns::{DeviceProperties, TraceHeader};
use crate::number::Scalar;
use crate::rawtext::compact_into;
use serde_json::Value;
use xmem_types::{Bytes, Nanos, printable};

/// Options of the profiler that the file lists only when they are on
/// (torch/profiler/profiler.py, start_trace; libkineto, output_json.cpp).
const OPTIONS: [&str; 5] =
    ["record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops"];

impl TraceHeader {
    /// Takes in one top-level key with the raw text of its value. A repeated key replaces the
    /// earlier one. Names and values are kept as printable text.
    pub(crate) fn take(&mut self, key: &str, raw: &str) {
        let raw = raw.trim();
        match key {
            "baseTimeNanoseconds" => {
                if let Some(base) = scalar(raw).and_then(|v| integer(&v)) {
                    self.base_time = Some(Nanos(base));
                }
            }
            "schemaVersion" => self.schema_version = scalar(raw).and_then(|v| integer(&v)),
            "deviceProperties" => {
                self.device_properties = device_properties(raw);
                self.devices = device_names(&self.device_properties);
            }
            option if OPTIONS.contains(&option) => {
                self.options.retain(|known| known != option);
                if matches!(raw, "1" | "true") {
                    self.options.push(option.to_owned());
                }
            }
            _ => {
                let text = scalar(raw).unwrap_or_else(|| {
                    let mut text = String::with_capacity(raw.len());
                    compact_into(raw, &mut text);
                    text
                });
                let (key, text) = (printable(key), printable(&text).into_owned());
                match self.extra.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, known)) => *known = text,
                    None => self.extra.push((key.into_owned(), text)),
                }
            }
        }
    }
}

/// The text of a string, number or literal; `None` for objects, arrays and text that is not JSON.
fn scalar(raw: &str) -> Option<String> {
    match raw.as_bytes().first()? {
        b'{' | b'[' => None,
        b'"' => serde_json::from_str(raw).ok(),
        _ => Some(raw.to_owned()),
    }
}

fn integer(text: &str) -> Option<i64> {
    Scalar::from_number(text).i64()
}

fn device_properties(raw: &str) -> Vec<DeviceProperties> {
    let Ok(Value::Array(devices)) = serde_json::from_str(raw) else {
        return Vec::new();
    };
    let of_device = |device: &Value| {
        let number = |key: &str| device.get(key).and_then(Value::as_u64);
        let version = |key: &str| number(key).and_then(|n| u8::try_from(n).ok());
        DeviceProperties {
            index: number("id").and_then(|n| i16::try_from(n).ok()),
            name: device
                .get("name")
                .and_then(Value::as_str)
                .map(|name| printable(name).into_owned()),
            memory: number("totalGlobalMem").map(Bytes),
            compute_capability: version("computeMajor").zip(version("computeMinor")),
            multiprocessors: number("numSms").and_then(|n| u32::try_from(n).ok()),
        }
    };
    devices.iter().map(of_device).collect()
}

fn device_names(devices: &[DeviceProperties]) -> Vec<String> {
    let name = |(row, device): (usize, &DeviceProperties)| {
        device.name.clone().unwrap_or_else(|| format!("device {row}"))
    };
    devices.iter().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_top_level_key_finds_its_place() {
        let mut header = TraceHeader::default();
        for (key, raw) in [
            ("schemaVersion", "1"),
            (
                "deviceProperties",
                r#"[{"id": 0, "name": "Tesla V100", "totalGlobalMem": 16944398336, "computeMajor": 7,
                    "computeMinor": 0, "numSms": 80}, {"id": 1}]"#,
            ),
            ("with_stack", " 1"),
            ("record_shapes", "0"),
            ("baseTimeNanoseconds", "1790857026000000000"),
            ("trace_id", r#""7E \"6""#),
            ("distributedInfo", r#"{"backend": "nccl",  "rank": 0}"#),
            ("note", "NaN"),
            ("trace_id", r#""again""#),
            ("\u{1b}[8m", r#""\u001b[0m\u202e""#),
        ] {
            header.take(key, raw);
        }
        assert_eq!(
            header,
            TraceHeader {
                base_time: Some(Nanos(1_790_857_026_000_000_000)),
                schema_version: Some(1),
                options: vec!["with_stack".into()],
                devices: vec!["Tesla V100".into(), "device 1".into()],
                device_properties: vec![
                    DeviceProperties {
                        index: Some(0),
                        name: Some("Tesla V100".into()),
                        memory: Some(Bytes(16_944_398_336)),
                        compute_capability: Some((7, 0)),
                        multiprocessors: Some(80),
                    },
                    DeviceProperties { index: Some(1), ..DeviceProperties::default() },
                ],
                extra: vec![
                    ("trace_id".into(), "again".into()),
                    ("distributedInfo".into(), r#"{"backend":"nccl","rank":0}"#.into()),
                    ("note".into(), "NaN".into()),
                    ("\\u001b[8m".into(), "\\u001b[0m\\u202e".into()),
                ],
            }
        );
    }
}
