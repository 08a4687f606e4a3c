//! Inputs, threads and memory within bounds.

use crate::job::{self, Folder};
use crate::recorded;
use crate::shell::{command, xmem, xmem_with_input};
use serde_json::{Value, json};
use std::io::Read;
use std::process::Stdio;

const BOMB: u64 = 200 << 20;

fn zstd(from: impl Read) -> Vec<u8> {
    zstd::encode_all(from, 3).expect("compressed")
}

#[test]
fn small_files_that_inflate_without_end_are_refused_and_the_message_says_how_to_raise_the_limit() {
    let folder = Folder::empty();
    let spaces = || std::io::repeat(b' ').take(BOMB);
    folder.put("trace.json.zst", &zstd(b"{\"traceEvents\": [".chain(spaces())));
    folder.put("ops.json.zst", &zstd(b"[".chain(spaces())));
    folder.put("snapshot.pickle.zst", &zstd(b"\x80\x04X\x00\x00\x00\x0f".chain(spaces())));
    let [trace, ops, snapshot] =
        ["trace.json.zst", "ops.json.zst", "snapshot.pickle.zst"].map(|name| folder.path(name));
    for args in [
        &["replay", &trace, "--capacity", "1GiB"][..],
        &["replay", &trace, &trace, "--capacity", "1GiB", "-f", "csv"],
        &["inspect", &trace],
        &["validate", &trace, "--snapshot", &snapshot, "--capacity", "1GiB"],
        &["simulate", &ops],
        &["snapshot", "info", &snapshot],
        &["snapshot", "replay", &snapshot],
    ] {
        let ran = xmem(args);
        assert_eq!(ran.code, 3, "{args:?}: {}", ran.stderr);
        let words =
            ran.stderr.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert!(words.contains("more than 250 times its size"), "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("damaged"), "{}", ran.stderr);
    }
    let raised = xmem(["simulate", &ops, "--max-input", "1GiB"]);
    assert!(raised.stderr.contains("line 1, column"), "{}", raised.stderr);
    let ran = xmem(["inspect", &trace]);
    assert!(ran.stderr.contains("--max-input"), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn devices_that_never_end_are_read_as_far_as_an_input_may_be_long() {
    let folder = Folder::new();
    let (job, zero) = (folder.path("job.json"), "/dev/zero");
    let gib = ["--capacity", "1GiB"];
    for (args, said) in [
        (&["replay", zero, gib[0], gib[1]][..], "not a profiler trace"),
        (&["inspect", zero], "not a profiler trace"),
        (&["simulate", zero], "not a list of operations"),
        (&["snapshot", "info", zero], "not a memory snapshot"),
        (&["snapshot", "replay", zero], "not a memory snapshot"),
        (&["validate", &job, "--snapshot", zero, gib[0], gib[1]], "not a memory snapshot"),
        (&["replay", &job, "--device-file", zero], "more than 1.00 MiB"),
        (&["replay", "@/dev/zero", gib[0], gib[1]], "more than 16.00 MiB"),
    ] {
        let ran = xmem(args);
        assert_ne!(ran.code, 0, "{args:?}");
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_that_no_program_writes_to_is_given_up() {
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs");
    assert!(made.success());
    let ran = xmem(["inspect", &pipe]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("no program has opened it for writing"), "{}", ran.stderr);
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, job::trace())
    });
    assert_eq!(xmem(["replay", &pipe, "--capacity", "1GiB"]).code, 0);
    writer.join().expect("ends").expect("written");
}

#[test]
fn numbers_of_threads_that_no_machine_has_are_lowered_with_a_note() {
    let folder = Folder::new();
    let job = folder.path("job.json");
    let usual = xmem(["replay", &job, "--capacity", "1GiB"]).stdout;
    for option in ["--threads", "--jobs"] {
        let ran = xmem(["replay", &job, "--capacity", "1GiB", option, "300000"]);
        assert_eq!((ran.code, &ran.stdout), (0, &usual), "{}", ran.stderr);
        let note = format!("note: {option} 300000 is more than");
        assert!(ran.stderr.contains(&note), "{}", ran.stderr);
    }
    for option in ["--threads", "--jobs"] {
        for (number, said) in [
            ("0", "expected a whole number from 1 up"),
            ("-1", "expected a whole number from 1 up"),
            ("9".repeat(30).as_str(), "too large"),
        ] {
            let ran = xmem(["replay", &job, "--capacity", "1GiB", option, number]);
            assert_eq!(ran.code, 2);
            assert!(ran.stderr.contains(said), "{}", ran.stderr);
        }
    }
    let ran = xmem(["profile", "--steps", "0", "--", "true"]);
    assert!(ran.stderr.contains("expected a whole number from 1 up"), "{}", ran.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn with_little_memory_a_good_file_is_read_by_fewer_threads_and_never_called_damaged() {
    let trace = recorded::trace("mlp_adam");
    let usual = xmem(["replay", &trace, "-d", "t4-16g", "--threads", "1"]).stdout;
    let mut answered = 0;
    for mib in [20, 40, 60, 80, 100, 150, 200, 300, 400, 800] {
        let limit = format!("ulimit -v {}", mib * 1024);
        let program = command(["replay", &trace, "-d", "t4-16g", "--threads", "8"]);
        let mut shell = std::process::Command::new("sh");
        let run = format!("{limit} && exec \"$@\"");
        shell.args(["-c", &run, "sh"]).arg(program.get_program()).args(program.get_args());
        shell.env("XMEM_CUDNN", "model").env("COLUMNS", "100").env_remove("XMEM_LOG");
        let ran = shell.stdin(Stdio::null()).output().expect("runs");
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(!said.contains("damaged") && !said.contains("internal error"), "{mib} MiB: {said}");
        if ran.status.success() {
            assert_eq!(String::from_utf8_lossy(&ran.stdout), usual, "{mib} MiB");
            answered += 1;
        }
    }
    assert!(answered > 0, "some of the limits are enough");
}

#[test]
fn the_result_of_a_simulation_grows_with_the_list_and_not_with_its_square() {
    let ops = |count: u64| {
        let ops: Vec<Value> =
            (0..count).map(|id| json!({"op": "alloc", "id": id, "size": 1 << 20})).collect();
        serde_json::to_vec(&ops).expect("JSON")
    };
    let length = |count, rest: &[&str]| {
        let args = ["simulate", "-", "--format", "json", "--capacity", "40GiB"];
        let ran = xmem_with_input(args.iter().chain(rest), &ops(count));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout.len()
    };
    let (once, twice) = (length(500, &[]), length(1000, &[]));
    assert!(twice < 3 * once, "{once} and {twice} bytes");
    assert!(length(1000, &["--segments", "every"]) > 10 * twice, "the detail is there on request");
}

/// Only root may become another user, whose processes a limit can count.
#[cfg(target_os = "linux")]
#[test]
fn where_no_thread_may_be_started_a_good_file_is_read_without() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    const NOBODY: u32 = 65534;
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    if !is_root {
        return;
    }
    let folder = Folder::empty();
    folder.install(env!("CARGO_BIN_EXE_xmem"), "xmem");
    folder.install(&recorded::trace("mlp_adam"), "trace.json.zst");
    let [program, trace] = ["xmem", "trace.json.zst"].map(|name| folder.path(name));
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path("."), all).expect("allowed");
    let usual = xmem(["replay", &trace, "-d", "t4-16g"]);
    for jobs in [&[][..], &["--jobs", "4", &program]] {
        let mut shell = Command::new("bash");
        shell.args(["-c", "ulimit -u 1 && exec \"$@\"", "bash", &program]);
        shell.args(["replay", &trace, "-d", "t4-16g", "--threads", "8"]).args(jobs);
        shell
            .env("XMEM_CUDNN", "model")
            .env("COLUMNS", "100")
            .env("HOME", "/")
            .uid(NOBODY)
            .gid(NOBODY);
        let ran: crate::shell::Ran = shell.stdin(Stdio::null()).output().expect("runs").into();
        assert!(
            !ran.stderr.contains("damaged") && !ran.stderr.contains("internal error"),
            "{}",
            ran.stderr
        );
        if jobs.is_empty() {
            assert_eq!((ran.code, &ran.stdout), (0, &usual.stdout), "{}", ran.stderr);
        } else {
            assert_eq!(ran.code, 3, "the program is not a trace: {}", ran.stderr);
        }
    }
}
