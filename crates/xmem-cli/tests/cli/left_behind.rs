//! Files that a run leaves behind: none, whatever ends it.

use crate::job::Folder;
use crate::profile;
use crate::shell::{Ran, command, xmem};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs the command in a shell that has executed `first`.
pub(crate) fn after(first: &str, folder: &Folder, args: &[&str]) -> Ran {
    let plain = command(args);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{first}; exec \"$0\" \"$@\"")]).arg(plain.get_program());
    shell.args(plain.get_args()).current_dir(folder.path(".")).stdin(Stdio::null());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.output().expect("runs").into()
}

/// A list of operations with a result of megabytes.
fn long_list() -> Vec<u8> {
    let ops: Vec<String> = (0..20_000)
        .flat_map(|id| {
            let alloc = format!(r#"{{"op":"alloc","id":{id},"size":512}}"#);
            [alloc, format!(r#"{{"op":"free","id":{id}}}"#)]
        })
        .collect();
    format!(r#"{{"capacity":1048576,"ops":[{}]}}"#, ops.join(",")).into_bytes()
}

/// Temporary files of xmem, which only their process or a later one removes.
fn temporary_files(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("listable");
    let names = entries.map(|e| e.expect("entry").file_name().into_string().expect("UTF-8"));
    names.filter(|name| name.starts_with(".xmem-")).collect()
}

#[test]
fn a_limit_to_the_size_of_files_is_an_error_and_no_temporary_file_stays() {
    let folder = Folder::new();
    folder.put("list.json", &long_list());
    folder.put("old", b"old");
    let before = folder.names();
    let rows: [(&[&str], &str); 4] = [
        (&["simulate", "list.json", "-f", "jsonl", "-o", "old"], "cannot write `old`"),
        (&["replay", "job.json", "--capacity", "4GiB", "-o", "old"], "cannot write `old`"),
        (&["replay", "job.json", "--capacity", "4GiB", "--snapshot", "old"], "cannot write `old`"),
        (
            &[
                "replay",
                "job.json",
                "silent.json",
                "--capacity",
                "4GiB",
                "-f",
                "jsonl",
                "-o",
                "new",
            ],
            "cannot append to `new`",
        ),
    ];
    for (args, what) in rows {
        let ran = after("ulimit -f 0", &folder, args);
        assert_eq!(ran.code, 3, "{args:?}: {}", ran.stderr);
        for text in [what, "which `ulimit -f`"] {
            assert!(ran.stderr.contains(text), "{args:?}: `{text}` is not in: {}", ran.stderr);
        }
        assert_eq!(folder.read("old"), "old", "{args:?}");
        let names: Vec<String> = folder.names().into_iter().filter(|name| name != "new").collect();
        assert_eq!(names, before, "{args:?}");
    }
    let redirected = format!("ulimit -f 0; exec >{}", folder.path("redirected"));
    let ran = after(&redirected, &folder, &["devices"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot write to standard output"), "{}", ran.stderr);
}

#[test]
fn a_limit_to_the_size_of_files_ends_a_recording_with_an_error() {
    let script = "start(3)\ntry:\n    export(trace='{\"traceEvents\":[' + '1,' * 9_000_000 + '1]}')\n\
        except BrokenPipeError:\n    pass";
    let folder = profile::folder(script);
    let ran =
        after("ulimit -f 64", &folder, &["profile", "-o", "t.json", "--", "python3", "train.py"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    for text in ["cannot write `t.json`", "which `ulimit -f`"] {
        assert!(ran.stderr.contains(text), "`{text}` is not in: {}", ran.stderr);
    }
    assert_eq!(profile::new_files(&folder), [""; 0]);
}

#[test]
fn the_session_and_the_trace_of_a_killed_recording_are_removed_by_the_next_one() {
    let script = "if os.path.exists('ready'):\n    start(3)\n    export()\n    sys.exit()\n\
        start(3)\npath = announce(3, 'steps')\npipe = open(path + '.tmp', 'w')\n\
        pipe.write('{\"traceEvents\":[')\npipe.flush()\n\
        while not any(name.startswith('.xmem-') for name in os.listdir('.')):\n    time.sleep(0.01)\n\
        open('ready.part', 'w').write(SESSION)\nos.rename('ready.part', 'ready')\n\
        while os.getppid() == PARENT:\n    time.sleep(0.1)";
    let folder = profile::folder(script);
    let line = ["profile", "-q", "--let-write", "all", "--", "python3", "train.py"];
    let mut child = command(line).current_dir(folder.path(".")).spawn().expect("runs");
    let ready = folder.path("ready");
    while !Path::new(&ready).exists() {
        assert_eq!(child.try_wait().expect("waits"), None, "the script waits");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("killed");
    child.wait().expect("ends");
    let session = folder.read("ready");
    assert!(Path::new(&session).exists(), "nothing to remove in {session}");
    assert_eq!(temporary_files(&folder.path(".")).len(), 1);
    let ran = profile::profile(&folder, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!Path::new(&session).exists(), "{session}");
    assert_eq!(temporary_files(&folder.path(".")), [""; 0]);
}

#[test]
fn python_keeps_no_bytecode_of_the_recorder() {
    let folder = profile::folder("start(3)\nexport()");
    let line = ["profile", "--let-write", "all", "--", "python3", "train.py"];
    let ran = after(
        "unset PYTHONDONTWRITEBYTECODE; export PYTHONPYCACHEPREFIX=\"$PWD/cache\"",
        &folder,
        &line,
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let cache = folder.path("cache");
    let found = Command::new("find").args([&cache, "-path", "*xmem-*"]).output().expect("runs");
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    assert!(Path::new(&cache).exists(), "Python did not use the folder");
}

#[test]
fn the_temporary_file_of_a_killed_run_is_removed_by_the_next_one() {
    let folder = Folder::empty();
    folder.put("list.json", &long_list());
    folder.put("results/.xmem-notes", b"a file of the user");
    let (list, results) = (folder.path("list.json"), folder.path("results"));
    let output = format!("{results}/steps.jsonl");
    let killed_while_writing = || {
        let args = ["simulate", &list, "-f", "jsonl", "-o", &output];
        let mut child = command(args).stderr(Stdio::null()).spawn().expect("runs");
        while child.try_wait().expect("waits").is_none() {
            if temporary_files(&results).len() > 1 {
                // An error means that it has ended.
                let _ = child.kill();
                child.wait().expect("ends");
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        temporary_files(&results).len() > 1
    };
    // A run that ends before it is killed leaves nothing.
    assert!((0..50).any(|_| killed_while_writing()), "no run was killed in time");
    let ran = xmem(["simulate", &list, "-o", &output]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(temporary_files(&results), [".xmem-notes"]);
    assert!(Path::new(&output).exists());
}
