//! Recordings of a GPU as inputs of the commands.

use crate::job::Folder;
use crate::recorded::trace;
use crate::schema_check::check;
use crate::shell::{xmem, xmem_with_input};
use serde_json::Value;

const REPLAY: &str = include_str!("../../../../docs/schema/xmem.replay.2.schema.json");
const INSPECT: &str = include_str!("../../../../docs/schema/xmem.inspect.2.schema.json");

fn gpu_trace(name: &str) -> String {
    format!("{}/../xmem/tests/gpu/{name}.json.zst", env!("CARGO_MANIFEST_DIR"))
}

fn snapshot(name: &str) -> String {
    format!("{}/../../traces/{name}/snapshot.pickle.zst", env!("CARGO_MANIFEST_DIR"))
}

fn valid(schema: &str, document: &Value) {
    let schema: Value = serde_json::from_str(schema).expect("schema");
    check(&schema, document).expect("valid");
}

#[test]
fn traces_and_snapshots_of_a_gpu_are_answered_side_by_side_with_cpu_traces() {
    let inputs = [trace("mlp_adam"), gpu_trace("mlp_adam"), snapshot("mlp_adam")];
    let args = ["replay", "-d", "rtx3060-12g", "-f", "jsonl"];
    let ran = xmem(args.into_iter().chain(inputs.iter().map(String::as_str)));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answers = ran.lines();
    for answer in &answers {
        valid(REPLAY, answer);
        assert_eq!(answer["verdict"], "fits");
    }
    let source = |input: &str| {
        let of = answers.iter().find(|answer| answer["trace"] == *input).expect("answered");
        (of["recorded"]["source"].clone(), of["peak"]["allocated_bytes"].clone())
    };
    assert_eq!(source(&inputs[0]).0, Value::Null);
    assert_eq!(source(&inputs[1]).0, "trace");
    assert_eq!(source(&inputs[2]).0, "snapshot");
    assert_eq!(source(&inputs[1]).1, source(&inputs[2]).1);
}

#[test]
fn the_content_decides_and_not_the_name() {
    let folder = Folder::new();
    let bytes = std::fs::read(snapshot("mlp_adam")).expect("a snapshot");
    let pickle = zstd::decode_all(&bytes[..]).expect("zstd");
    folder.put("run.json", &pickle);
    let named = xmem(["replay", &folder.path("run.json"), "-d", "t4-16g", "-f", "json"]);
    let piped = xmem_with_input(["replay", "-", "-d", "t4-16g", "-f", "json"], &bytes);
    let (named, piped) = (named.json(), piped.json());
    assert_eq!(named["recorded"]["source"], "snapshot");
    assert_eq!(named["curve"], piped["curve"]);
}

#[test]
fn other_options_of_the_allocator_apply_to_a_snapshot() {
    let path = snapshot("gpt2_adamw");
    let with = |more: &[&str]| {
        let args = ["replay", &path, "-d", "rtx3060-12g", "-f", "json"];
        xmem(args.iter().chain(more)).json()
    };
    let (usual, other) = (with(&[]), with(&["--alloc-conf", "expandable_segments:True"]));
    assert_eq!(usual["recorded"]["peak_reserved_bytes"], usual["peak"]["reserved_bytes"]);
    assert!(other["peak"]["reserved_bytes"].as_u64() < usual["peak"]["reserved_bytes"].as_u64());
}

#[test]
fn inspect_check_and_text_say_what_was_recorded() {
    for (path, gpu) in [
        (gpu_trace("mlp_adam"), "NVIDIA GeForce RTX 3060 (8.6), profiler trace"),
        (snapshot("mlp_adam"), "a GPU that the file does not name, memory snapshot"),
    ] {
        let inspected = xmem(["inspect", &path, "-f", "json"]);
        valid(INSPECT, &inspected.json());
        for command in
            [&["inspect", path.as_str()][..], &["replay", path.as_str(), "-d", "rtx3060-12g"]]
        {
            let ran = xmem(command);
            let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(&format!("recorded on {gpu}")), "{command:?}: {}", ran.stdout);
        }
        let checked = xmem(["check", &path, "-d", "rtx3060-12g", "--no-config", "--no-cache"]);
        assert_eq!(checked.code, 0, "{} {}", checked.stdout, checked.stderr);
    }
}

#[test]
fn a_snapshot_that_is_cut_off_is_an_error_that_names_the_file() {
    let folder = Folder::new();
    let bytes = std::fs::read(snapshot("mlp_adam")).expect("a snapshot");
    let pickle = zstd::decode_all(&bytes[..]).expect("zstd");
    folder.put("cut.pickle", &pickle[..pickle.len() / 2]);
    let path = folder.path("cut.pickle");
    let ran = xmem(["replay", path.as_str(), "-d", "t4-16g"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("cut.pickle"), "{}", ran.stderr);
}
