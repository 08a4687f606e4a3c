//! Which cuDNN library is loaded, and which answers of it are believed: what other users put in the way,
//! what variables say, and what a library says that lies.

#![expect(clippy::print_stderr, reason = "a test that needs root says that it is skipped")]

use crate::cudnn::{LIBRARY, flat};
use crate::job::Folder;
use crate::recorded::trace;
use crate::shell::{Ran, command};
use crate::users::{Installed, ORDINARY_USER, OTHER_USER, is_root, set_mode};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use xmem::convolutions::{ConvolutionSource, FittedModel};
use xmem::cudnn::{AutomaticSource, SearchPath, SourceSettings, WorkerCommand};
use xmem::predict::{CapacitySearch, Confidence};
use xmem::{Answer, Device, Estimate, Verdict};

const JOB: &str = "vgg11_sgd_pos0";

/// What is tried where a library may be loaded, as the libraries of these tests are none.
const TRIED: &str = "cannot load the library";

#[test]
fn a_library_of_another_user_is_not_loaded() {
    if !is_root() {
        eprintln!("skipped: only root can become two users");
        return;
    }
    let installed = Installed::new(&trace(JOB));
    for (owner, tried) in [(ORDINARY_USER, true), (0, true), (OTHER_USER, false)] {
        let environment = format!("venv-of-{owner}");
        installed.folder_of(owner, &environment);
        let library = format!("{environment}/lib/{LIBRARY}");
        installed.file_of(owner, &library, b"?");
        let mut command = installed.command(ORDINARY_USER);
        command.args(["replay", "trace.json.zst", "-d", "rtx3060-12g", "--cudnn", "auto"]);
        command.env("VIRTUAL_ENV", installed.path(&environment));
        let ran = Ran::from(command.output().expect("runs"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let text = flat(&ran.stdout);
        assert_eq!(text.contains(TRIED), tried, "{owner}: {text}");
        let refusal = format!(": `{}` belongs to", installed.path(&environment));
        assert_eq!(text.contains(&refusal), !tried, "{owner}: {text}");
        assert!(text.contains("the model fitted to cuDNN 9.19 answers instead"), "{text}");
    }
}

#[test]
fn a_library_that_others_can_write_is_loaded_only_if_it_is_named() {
    if !is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let installed = Installed::new(&trace(JOB));
    let environment = installed.folder_of(ORDINARY_USER, "venv");
    set_mode(&environment, 0o777);
    installed.file_of(ORDINARY_USER, &format!("venv/lib/{LIBRARY}"), b"?");
    let replay = |choice: &str| {
        let mut command = installed.command(ORDINARY_USER);
        command.args(["replay", "trace.json.zst", "-d", "rtx3060-12g", "--cudnn", choice]);
        Ran::from(command.env("VIRTUAL_ENV", &environment).output().expect("runs"))
    };
    let found = replay("auto");
    let text = flat(&found.stdout);
    let refusal =
        format!("other users can write to `{environment}` (mode 777); `chmod go-w {environment}`");
    assert!(text.contains(&refusal), "{text}");
    assert!(!text.contains(TRIED), "{text}");
    let named = replay(&environment);
    assert_eq!(named.code, 2);
    assert!(flat(&named.stderr).contains(TRIED), "{}", named.stderr);
}

#[test]
fn root_loads_no_library_that_it_was_not_told_by_an_option() {
    if !is_root() {
        eprintln!("skipped: this is not root");
        return;
    }
    let folder = Folder::empty();
    folder.put(&format!("lib/{LIBRARY}"), b"?");
    let job = trace(JOB);
    let replay = |options: &[&str], variable: &str| {
        let mut command = command(["replay", &job, "-d", "rtx3060-12g"]);
        command.args(options).env("VIRTUAL_ENV", folder.path("")).env("XMEM_CUDNN", variable);
        Ran::from(command.output().expect("runs"))
    };
    let found = replay(&[], "auto");
    let text = flat(&found.stdout);
    assert!(text.contains("root loads no library that is found in the environment"), "{text}");
    assert_eq!(found.code, 0, "the model answers");

    let by_variable = replay(&[], &folder.path(""));
    assert_eq!(by_variable.code, 2);
    let text = flat(&by_variable.stderr);
    assert!(text.contains("root loads no library that the environment names"), "{text}");

    let named = replay(&["--cudnn", &folder.path("")], "none");
    assert!(flat(&named.stderr).contains(TRIED), "{}", named.stderr);
    set_mode(folder.path("lib"), 0o777);
    let open = replay(&["--cudnn", &folder.path("")], "none");
    let text = flat(&open.stderr);
    assert!(text.contains("root loads only what no other user can change"), "{text}");
    assert_eq!((named.code, open.code), (2, 2));
}

/// The answers of a gate, with nothing in the environment and with all of it set by someone else.
#[test]
fn no_variable_changes_the_answers_of_a_fixed_source() {
    let folder = Folder::empty();
    folder.put(&format!("venv/lib/{LIBRARY}"), b"?");
    folder.put(&format!("venv/lib/python3.12/site-packages/nvidia/cudnn/lib/{LIBRARY}"), b"?");
    folder.put(&format!(".local/lib/{LIBRARY}"), b"?");
    folder.put(LIBRARY, b"?");
    let started = folder.path("started");
    for program in ["xmem", "python3"] {
        folder.put_program(program, &format!("#!/bin/sh\ntouch '{started}'\n"));
    }
    let lies = folder.path("lies");
    let answers = format!("{}/../../traces/cudnn", env!("CARGO_MANIFEST_DIR"));
    for entry in std::fs::read_dir(&answers).expect("answers") {
        let entry = entry.expect("an entry");
        let text = std::fs::read_to_string(entry.path()).expect("answers");
        let lie = |line: &str| match line.split_once('\t') {
            Some((question, _)) if question.contains(' ') => format!("{question}\t0\n"),
            _ => format!("{line}\n"),
        };
        let name = entry.file_name().into_string().expect("UTF-8");
        let text: String = text.lines().map(lie).collect();
        folder.put(&format!("xdg/xmem/{name}"), text.as_bytes());
        folder.put(&format!(".cache/xmem/{name}"), text.as_bytes());
        folder.put(&format!("lies/{name}"), text.as_bytes());
    }
    let job = trace(JOB);
    for source in ["model", &answers] {
        for form in
            [&["-f", "text"][..], &["-q"], &["-f", "csv"], &["-f", "json"], &["-f", "jsonl"]]
        {
            let replay = |hostile: bool| {
                let mut command = command(["replay", &job, "-d", "rtx3060-12g", "--cudnn", source]);
                command.args(form).env_clear();
                if hostile {
                    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
                        command.env(name, folder.path("venv"));
                    }
                    command.env("XDG_CACHE_HOME", folder.path("xdg"));
                    for name in ["PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR"] {
                        command.env(name, folder.path(""));
                    }
                    command.env("XMEM_CUDNN", &lies).env("XMEM_CUDNN_PARENT", "1");
                    for name in ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"] {
                        command.env(name, "expandable_segments:True");
                    }
                    command.env("CUBLAS_WORKSPACE_CONFIG", ":0:0");
                }
                let ran = Ran::from(command.output().expect("runs"));
                assert_eq!(ran.code, 0, "{}", ran.stderr);
                ran.stdout
            };
            assert_eq!(replay(true), replay(false), "{source} {form:?}");
        }
    }
    assert!(!Path::new(&started).exists(), "a program of the environment was started");
}

