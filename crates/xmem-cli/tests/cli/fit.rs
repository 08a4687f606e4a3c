//! `xmem fit` and `xmem run`, as far as they need no PyTorch.

use crate::job::Folder;
use crate::profile::flat;
use crate::shell::{Ran, command, xmem};

#[test]
fn commands_that_nothing_can_be_looked_for_are_refused_before_anything_runs() {
    for (arguments, message) in [
        (
            &["-d", "t4-16g", "--", "python3", "{batch=8}", "{seq=9}"][..],
            "two numbers to vary, `batch` and `seq`",
        ),
        (&["-d", "t4-16g", "--", "python3", "{batch=8}", "{batch=9}"], "`{batch}` is 8 and 9"),
        (
            &["-d", "t4-16g", "--range", "seq=1..9", "--", "python3", "{batch=8}"],
            "--range is about `seq`, which the command does not have",
        ),
        (
            &["-d", "t4-16g", "--range", "batch=1..9", "--", "python3", "{batch=16}"],
            "the value of `batch`, 16, is not in its range",
        ),
        (&["-d", "t4-16g", "--range", "batch=9..1", "--", "python3", "{batch}"], "the range ends"),
        (
            &["-d", "t4-16g", "--measures", "fuse", "--", "python3", "train.py"],
            "`fuse` is not a measure; measures are expandable-segments, fused,",
        ),
        (
            &["-d", "t4-16g", "--measures", "fused=2", "--", "python3", "train.py"],
            "`fused` takes no value",
        ),
        (
            &["-d", "t4-16g", "--law", "l.json", "--", "python3", "train.py"],
            "--law needs a number in the command",
        ),
        (
            &["-d", "t4-16g", "-d", "a100-40g", "--law", "l.json", "--", "python3", "{batch}"],
            "--law is for one device, and there are 2",
        ),
        (
            &["-d", "t4-16g", "--set", "dataloader.batch_size={batch}", "--", "python3", "{seq}"],
            "--set and the command have a number each",
        ),
        (
            &["-d", "t4-16g", "--ranks", "{n}", "--", "torchrun", "{batch}"],
            "two numbers to vary, `batch` and `n`",
        ),
        (
            &["-d", "t4-16g", "--ranks", "{n", "--", "torchrun", "train.py"],
            "`{n` is not a number of processes",
        ),
        (
            &["-d", "t4-16g", "--ranks", "6", "--nodes", "4", "--", "torchrun", "train.py"],
            "6 processes cannot be spread evenly over 4 machines",
        ),
        (
            &["-d", "t4-16g", "--ranks", "{n}", "--law", "l.json", "--", "torchrun", "train.py"],
            "--law cannot vary the number of processes",
        ),
        (
            &["-d", "t4-16g", "--set", "batch={batch}", "--", "python3", "train.py"],
            "`batch={batch}` is not a setting that can be varied",
        ),
        (&["-d", "t4", "--", "train.py"], "`train.py` is a script, not a command"),
        (&["--", "python3", "train.py"], "--device <NAME>"),
    ] {
        let ran = xmem(["fit"].iter().chain(arguments).copied());
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}: {}", ran.stderr);
        assert!(flat(&ran).contains(message), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_anything_runs() {
    let folder = Folder::new();
    folder.put("train.py", b"raise SystemExit(5)\n");
    for (outputs, code, message) in [
        (
            &["--law", "out.html", "--report", "./out.html"][..],
            2,
            "`--report ./out.html` would replace the file of --law",
        ),
        (&["--report", "train.py"], 2, "`--report train.py` would replace the input `train.py`"),
        (&["--report", "no/fit.html"], 3, "cannot write `no/fit.html`"),
        (&["--law", "train.py/law.json"], 3, "cannot write `train.py/law.json`"),
    ] {
        let arguments = ["fit", "-d", "t4-16g"].iter().chain(outputs);
        let ran: Ran = command(arguments.chain(&["--", "python3", "train.py", "{batch=8}"]))
            .current_dir(folder.path("."))
            .output()
            .expect("runs")
            .into();
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{outputs:?}: {}", ran.stderr);
        assert!(flat(&ran).contains(message), "{outputs:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("status 5"), "{outputs:?}: {}", ran.stderr);
    }
    assert_eq!(folder.read("train.py"), "raise SystemExit(5)\n");
}

#[cfg(unix)]
#[test]
fn what_a_script_printed_is_shown_where_it_cannot_be_recorded() {
    let folder = Folder::new();
    folder.put("train.py", b"print('no data here')\nraise SystemExit(5)\n");
    let ran = command(["fit", "-d", "t4-16g", "--", "python3", "train.py"])
        .current_dir(folder.path("."))
        .output()
        .expect("runs");
    let message = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(3), "{message}");
    assert!(message.contains("the script printed:\n  no data here\n"), "{message}");
    assert!(message.contains("exit status 5"), "{message}");
}

#[cfg(unix)]
#[test]
fn a_command_with_measures_keeps_its_streams_and_its_exit_code() {
    use std::io::Write as _;
    use std::process::Stdio;
    let script = "import os, sys; print(sys.stdin.read().upper(), 'XMEM_RECORDER' in os.environ); sys.exit(7)";
    let mut child =
        command(["run", "--with", "fused,expandable-segments", "--", "python3", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("runs");
    child.stdin.take().expect("piped").write_all(b"text").expect("taken");
    let ran = child.wait_with_output().expect("ends");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "TEXT True\n");
    assert_eq!((ran.status.code(), ran.stderr.as_slice()), (Some(7), &b""[..]));
}

#[cfg(unix)]
#[test]
fn a_command_that_a_signal_ended_has_the_exit_code_of_a_shell() {
    let script = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)";
    let ran = xmem(["run", "--with", "fused", "--", "python3", "-c", script]);
    assert_eq!(ran.code, 128 + 15, "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn the_settings_of_the_allocator_that_the_user_has_are_kept() {
    let script = "import os; print(os.environ['PYTORCH_ALLOC_CONF'], os.environ.get('PYTORCH_CUDA_ALLOC_CONF'))";
    let ran = command(["run", "--with", "expandable-segments", "--", "python3", "-c", script])
        .env("PYTORCH_ALLOC_CONF", "max_split_size_mb:64")
        .env_remove("PYTORCH_CUDA_ALLOC_CONF")
        .output()
        .expect("runs");
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(printed, "max_split_size_mb:64,expandable_segments:True None\n");
}

#[test]
fn a_command_without_measures_and_without_a_virtual_gpu_is_not_run() {
    let ran = xmem(["run", "--", "python3", "-c", "print(1)"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(flat(&ran).contains("no measure, plan or virtual GPU given"), "{}", ran.stderr);
}
