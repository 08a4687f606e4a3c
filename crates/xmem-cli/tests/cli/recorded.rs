//! Recorded traces through the whole pipeline.

use crate::schema_check::check;
use crate::shell::{xmem, xmem_with_input};
use serde_json::Value;

const REPLAY: &str = include_str!("../../../../docs/schema/xmem.replay.2.schema.json");
const SMALL: [&str; 3] = ["gpt2_adamw", "mlp_adam", "resnet18_sgdm"];

pub(crate) fn trace(name: &str) -> String {
    format!("{}/../../traces/{name}/trace.json.zst", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn recorded_jobs_get_valid_and_plausible_answers() {
    let schema: Value = serde_json::from_str(REPLAY).expect("schema");
    let traces = SMALL.map(trace);
    let args = ["replay", "-d", "rtx3060-12g", "-f", "jsonl", "--explain", "--min-capacity"];
    let ran = xmem(args.into_iter().chain(traces.iter().map(String::as_str)));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for answer in ran.lines() {
        check(&schema, &answer).expect("valid");
        let bytes = |pointer: &str| answer.pointer(pointer).and_then(Value::as_u64).expect("bytes");
        assert_eq!(answer["verdict"], "fits");
        assert_eq!(answer["iterations"]["of"], 3);
        assert!(bytes("/peak/requested_bytes") <= bytes("/peak/allocated_bytes"));
        assert!(bytes("/peak/allocated_bytes") <= bytes("/peak/reserved_bytes"));
        assert!(bytes("/by_role/parameter") > 0);
        assert!(bytes("/min_capacity_bytes") <= bytes("/peak/device_bytes"));
        let roles = answer["by_role"].as_object().expect("object").values();
        let sum: u64 = roles.filter_map(Value::as_u64).sum();
        assert_eq!(sum, bytes("/peak/allocated_bytes"));
        let curve = answer["curve"]["allocated_bytes"].as_array().expect("list");
        let top = curve.iter().filter_map(Value::as_u64).max();
        assert_eq!(top, Some(bytes("/peak/allocated_bytes")));
        assert!(answer["peak"]["at"]["line"].is_string());
    }
}

#[test]
fn the_answer_does_not_depend_on_the_number_of_threads() {
    let trace = trace("gpt2_adamw");
    let with = |threads: &str| {
        xmem(["replay", &trace, "-d", "t4-16g", "-f", "json", "--threads", threads]).stdout
    };
    let one = with("1");
    assert_eq!(one, with("2"));
    assert_eq!(one, with("7"));
}

#[test]
fn compressed_input_may_come_through_a_pipe() {
    let path = trace("mlp_adam");
    let bytes = std::fs::read(&path).expect("recorded trace");
    let piped = xmem_with_input(["replay", "-", "-d", "t4-16g", "-f", "json"], &bytes).json();
    let direct = xmem(["replay", &path, "-d", "t4-16g", "-f", "json"]).json();
    assert_eq!(piped["peak"], direct["peak"]);
    assert_eq!(piped["curve"], direct["curve"]);
}
