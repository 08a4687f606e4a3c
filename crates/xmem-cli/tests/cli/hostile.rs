//! Inputs whose texts try to control the terminal, and inputs that met a bug.

use crate::job::{self, Folder};
use crate::pickle::pickle;
use crate::shell::{Ran, command, xmem};
use serde_json::{Value, json};
use std::process::Stdio;

/// Clears the screen, paints a green verdict, turns the text around, starts a line.
const EVIL: &str =
    "\u{1b}[2J\u{1b}[1;32mFITS\u{1b}[0m\u{9b}8m\u{202e}\u{2066}\u{200f}\u{2028}\u{7f}\r\nFITS";

/// The job, with hostile text in all that a trace names.
fn trace() -> Vec<u8> {
    let mut trace: Value = serde_json::from_slice(&job::trace()).expect("JSON");
    let events = trace["traceEvents"].as_array_mut().expect("list");
    for event in &mut *events {
        let name = event["name"].as_str().expect("named").to_owned();
        let plain =
            name.starts_with("ProfilerStep") || name.contains("Backward") || name == "[memory]";
        if !plain {
            let (start, end) = name.rsplit_once('.').unwrap_or((&name, ""));
            let dot = if end.is_empty() { "" } else { "." };
            event["name"] = json!(format!("{start}{EVIL}{dot}{end}"));
        }
    }
    events.push(
        json!({"ph": "X", "cat": EVIL, "name": EVIL, "ts": 1, "dur": 1, "pid": EVIL, "tid": EVIL}),
    );
    trace["deviceProperties"] = json!([{"name": EVIL}]);
    trace[EVIL] = json!(EVIL);
    trace["xmem_recording"] = json!({
        "schema": "xmem.recording.1", "recorder": EVIL, "torch": EVIL, "python": EVIL,
        "told_device": EVIL, "environment": {EVIL: EVIL, "PYTORCH_CUDA_ALLOC_CONF": EVIL},
        "backends": {EVIL: EVIL}, "notes": [EVIL], "models": [{"class": EVIL}],
        "redirected": [{"what": EVIL, "times": 2}], "ended": {"reason": "exception", "detail": EVIL},
    });
    serde_json::to_vec(&trace).expect("JSON")
}

fn snapshot(settings: &Value) -> Vec<u8> {
    let frames = json!([{"name": EVIL, "filename": EVIL, "line": 7}]);
    let segment = json!({
        "device": 0, "address": 4096, "total_size": 2_097_152, "allocated_size": 512, "active_size": 512,
        "requested_size": 512, "stream": 0, "segment_type": "small", "segment_pool_id": [0, 0],
        "is_expandable": false, "frames": frames,
        "blocks": [
            {"address": 4096, "size": 512, "requested_size": 512, "state": "active_allocated", "frames": frames},
            {"address": 4608, "size": 2_096_640, "requested_size": 0, "state": "inactive", "frames": []},
        ],
    });
    let event = |action: &str, addr: u64, size: u64| json!({"action": action, "addr": addr, "size": size, "stream": 0, "time_us": 1, "frames": frames});
    let history =
        [event("segment_alloc", 4096, 2_097_152), event("alloc", 4096, 512), event(EVIL, 1, 1)];
    pickle(&json!({
        "segments": [segment], "device_traces": [history], "allocator_settings": settings,
        EVIL: 7, "external_annotations": [{"name": EVIL, "stage": EVIL, "device": 0, "time_us": 1}],
    }))
}

/// The folder with everything hostile, and the names of its files.
fn folder() -> (Folder, [String; 5]) {
    let folder = Folder::new();
    let name = |end: &str| format!("{}{end}", EVIL.replace('/', "_"));
    folder.put(&name(".json"), &trace());
    folder.put(&name(".pickle"), &snapshot(&json!({EVIL: EVIL})));
    let settings = json!({"PYTORCH_CUDA_ALLOC_CONF": EVIL, EVIL: EVIL});
    folder.put("conf.pickle", &snapshot(&settings));
    let device = format!("[[device]]\nname = 'x'\ntitle = '{}'\n", EVIL.replace(['\r', '\n'], ""));
    folder.put("device.toml", device.as_bytes());
    folder.put("ops.json", json!({"conf": EVIL, "ops": []}).to_string().as_bytes());
    folder.put(&name("list"), format!("{EVIL}\n{EVIL}.json\n").as_bytes());
    let paths = [name(".json"), name(".pickle"), name(""), name("list"), "device.toml".to_owned()];
    let paths = paths.map(|name| folder.path(&name));
    (folder, paths)
}

/// Characters that no output has, except for line feeds.
fn is_hostile(c: char) -> bool {
    c != '\n' && !xmem::types::is_printable(c)
}

fn check(args: &[&str], ran: &Ran) {
    for (stream, text) in [("standard output", &ran.stdout), ("standard error", &ran.stderr)] {
        if let Some(at) = text.find(is_hostile) {
            let from = text[..at].char_indices().rev().nth(60).map_or(0, |(at, _)| at);
            panic!("{args:?}: {stream} has {:?}: {:?}", text[at..].chars().next(), &text[from..]);
        }
        let forged =
            text.lines().find(|line| line.trim_start().starts_with("FITS") && args[0] != "replay");
        assert_eq!(forged, None, "{args:?}: {text}");
    }
}

