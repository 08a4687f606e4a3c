//! What must not be in a trace that is shared, nor in what is said about it.

use crate::job::Folder;
use crate::profile::{folder, inflated, profile, unsealed};
use crate::recorded::trace;
use crate::shell::xmem;
use serde_json::Value;

/// A recording by `xmem profile`.
const RECORDED: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../xtask/attack/data/profiled_transformer.json.zst");

/// The figures of an answer.
fn figures(trace: &str) -> Value {
    let ran = xmem(["replay", trace, "-d", "rtx3060-12g", "-f", "json", "--cudnn", "model"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut answer = ran.json();
    let peak = answer["peak"].as_object_mut().expect("a peak");
    // Where it is has lines with other files, and annotations.
    peak.retain(|_, value| value.is_number());
    assert!(peak.len() > 3, "{peak:?}");
    serde_json::json!([answer["verdict"], answer["peak"], answer["by_role"], answer["iterations"]])
}

#[test]
fn a_redacted_trace_gives_the_same_figures() {
    let folder = Folder::new();
    let recorded = [trace("mlp_adam"), trace("gpt2_adamw"), trace("resnet18_sgdm")];
    for (row, from) in recorded.iter().map(String::as_str).chain([RECORDED]).enumerate() {
        let copy = folder.path(&format!("{row}.json.zst"));
        let ran = xmem(["inspect", from, "--redact", &copy]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{from}");
        assert_eq!(figures(&copy), figures(from), "{from}");
        // Nothing is left that a second time would change.
        let again = folder.path("again.json.zst");
        assert_eq!(xmem(["inspect", &copy, "--redact", &again]).code, 0, "{from}");
        let name = format!("{row}.json.zst");
        assert_eq!(inflated(&folder, "again.json.zst"), inflated(&folder, &name), "{from}");
    }
}

#[test]
fn no_secret_is_in_a_redacted_trace_nor_in_what_is_said_about_it() {
    let folder = Folder::new();
    let events = r#"{"ph": "X", "cat": "python_function", "name": "/home/user-9d2a/host-4b1c/train.py(3): main", "pid": 1,
        "tid": 1, "ts": 1, "dur": 9, "args": {"Python id": 1, "Python parent id": null}},
      {"ph": "X", "cat": "user_annotation", "name": "GET https://host-4b1c/argument-77e0", "pid": 1, "tid": 1, "ts": 1, "dur": 8},
      {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 2, "dur": 1, "args":
        {"Concrete Inputs": ["value-0c33"], "Call stack": "/home/user-9d2a/x.py", "Input Dims": [[2, 2]]}},
      {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 1, "args": {"name": "train --token argument-77e0"}}"#;
    let text = format!(
        r#"{{"schemaVersion": 1, "host_name": "host-4b1c", "job": "argument-77e0", "xmem_recording":
        {{"schema": "xmem.recording.1", "torch": "2.11.0", "stacks": true, "environment":
        {{"PYTORCH_CUDA_ALLOC_CONF": "https://user-9d2a:value-0c33@host-4b1c/"}}, "cudnn":
        {{"library": "/home/user-9d2a/libcudnn.so.9", "release": "9.19.0"}}, "notes": ["weights of /home/user-9d2a are not there"],
        "ended": {{"reason": "exception", "detail": "E: value-0c33"}}}},
        "traceEvents": [{events}], "traceName": "/home/user-9d2a/trace.json"}}"#
    );
    folder.put("secret.json", text.as_bytes());
    let [secret, copy] = ["secret.json", "copy.json"].map(|name| folder.path(name));
    let ran = xmem(["inspect", &secret, "--redact", &copy]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut said = vec![("trace", folder.read("copy.json")), ("inspect", ran.stdout)];
    for (what, arguments) in [
        ("inspect in JSON", &["inspect", &copy, "-f", "json"][..]),
        ("replay", &["replay", &copy, "-d", "t4-16g"]),
        ("replay in JSON", &["replay", &copy, "-d", "t4-16g", "-f", "json"]),
        ("report", &["report", &copy, "-d", "t4-16g", "--format", "folded"]),
    ] {
        let ran = xmem(arguments.iter().copied());
        said.push((what, ran.stdout + &ran.stderr));
    }
    for (what, text) in said {
        for secret in ["user-9d2a", "host-4b1c", "argument-77e0", "value-0c33"] {
            assert!(!text.contains(secret), "{secret} is in {what}: {text}");
        }
    }
}

#[test]
fn the_copy_is_not_written_over_its_source() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let ran = xmem(["inspect", &job, "--redact", &job]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}

#[test]
fn the_folder_of_a_python_file_outside_of_the_search_path_was_in_the_trace() {
    let trace = r#"{"xmem_recording": {}, "traceEvents": [
        {"name": "/home/user-9d2a/lib/net.py(3): forward"}]}"#;
    let folder = folder(&format!("start(3)\nexport(trace='''{trace}''')"));
    let ran = profile(&folder, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let expected = trace.replace("/home/user-9d2a/lib/", "");
    assert_eq!(unsealed(&folder, "trace.json.zst"), expected);
}
