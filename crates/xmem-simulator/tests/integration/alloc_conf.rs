//! Option strings, against what nine releases of PyTorch made of them. `data/README.md` tells their
//! origin.

#![expect(clippy::disallowed_methods, reason = "the recording is a file")]

use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use xmem_simulator::{AllocConf, ConfError};
use xmem_types::TorchVersion;

/// For each release, each option string with its settings, or with the message of the refusal.
fn recorded() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/conf/recorded.json.zst");
    let packed = std::fs::read(path).expect("readable");
    let json = zstd::decode_all(&packed[..]).expect("zstd");
    serde_json::from_slice(&json).expect("JSON")
}

#[test]
fn option_strings_are_accepted_refused_and_understood_as_by_each_release() {
    let mut failures = String::new();
    let mut compared = 0;
    let recorded = recorded();
    for (release, confs) in recorded.as_object().expect("releases") {
        let version: TorchVersion = release.parse().expect("a release");
        for (text, want) in confs.as_object().expect("option strings") {
            compared += 1;
            if let Some(difference) = difference(text, version, want) {
                writeln!(failures, "{release} `{text}`: {difference}").expect("a string");
            }
        }
    }
    assert!(compared > 1000, "only {compared} option strings");
    assert!(failures.is_empty(), "\n{failures}");
}

fn difference(text: &str, release: TorchVersion, want: &Value) -> Option<String> {
    let got = match (AllocConf::parse(text, release), want) {
        (Err(ConfError::NotSimulated { .. }), Value::Object(_)) | (Err(_), Value::String(_)) => {
            return None;
        }
        (Err(error), _) => return Some(format!("refused ({error}), PyTorch accepts it")),
        (Ok(_), Value::String(message)) => return Some(format!("PyTorch refuses it: {message}")),
        (Ok(got), _) => got.config,
    };
    let settings = want.as_object().expect("settings");
    let max_split = got.max_split_size.map_or(-1, |size| size.get().cast_signed());
    let divisions = got.roundup_power2_divisions.0;
    for (name, got) in [
        ("max_split_size", max_split.into()),
        ("garbage_collection_threshold", got.garbage_collection_threshold.unwrap_or(0.0).into()),
        ("expandable_segments", got.expandable_segments.into()),
        ("divisions", divisions.to_vec().into()),
    ] as [(&str, Value); 4]
    {
        if let Some(want) = settings.get(name)
            && *want != got
        {
            return Some(format!("{name} is {got}, PyTorch has {want}"));
        }
    }
    None
}
