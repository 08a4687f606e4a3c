//! `--cudnn`, without a library. With one: the tests of `xmem-cudnn`.

use crate::job::Folder;
use crate::recorded::trace;
use crate::schema_check::check;
use crate::shell::{Ran, command, xmem};
use crate::users::{Installed, ORDINARY_USER, is_root, set_mode};
use std::sync::Arc;
use xmem::convolutions::KeptAnswers;
use xmem::cudnn::{AutomaticSource, SearchPath, SourceSettings, WorkerCommand};
use xmem::{Bytes, Estimate};
use xmem_cudnn::WORKER;
use xmem_report::json::{self, ConvolutionsDocument};

const CONVOLUTIONS: &str = include_str!("../../../../docs/schema/xmem.convolutions.1.schema.json");

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

/// A recorded trace with cuDNN's answers about it for an RTX 3060, as `xmem profile` adds them.
fn with_kept_answers(folder: &Folder, job: &str) -> String {
    let cache = format!("{}/../../traces/cudnn", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read_dir(cache).expect("answers").next().expect("a file").expect("a file");
    let text = std::fs::read_to_string(file.path()).expect("text");
    let mut lines = text.lines();
    let title: Vec<&str> = lines.next().expect("a title").split('\t').collect();
    let workspaces = lines.map(|line| {
        let (question, sizes) = line.split_once('\t').expect("two columns");
        let sizes = sizes.split(' ').map(|size| size.parse::<u64>().expect("bytes"));
        (question.to_owned(), sizes.collect())
    });
    let kept = KeptAnswers {
        release: title[1].to_owned(),
        device: title[2].to_owned(),
        workspaces: workspaces
            .map(|(question, sizes): (String, Vec<u64>)| {
                (question, sizes.into_iter().map(Bytes).collect())
            })
            .collect(),
    };
    let kept = json::line(&ConvolutionsDocument::new(&[kept]));
    let document = serde_json::from_str(&kept).expect("JSON");
    check(&serde_json::from_str(CONVOLUTIONS).expect("schema"), &document).expect("valid");
    let trace = zstd::decode_all(&std::fs::read(trace(job)).expect("a trace")[..]).expect("zstd");
    let trace = String::from_utf8(trace).expect("UTF-8");
    let (_, rest) = trace.split_once('{').expect("an object");
    let notes = r#"{"schema":"xmem.recording.1"}"#;
    let text = format!(r#"{{"xmem_convolutions":{kept},"xmem_recording":{notes},{rest}"#);
    folder.put("kept.json", text.as_bytes());
    folder.path("kept.json")
}

#[test]
fn answers_in_a_recording_need_no_library() {
    let folder = Folder::new();
    let kept = with_kept_answers(&folder, "unet_adam");
    let cache = format!("{}/../../traces/cudnn", env!("CARGO_MANIFEST_DIR"));
    let replay = |device: &str, source: &str| {
        let mut command = command(["replay", &kept, "-d", device, "--cudnn", source, "-f", "json"]);
        for name in ["VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH"] {
            command.env_remove(name);
        }
        for name in ["PATH", "HOME"] {
            command.env(name, folder.path(""));
        }
        Ran::from(command.output().expect("runs")).json()
    };
    let (own, live) = (replay("rtx3060-12g", "auto"), replay("rtx3060-12g", &cache));
    assert_eq!(own["peak"], live["peak"]);
    let source = own["target"]["convolutions"].as_str().expect("a source");
    assert_eq!(source, "cuDNN 9.19.0, asked when the job was recorded");
    let model = replay("rtx3060-12g", "model");
    assert!(model["peak"]["reserved_bytes"] != own["peak"]["reserved_bytes"]);
    assert_eq!(model["target"]["convolutions"], "model fitted to cuDNN 9.19");

    let other = replay("t4-16g", "auto");
    let modeled = replay("t4-16g", "model");
    assert_eq!(other["peak"], modeled["peak"]);
}

#[test]
fn a_release_that_cannot_be_asked_is_named_and_widens_the_range() {
    let cache = format!("{}/../../traces/cudnn", env!("CARGO_MANIFEST_DIR"));
    let job = trace("big_resnet50_adamw_b100");
    let replay = |torch: &str, source: &str| {
        let options = ["-d", "rtx3060-12g", "--torch", torch, "--cudnn", source, "-f", "json"];
        let answer = xmem([&["replay", &job], &options[..]].concat()).json();
        let findings = answer["diagnostics"].as_array().expect("a list").clone();
        let about = findings.into_iter().find(|finding| finding["code"] == "cudnn-release");
        let reserved = &answer["range"]["reserved_bytes"];
        let width =
            reserved["high"].as_u64().expect("bytes") - reserved["low"].as_u64().expect("bytes");
        (about, width, answer["range"]["confidence"].as_str().expect("a word").to_owned())
    };
    let (none, asked, confidence) = replay("2.11", &cache);
    assert_eq!((none, confidence.as_str()), (None, "certain"));
    for source in [cache.as_str(), "model"] {
        let (about, width, confidence) = replay("2.6", source);
        let about = about.expect("the release cannot be asked");
        assert_eq!(about["severity"], "warning", "{source}");
        let message = about["message"].as_str().expect("text");
        assert!(message.starts_with("PyTorch 2.6 comes with a cuDNN before 9.8"), "{message}");
        assert!(width > 5 * asked, "{source}: {width} and {asked}");
        assert_eq!(confidence, "likely", "{source}");
    }
    let (none, width, confidence) = replay("2.11", "model");
    assert_eq!((none, confidence.as_str()), (None, "likely"));
    assert!(width > 5 * asked, "{width} and {asked}");
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
    assert_eq!(answer["peak"]["allocated_bytes"], same.memory.peak.allocated.get());
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
    assert!(flat(&ran.stderr).contains("cannot load"), "{}", ran.stderr);

    let ran = replay_where_found(&folder, &job, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("model fitted to cuDNN 9.19"), "{}", ran.stdout);
    let flat = flat(&ran.stdout);
    assert!(flat.contains("the model fitted to cuDNN 9.19 answers instead"), "{flat}");
}
