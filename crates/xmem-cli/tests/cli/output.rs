//! The destination of results, and that nothing else goes there.

use crate::job::Folder;
use crate::schema_check::check;
use crate::shell::{command, xmem, xmem_with_input};
use serde_json::Value;
use std::process::Stdio;

const REPLAY: &str = include_str!("../../../../docs/schema/xmem.replay.2.schema.json");
const ERROR: &str = include_str!("../../../../docs/schema/xmem.error.1.schema.json");

fn valid(schema: &str, document: &Value) {
    check(&serde_json::from_str(schema).expect("schema"), document).expect("valid");
}

#[test]
fn several_traces_as_lines_with_the_bad_ones_among_them() {
    let folder = Folder::new();
    let [job, bad, silent] = ["job.json", "bad.json", "silent.json"].map(|n| folder.path(n));
    let args = ["replay", &job, &bad, &silent, "-d", "t4-16g", "--format", "jsonl", "--jobs", "1"];
    let ran = xmem(args);
    let lines = ran.lines();
    let schemas: Vec<&str> = lines.iter().filter_map(|l| l["schema"].as_str()).collect();
    assert_eq!(schemas, ["xmem.replay/2", "xmem.error/1", "xmem.replay/2"]);
    valid(REPLAY, &lines[0]);
    valid(ERROR, &lines[1]);
    valid(REPLAY, &lines[2]);
    assert_eq!(lines[1]["trace"], bad);
    assert!(ran.stderr.contains("bad.json"), "{}", ran.stderr);
    assert_eq!(ran.code, 3);
}

#[test]
fn the_worst_of_several_traces_decides() {
    let folder = Folder::new();
    folder.put("other.json", folder.read("job.json").as_bytes());
    let [job, bad, silent, other] =
        ["job.json", "bad.json", "silent.json", "other.json"].map(|n| folder.path(n));
    for (traces, capacity, code) in [
        (vec![&job, &other], "4GiB", 0),
        (vec![&job, &silent], "4GiB", 4),
        (vec![&job, &silent], "500MiB", 1),
        (vec![&bad, &job, &silent], "500MiB", 3),
    ] {
        let args = ["replay", "--capacity", capacity];
        let ran = xmem(args.into_iter().chain(traces.iter().map(|t| t.as_str())));
        assert_eq!(ran.code, code, "{traces:?} {capacity}");
        assert_eq!(ran.stdout.lines().count(), traces.len() + 1, "{}", ran.stdout);
    }
}

#[test]
fn several_traces_as_one_list() {
    let folder = Folder::new();
    folder.put("other.json", folder.read("job.json").as_bytes());
    let (job, other) = (folder.path("job.json"), folder.path("other.json"));
    let mut list = xmem(["replay", &other, &job, "-d", "t4-16g", "--format", "json"]).json();
    assert_eq!(list.as_array().map(Vec::len), Some(2));
    assert_eq!((&list[0]["trace"], &list[1]["trace"]), (&other.into(), &job.as_str().into()));
    list[0]["trace"] = job.into();
    assert_eq!(list[0], list[1]);
}

#[test]
fn standard_input_gives_the_same_answer_as_the_file() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let mut from_file = xmem(["replay", &job, "-d", "t4-16g", "-f", "json"]).json();
    let input = folder.read("job.json");
    let mut from_input =
        xmem_with_input(["replay", "-", "-d", "t4-16g", "-f", "json"], input.as_bytes()).json();
    assert_eq!((&from_file["trace"], &from_input["trace"]), (&Value::from(job), &Value::from("-")));
    from_file["trace"] = Value::Null;
    from_input["trace"] = Value::Null;
    assert_eq!(from_file, from_input);
}

#[test]
fn an_answer_in_a_file_is_whole_and_alone() {
    let folder = Folder::new();
    let (job, out) = (folder.path("job.json"), folder.path("answer.json"));
    folder.put("answer.json", b"old");
    let before = folder.names();
    let ran = xmem(["replay", &job, "-d", "t4-16g", "-f", "json", "-o", &out]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
    let direct = xmem(["replay", &job, "-d", "t4-16g", "-f", "json"]);
    assert_eq!(folder.read("answer.json"), direct.stdout);
    assert_eq!(folder.names(), before);
}

#[test]
fn a_failure_leaves_the_file_as_it_was() {
    let folder = Folder::new();
    let (bad, out) = (folder.path("bad.json"), folder.path("answer.json"));
    folder.put("answer.json", b"old");
    let before = folder.names();
    assert_eq!(xmem(["replay", &bad, "-d", "t4-16g", "-o", &out]).code, 3);
    assert_eq!(folder.read("answer.json"), "old");
    let nowhere = folder.path("no/such/folder.json");
    let ran = xmem(["replay", &folder.path("job.json"), "-d", "t4-16g", "-o", &nowhere]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("cannot write"), "{}", ran.stderr);
    assert_eq!(folder.names(), before);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = command(["devices", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_pipe_gets_no_color_and_no_progress() {
    let folder = Folder::new();
    let args = ["replay".to_owned(), folder.path("job.json"), "-d".into(), "t4-16g".into()];
    let plain = xmem(&args);
    assert!(!plain.stdout.contains('\u{1b}'));
    assert_eq!(plain.stderr, "");
    let output = command(&args).env("NO_COLOR", "1").output().expect("runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), plain.stdout);
}

#[test]
fn verbosity_changes_standard_error_and_quiet_shortens_text() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let normal = xmem(["replay", &job, "-d", "t4-16g"]);
    let verbose = xmem(["-v", "replay", &job, "-d", "t4-16g"]);
    assert_eq!(verbose.stdout, normal.stdout);
    for stage in ["reading", "analyzing", "lowering", "replaying"] {
        assert!(verbose.stderr.contains(stage), "{stage}: {}", verbose.stderr);
    }
    let quiet = xmem(["replay", &job, "-d", "t4-16g", "-q"]);
    assert_eq!(quiet.stdout.lines().count(), 1);
    assert!(quiet.stdout.starts_with("FITS "));
    let output = command(["replay", &job, "-d", "t4-16g"]).env("XMEM_LOG", "xmem=debug").output();
    let stderr = String::from_utf8(output.expect("runs").stderr).expect("UTF-8");
    assert!(stderr.contains("replaying"), "{stderr}");
}