#[test]
fn every_form_of_the_answer_names_the_source_of_the_workspaces() {
    let job = trace(JOB);
    for (source, name) in [("model", "model fitted to cuDNN 9.19"), ("none", "none assumed")] {
        for form in
            [&["-f", "text"][..], &["-q"], &["-f", "csv"], &["-f", "json"], &["-f", "jsonl"]]
        {
            for devices in ["t4-16g", "t4-16g,a100-40g"] {
                let mut command =
                    command(["replay", &job, "--devices", devices, "--cudnn", source]);
                let ran = Ran::from(command.args(form).output().expect("runs"));
                assert!(ran.stdout.contains(name), "{form:?} {devices}: {}", ran.stdout);
            }
        }
    }
}

/// The library is a pipe, which keeps its reader waiting.
#[test]
fn a_worker_ends_with_its_parent_and_leaves_no_files() {
    let folder = Folder::empty();
    let library = folder.path("libcudnn.so.9");
    let temporary = folder.path("tmp");
    std::fs::create_dir(&temporary).expect("made");
    let made = Command::new("mkfifo").arg(&library).status().expect("runs");
    assert!(made.success());
    let script = "umask 000; XMEM_CUDNN_PARENT=$$ \"$0\" cudnn-worker \"$1\" & echo $!; wait";
    let mut parent = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_xmem"), &library])
        .env("TMPDIR", &temporary)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut worker = String::new();
    let output = parent.stdout.take().expect("piped");
    BufReader::new(output).read_line(&mut worker).expect("a line");
    let status = format!("/proc/{}/status", worker.trim());
    let waits = || std::fs::read_link(format!("/proc/{}/exe", worker.trim())).is_ok();
    assert!(waits(), "process {worker}");
    thread::sleep(Duration::from_millis(500));
    assert!(waits(), "process {worker} waits for the library");
    assert_eq!(std::fs::read_dir(&temporary).expect("a folder").count(), 0);
    // Its standard input stays open.
    let _input = parent.stdin.take();
    parent.kill().expect("killed");
    parent.wait().expect("ended");
    let over = (0..500).any(|_| {
        thread::sleep(Duration::from_millis(10));
        std::fs::read_to_string(&status).map_or(true, |text| text.contains("State:\tZ"))
    });
    assert!(over, "process {worker} has no parent, and is there");
}