#[test]
fn names_that_control_the_terminal_are_shown_as_escapes_by_every_command() {
    let (folder, [trace, snapshot, missing, list, device]) = folder();
    let (conf, ops) = (folder.path("conf.pickle"), folder.path("ops.json"));
    let (all, none) = (folder.path("."), format!("{}/*.none{EVIL}", folder.path(".")));
    let listed = format!("@{list}");
    let gib = ["--capacity", "1GiB"];
    let cases: &[&[&str]] = &[
        &["replay", &trace],
        &["replay", &trace, "--explain", "-v"],
        &["replay", &trace, "-vv"],
        &["replay", &trace, "-q"],
        &["replay", &trace, "--format", "json"],
        &["replay", &trace, "--format", "jsonl"],
        &["replay", &trace, "--format", "csv"],
        &["replay", &trace, "--alloc-conf", EVIL],
        &["replay", &trace, "--no-rule", EVIL],
        &["replay", &trace, "--iterations", EVIL],
        &["replay", &trace, &conf, &ops],
        &["replay", &trace, &conf, "--format", "csv"],
        &["replay", &all],
        &["replay", &missing],
        &["replay", &none],
        &["replay", &listed],
        &["replay", &trace, "-o", &format!("{missing}/{EVIL}")],
        &["inspect", &trace],
        &["inspect", &trace, "--format", "json"],
        &["inspect", &missing],
        &["validate", &trace, "--snapshot", &snapshot],
        &["validate", &trace, "--snapshot", &snapshot, "--format", "json"],
        &["validate", &trace, "--snapshot", &conf],
    ];
    for case in cases {
        let mut args = case.to_vec();
        if args[0] != "inspect" {
            args.extend(gib);
        }
        check(&args, &xmem(&args));
    }
    let cases: &[&[&str]] = &[
        &["replay", &trace, "--device-file", &device],
        &["replay", &trace, "--device-file", &trace],
        &["replay", &trace, "--device-file", &missing],
        &["replay", &trace, "--device", EVIL],
        &["replay", &trace, "--devices", EVIL],
        &["replay", &trace, "--cudnn", EVIL, "-d", "t4-16g"],
        &["replay", &trace, EVIL, &format!("--{EVIL}")],
        &["snapshot", "info", &snapshot],
        &["snapshot", "info", &conf, "--format", "json"],
        &["snapshot", "info", &missing],
        &["snapshot", "info", &trace],
        &["snapshot", "replay", &snapshot],
        &["snapshot", "replay", &snapshot, "-q"],
        &["snapshot", "replay", &snapshot, "--format", "json"],
        &["snapshot", "replay", &conf],
        &["snapshot", "replay", &snapshot, "--alloc-conf", EVIL],
        &["simulate", &ops],
        &["simulate", &ops, "--alloc-conf", "''", "--format", "json"],
        &["simulate", &missing],
        &["simulate", &trace],
        &["profile", "--device-as", EVIL, "--", "true"],
        &["profile", "--then", EVIL, "--", "true"],
        &["profile", "-o", EVIL, "--", &missing],
        &[EVIL],
    ];
    for case in cases {
        check(case, &xmem(*case));
    }
}

#[test]
fn json_keeps_names_that_control_the_terminal_as_escapes() {
    let (_folder, [trace, ..]) = folder();
    let ran = xmem(["replay", &trace, "--capacity", "1GiB", "--format", "json"]);
    assert_eq!(ran.json()["trace"], trace, "the name is found again");
}

#[test]
fn cells_of_csv_are_no_formulas() {
    let folder = Folder::new();
    folder.put("=cmd|' /C calc'!A0.json", &job::trace());
    let run = |rest: &[&str]| {
        let args = ["replay", "=cmd|' /C calc'!A0.json", "--capacity", "1GiB", "--format", "csv"];
        let child = command(args.iter().chain(rest))
            .current_dir(folder.path("."))
            .stdin(Stdio::null())
            .output();
        Ran::from(child.expect("runs"))
    };
    let ran = run(&[]);
    let mut rows = csv::Reader::from_reader(ran.stdout.as_bytes());
    let row = rows.records().next().expect("a row").expect("CSV");
    assert_eq!(&row[0], "'=cmd|' /C calc'!A0.json");
    for cell in &row {
        assert!(!cell.starts_with(['=', '+', '-', '@']) || cell.parse::<f64>().is_ok(), "{cell}");
    }
    for round in 0..2 {
        let ran = run(&["-o", "answers.csv", "--skip-done"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "round {round}");
    }
    assert_eq!(
        folder.read("answers.csv"),
        ran.stdout,
        "an answer is found again, whatever its cells"
    );
}

/// A step that another thread marks after all that the training thread did.
const LATE_STEP: &str = r#"{"traceEvents":[
    {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":0,"dur":5},
    {"ph":"X","cat":"python_function","name":"torch/optim/optimizer.py(939): zero_grad",
     "pid":1,"tid":1,"ts":50,"dur":5,"args":{"Python id":1}},
    {"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":2,"ts":100,"dur":5}]}"#;

#[test]
fn an_iteration_whose_end_lies_before_its_start_is_no_panic() {
    let folder = Folder::empty();
    folder.put("late.json", LATE_STEP.as_bytes());
    folder.put("empty.pickle", &pickle(&json!({"segments": [], "device_traces": [[]]})));
    let (late, snapshot) = (folder.path("late.json"), folder.path("empty.pickle"));
    let replayed = xmem(["replay", &late, "--capacity", "1GiB"]);
    assert_eq!(replayed.code, 4, "{}", replayed.stderr);
    assert_eq!(xmem(["inspect", &late]).code, 0);
    let validated = xmem(["validate", &late, "--snapshot", &snapshot, "--capacity", "1GiB"]);
    assert!(!validated.stderr.contains("panic"), "{}", validated.stderr);
    assert!(!validated.stderr.contains("internal error"), "{}", validated.stderr);
}
