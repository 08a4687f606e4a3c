//! `--snapshot`: the predicted run as a file for PyTorch's viewers.
//!
//! The checks with Python and PyTorch's `_memory_viz.py` need `python3` on the PATH, and for the
//! latter an installed PyTorch or the path of that file in `XMEM_MEMORY_VIZ`. Checks without these
//! are skipped with a message.

use crate::job::Folder;
use crate::recorded::trace;
use crate::shell::{Ran, xmem};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use xmem_snapshot::{Action, DeviceIndex, Limits, Snapshot, StackId};

const GPU: DeviceIndex = DeviceIndex(0);

fn read(folder: &Folder, name: &str) -> Snapshot {
    let bytes = std::fs::read(folder.path(name)).expect("written");
    let (snapshot, odd) = xmem_snapshot::read(&bytes, &Limits::default()).expect("a snapshot");
    assert!(odd.is_empty(), "{odd:?}");
    snapshot
}

fn bytes(answer: &Value, pointer: &str) -> u64 {
    answer.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}"))
}

fn replay(trace: &str, file: &str, more: &[&str]) -> Ran {
    xmem(["replay", trace, "-f", "json", "--snapshot", file].iter().chain(more))
}

#[test]
fn the_predicted_run_is_what_the_answer_is_about() {
    let folder = Folder::new();
    let out = folder.path("run.pickle");
    for name in ["mlp_adam", "gpt2_adamw", "resnet18_sgdm"] {
        for more in [&[][..], &["--alloc-conf", "expandable_segments:True"]] {
            let trace = trace(name);
            let ran = replay(&trace, &out, &[&["-d", "rtx3060-12g"], more].concat());
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            let answer = ran.json();
            let snapshot = read(&folder, "run.pickle");
            let (usage, odd) = snapshot.usage(GPU);
            assert!(odd.is_empty(), "{odd:?}");
            assert_eq!(usage.reserved.peak.get(), bytes(&answer, "/peak/reserved_bytes"));
            assert!(usage.requested.peak.get() <= bytes(&answer, "/peak/allocated_bytes"));
            assert!(usage.requested.peak.get() >= bytes(&answer, "/peak/requested_bytes"));
            let requests = snapshot.requests(GPU).requests.len() as u64;
            assert_eq!(requests, bytes(&answer, "/allocator/requests"));
            let conf = more.last().copied().unwrap_or_default();
            let settings = snapshot.allocator_settings.as_ref().expect("settings");
            assert_eq!(settings.text.as_deref(), Some(conf));
            assert!(snapshot.trace(GPU).iter().all(|entry| entry.stack != StackId::EMPTY));
        }
    }
}

#[test]
fn it_comes_beside_the_answer_and_whole() {
    let folder = Folder::new();
    let (job, out) = (folder.path("job.json"), folder.path("run.pickle"));
    let plain = xmem(["replay", &job, "-d", "t4-16g"]);
    let before = folder.names().len();
    let ran = xmem(["replay", &job, "-d", "t4-16g", "--snapshot", &out]);
    assert_eq!((ran.code, &ran.stdout), (plain.code, &plain.stdout));
    assert_eq!(folder.names().len(), before + 1);
    for message in [&out, "trace_plot", "https://pytorch.org/memory_viz"] {
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
    let first = std::fs::read(&out).expect("written");
    let quiet = xmem(["replay", &job, "-d", "t4-16g", "--snapshot", &out, "-q"]);
    assert_eq!(quiet.stderr, "");
    assert_eq!(std::fs::read(&out).expect("written again"), first);
}

#[test]
fn a_job_that_does_not_fit_ends_with_the_failed_allocation() {
    let folder = Folder::new();
    let out = folder.path("run.pickle");
    let job = folder.path("job.json");
    let ran = replay(&job, &out, &["--capacity", "500MiB"]);
    assert_eq!(ran.code, 1);
    let snapshot = read(&folder, "run.pickle");
    let last = snapshot.trace(GPU).last().expect("an entry");
    assert!(matches!(last.action, Action::OutOfMemory { .. }), "{last:?}");

    let ran = replay(&job, &out, &["--capacity", "500MiB", "--snapshot-past-oom"]);
    let snapshot = read(&folder, "run.pickle");
    assert!(snapshot.trace(GPU).len() > 10);
    let reserved = snapshot.usage(GPU).0.reserved.peak.get();
    assert_eq!(reserved, bytes(&ran.json(), "/peak/reserved_bytes"));
}

#[test]
fn what_cannot_be_written_is_refused_and_leaves_the_file_as_it_was() {
    let folder = Folder::new();
    let [job, bad] = ["job.json", "bad.json"].map(|n| folder.path(n));
    folder.put("run.pickle", b"old");
    let out = folder.path("run.pickle");
    let nowhere = folder.path("no/such/run.pickle");
    let asynchronous = ["--allocator", "cudaMallocAsync"];
    for (args, code, said) in [
        (vec![&job, &bad, "--snapshot", &out], 2, "2 traces"),
        ([vec![&*job, "--snapshot", &out], asynchronous.into()].concat(), 2, "no segments"),
        (vec![&bad, "--snapshot", &out], 3, "bad.json"),
        (vec![&job, "--snapshot", &nowhere], 3, "cannot write"),
        (vec![&job, "--snapshot-past-oom"], 2, "--snapshot <FILE>"),
    ] {
        let names = folder.names();
        let ran = xmem(["replay", "-d", "t4-16g"].into_iter().chain(args.iter().copied()));
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        assert_eq!(folder.read("run.pickle"), "old");
        assert_eq!(folder.names(), names);
    }
}

#[test]
fn python_and_pytorchs_own_tool_open_it() {
    let folder = Folder::new();
    let out = folder.path("run.pickle");
    for (name, more) in [
        ("gpt2_adamw", &["-d", "rtx3060-12g"][..]),
        ("gpt2_adamw", &["--capacity", "600MiB"]),
        ("resnet18_sgdm", &["-d", "rtx3060-12g", "--alloc-conf", "expandable_segments:True"]),
        ("mlp_adam", &["-d", "rtx3060-12g", "--allocator", "uncached"]),
        ("mlp_adam", &["-d", "rtx3060-12g", "--allocator", "tf-bfc-growth"]),
    ] {
        replay(&trace(name), &out, more);
        let Some(said) = python("open_snapshot.py", &out) else { return };
        let (usage, _) = read(&folder, "run.pickle").usage(GPU);
        let expected = json!({
            "requested_peak": usage.requested.peak.get(),
            "reserved_peak": usage.reserved.peak.get(),
        });
        assert_eq!(said, expected, "{name} {more:?}");
    }
}

/// The output of a script of this folder; `None` without Python.
#[expect(clippy::print_stderr, reason = "says why it checks less")]
fn python(script: &str, file: &str) -> Option<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli").join(script);
    let output = match Command::new("python3").arg(script).arg(file).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: python3 does not start: {error}");
            return None;
        }
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    eprint!("{errors}");
    Some(serde_json::from_slice(&output.stdout).expect("Python writes JSON"))
}