/// Answers to questions, by a shell script in place of a library.
fn library(answers: &str) -> Arc<dyn ConvolutionSource> {
    let folder = Folder::empty();
    folder.put(LIBRARY, b"?");
    let script = format!(
        "echo cudnn 9.19.0; read device; n=0; while read question; do n=$((n + 1)); {answers}; done"
    );
    let arguments = ["-c", &script, "worker"].map(Into::into).to_vec();
    let source = AutomaticSource::new(SourceSettings {
        search: SearchPath { libraries: vec![folder.path("").into()], ..SearchPath::default() },
        worker: Some(WorkerCommand { program: "/bin/sh".into(), arguments }),
        ..SourceSettings::default()
    });
    // The library is found at the first question.
    source.answer(xmem::find("t4-16g").expect("a device"), &[question()]);
    Arc::new(source)
}

fn question() -> xmem::convolutions::ConvolutionQuestion {
    let shape = xmem::convolutions::ConvShape {
        input: [8, 64, 32, 32],
        weight: [64, 64, 3, 3],
        output: [8, 64, 32, 32],
        stride: [1, 1],
        padding: [1, 1],
        dilation: [1, 1],
        volume: None,
        transposed: false,
        groups: 1,
        element: xmem::convolutions::ElementType::F32,
        layout: xmem::convolutions::Layout::Nchw,
    };
    xmem::convolutions::ConvolutionQuestion::new(xmem::convolutions::ConvPass::Forward, shape)
}

#[test]
fn a_library_that_lies_makes_no_job_fit_for_certain() {
    for name in [JOB, "resnet18_sgdm", "unet_adam"] {
        let job = trace(name);
        let card = xmem::find("rtx3060-12g").expect("a device").clone();
        let answer = |source: Arc<dyn ConvolutionSource>, device: Device| -> Answer {
            let builder = Estimate::builder(device).convolutions(source);
            let estimate = builder.capacity_search(CapacitySearch::Run).build();
            estimate.path(&job).expect("an answer")
        };
        let honest = answer(Arc::new(FittedModel), card.clone());
        let needed = honest.memory.min_capacity.expect("searched");
        let device = Device { memory: needed - xmem::Bytes(1), ..card };
        let expected = answer(Arc::new(FittedModel), device.clone());
        assert_eq!(expected.verdict, Verdict::DoesNotFit, "{name}");
        for lie in [
            "echo '= 0'",
            "echo '= 512 0'",
            "echo '= 4503599627370496 0'",
            "echo '= 0 1'",
            "if test $((n % 2)) = 0; then echo '= 0'; else echo '! no'; fi",
            "if test $n = 4; then echo '= 0'; else echo '! no'; fi",
            "echo '! no'",
            "exit 1",
        ] {
            let judged = answer(library(lie), device.clone());
            let certain = judged.verdict == Verdict::Fits
                && judged.memory.range.confidence == Confidence::Certain;
            assert!(!certain, "{name}, {lie}: {}", judged.convolutions.source());
        }
        let refused = answer(library("echo '= 0'"), device);
        assert_eq!(refused.convolutions.source(), FittedModel::NAME, "{name}");
        assert_eq!(refused.verdict, Verdict::DoesNotFit, "{name}");
    }
}
