//! `--cudnn`, without a library. With one: the tests of `xmem-cudnn`.

use crate::job::Folder;
use crate::recorded::trace;
use crate::shell::{Ran, command, xmem};
use crate::users::{Installed, ORDINARY_USER, is_root, set_mode};
use std::sync::Arc;
use xmem::{AutomaticSource, Estimate, SearchPath, SourceSettings, WorkerCommand};
use xmem_cudnn::WORKER;

#[test]
fn the_answer_says_what_the_workspaces_of_convolutions_are_from() {
    let job = trace("vgg11_sgd_pos0");
    let peaks = [("model", "model fitted to cuDNN 9.19"), ("none", "none assumed")].map(
        |(source, origin)| {
            let ran = xmem(["replay", &job, "-d", "rtx3060-12g", "--cudnn", source, "-f", "json"]);
            let answer = ran.json();
            assert_eq!(answer["target"]["convolutions"], origin);
            answer["peak"]["allocated_bytes"].as_u64().expect("bytes")
        },
    );
    assert!(peaks[0] > peaks[1], "{peaks:?}");
}

#[test]
fn a_path_without_cudnn_is_an_error() {
    let ran = xmem(["replay", &trace("mlp_adam"), "-d", "t4-16g", "--cudnn", "/nowhere"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("no cuDNN library found at `/nowhere`"), "{}", ran.stderr);
}

/// The file name of the library.
pub(crate) const LIBRARY: &str = "libcudnn.so.9";

/// Text without its line breaks.
pub(crate) fn flat(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c == '│').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Replays with the library in `folder` as the only one in the environment. Root loads none that is
/// found, so that root is another user here.
fn replay_where_found(folder: &Folder, job: &str, options: &[&str]) -> Ran {
    let installed = Installed::new(job);
    let mut command = match is_root() {
        true => installed.command(ORDINARY_USER),
        false => command([""; 0]),
    };
    set_mode(folder.path(""), 0o755);
    let job = installed.path("trace.json.zst");
    command.args(["replay", &job, "-d", "rtx3060-12g", "--cudnn", "auto"]).args(options);
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        command.env_remove(name);
    }
    for name in ["PATH", "HOME", "LD_LIBRARY_PATH"] {
        command.env(name, folder.path(""));
    }
    Ran::from(command.output().expect("runs"))
}

#[test]
fn an_estimate_of_the_library_is_that_of_the_command_line() {
    let folder = Folder::new();
    folder.put("libcudnn.so.9", b"?");
    let job = trace("vgg11_sgd_pos0");
    let answer = replay_where_found(&folder, &job, &["-f", "json"]).json();

    let program = env!("CARGO_BIN_EXE_xmem").into();
    let source = AutomaticSource::new(SourceSettings {
        search: SearchPath { libraries: vec![folder.path("").into()], ..SearchPath::default() },
        worker: Some(WorkerCommand { program, arguments: vec![WORKER.into()] }),
        ..SourceSettings::default()
    });
    let device = xmem::find("rtx3060-12g").expect("a known device").clone();
    let estimate = Estimate::builder(device).convolutions(Arc::new(source)).build();
    let same = estimate.path(&job).expect("a trace");
    assert_eq!(answer["target"]["convolutions"], same.convolutions.source());
    assert_eq!(answer["peak"]["allocated_bytes"], same.peak.allocated.get());
    let warning = same.convolutions.warning().expect("the library cannot be loaded");
    assert!(answer["diagnostics"].to_string().contains("cannot load the library"), "{warning}");
    assert!(warning.contains("cannot load the library"), "{warning}");
}

#[test]
fn what_is_not_cudnn_is_an_error_if_it_is_named_and_a_warning_if_it_is_found() {
    let folder = Folder::new();
    folder.put("libcudnn.so.9", b"?");
    let (job, library) = (trace("vgg11_sgd_pos0"), folder.path("libcudnn.so.9"));
    let ran = xmem(["replay", &job, "-d", "rtx3060-12g", "--cudnn", &library]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("cannot load"), "{}", ran.stderr);

    let ran = replay_where_found(&folder, &job, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("model fitted to cuDNN 9.19"), "{}", ran.stdout);
    let flat = flat(&ran.stdout);
    assert!(flat.contains("the model fitted to cuDNN 9.19 answers instead"), "{flat}");
}
