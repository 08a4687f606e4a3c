//! Answers of a worker process that behaves in every possible way. The process is a shell script here.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "puts files in place and counts those of a cache")]

use std::path::{Path, PathBuf};
use xmem_convolutions::{
    Basis, ConvPass, ConvShape, ConvolutionAnswers, ConvolutionQuestion, ConvolutionSource,
    ElementType, FittedModel, Layout, NoWorkspaces, Plans,
};
use xmem_cudnn::{AutomaticSource, Cudnn, SearchPath, SourceChoice, SourceSettings, WorkerCommand};
use xmem_profiles::Device;
use xmem_types::Bytes;

const SHAPE: ConvShape = ConvShape {
    input: [8, 64, 32, 32],
    weight: [64, 64, 3, 3],
    output: [8, 64, 32, 32],
    stride: [1, 1],
    padding: [1, 1],
    dilation: [1, 1],
    volume: None,
    transposed: false,
    groups: 1,
    element: ElementType::F32,
    layout: Layout::Nchw,
};

const QUESTION: ConvolutionQuestion =
    ConvolutionQuestion { pass: ConvPass::BackwardWeight, shape: SHAPE };

/// A convolution that PyTorch runs without cuDNN.
const DEPTHWISE: ConvolutionQuestion = ConvolutionQuestion {
    pass: ConvPass::Forward,
    shape: ConvShape { weight: [64, 1, 3, 3], groups: 64, ..SHAPE },
};

fn worker(script: &str) -> WorkerCommand {
    let arguments = ["-c", script, "worker"].map(Into::into).to_vec();
    WorkerCommand { program: PathBuf::from("/bin/sh"), arguments }
}

fn cudnn(script: &str, cache: Option<&Path>) -> Cudnn {
    let library = PathBuf::from("/opt/libcudnn.so.9");
    Cudnn::new(library, worker(script), cache.map(Path::to_path_buf))
}

fn device() -> Device {
    xmem_profiles::find("rtx3060-12g").expect("built in").clone()
}

fn ask(source: &dyn ConvolutionSource) -> ConvolutionAnswers {
    source.answer(&device(), &[QUESTION])
}

fn plans(answers: &ConvolutionAnswers) -> &Plans {
    answers.get(&QUESTION).expect("every question is answered")
}

fn from_the_model() -> Plans {
    plans(&ask(&FittedModel)).clone()
}

#[test]
fn answers_are_read_among_other_output() {
    let cudnn = cudnn(
        "echo noise; echo cudnn 9.19.0; read device; read question; echo \"more $noise\"; \
         echo '= 700 30 0'; sleep 5",
        None,
    );
    let expected = Plans {
        sizes: vec![Bytes(700), Bytes(30), Bytes(0)],
        low: Bytes(700),
        high: Bytes(700),
        basis: Basis::Library,
    };
    let answers = ask(&cudnn);
    assert_eq!(plans(&answers), &expected);
    assert_eq!(answers.source(), "cuDNN 9.19.0 at /opt/libcudnn.so.9");
    assert_eq!(answers.warning(), None);
}

#[test]
fn the_worker_gets_the_device_and_then_the_convolution() {
    let script = "echo cudnn 9.19.0; read device; read question; \
                  test \"$1\" = /opt/libcudnn.so.9 || exit 1; \
                  case \"$device\" in *'\"deviceVer\":860,\"multiProcessorCount\":28'*) ;; *) exit 2;; \
                  esac; test \"$question\" = 'backward-weight f32 nchw 8,64,32,32 64,64,3,3 \
                  8,64,32,32 1,1 1,1 1,1' || exit 3; test \"$XMEM_CUDNN\" = model || exit 4; \
                  echo '= 5'; read end";
    let answers = ask(&cudnn(script, None));
    assert_eq!((plans(&answers).first(), answers.warning()), (Bytes(5), None));
}

#[test]
fn the_model_answers_where_a_worker_fails() {
    for (script, reason) in [
        ("exit 3", "ended: exit status: 3"),
        ("echo '! cannot load the library: no such file'", "no such file"),
        ("echo cudnn 9.19.0; read device; kill -SEGV $$", "signal: 11"),
        ("echo cudnn 9.19.0; read device; read question; kill -ABRT $$", "signal: 6"),
        ("echo cudnn 9.19.0; read device; read question; echo '= many'", "answered `many`"),
    ] {
        let cudnn = cudnn(script, None);
        let answers = ask(&cudnn);
        assert_eq!(plans(&answers), &from_the_model(), "{script}");
        let warning = answers.warning().expect("a warning");
        assert!(warning.contains(reason), "{script}: {warning}");
        assert_eq!(ask(&cudnn), answers, "{script}, the second time");
    }
}

#[test]
fn a_failure_is_a_warning_for_the_answers_that_it_affects() {
    let script =
        "echo cudnn 9.19.0; read device; read question; echo '= 44 0'; read question; exit 3";
    let cudnn = cudnn(script, None);
    let first = ask(&cudnn);
    let other = ConvolutionQuestion { pass: ConvPass::Forward, ..QUESTION };
    let affected = cudnn.answer(&device(), &[QUESTION, other]);
    assert!(affected.warning().is_some_and(|warning| warning.contains("exit status: 3")));
    assert_eq!(affected.get(&QUESTION), first.get(&QUESTION));
    assert_eq!(ask(&cudnn), first, "answered before the failure");
}

#[test]
fn a_refusal_is_about_one_convolution() {
    let script = "echo cudnn 9.19.0; read device; read question; echo '! too large'; \
                  read question; echo '= 9'; read end";
    let cudnn = cudnn(script, None);
    assert_eq!(plans(&ask(&cudnn)), &from_the_model());
    let answers = ask(&cudnn);
    assert_eq!((plans(&answers).first(), answers.warning()), (Bytes(9), None));
}

#[test]
fn no_process_is_asked_about_a_kernel_of_pytorch() {
    let answers = cudnn("exit 3", None).answer(&device(), &[DEPTHWISE]);
    assert_eq!(answers.get(&DEPTHWISE), Some(&Plans::none()));
    assert_eq!((answers.source(), answers.warning()), ("cuDNN at /opt/libcudnn.so.9", None));
}

#[test]
fn a_cached_answer_is_not_requested_again() {
    let folder = tempfile::tempdir().expect("folder");
    let first = cudnn(
        "echo cudnn 9.19.0; read device; read q; echo '= 44 0'; read end",
        Some(folder.path()),
    );
    let answers = ask(&first);
    assert_eq!(ask(&first), answers);
    assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1);
    assert_eq!(ask(&cudnn("echo cudnn 9.19.0; exit 0", Some(folder.path()))), answers);
    let newer =
        cudnn("echo cudnn 9.20.0; read device; read q; echo '= 1'; read end", Some(folder.path()));
    assert_eq!(plans(&ask(&newer)).first(), Bytes(1));
}

#[test]
fn the_default_searches_and_starts_nothing_before_a_convolution_is_in_question() {
    let folder = tempfile::tempdir().expect("folder");
    let library = folder.path().join("libcudnn.so.9");
    let started = folder.path().join("started");
    let script = format!(
        "touch '{}'; echo cudnn 9.19.0; read device; read q; echo '= 44 0'; read end",
        started.display()
    );
    let source = AutomaticSource::new(SourceSettings {
        search: SearchPath { libraries: vec![folder.path().to_path_buf()], ..Default::default() },
        worker: Some(worker(&script)),
        ..SourceSettings::default()
    });
    for questions in [&[][..], &[DEPTHWISE]] {
        let answers = source.answer(&device(), questions);
        assert_eq!(answers, FittedModel.answer(&device(), questions));
    }
    std::fs::write(&library, "").expect("written");
    assert!(!started.exists(), "started without need");
    let answers = ask(&source);
    assert!(started.exists());
    assert_eq!(answers.source(), format!("cuDNN 9.19.0 at {}", library.display()));
    assert_eq!((plans(&answers).first(), answers.warning()), (Bytes(44), None));
}

#[test]
fn the_default_is_the_model_where_no_library_can_be_asked() {
    let folder = tempfile::tempdir().expect("folder");
    let ask_by = |settings| ask(&AutomaticSource::new(settings));
    assert_eq!(ask_by(SourceSettings::default()), ask(&FittedModel));

    std::fs::write(folder.path().join("libcudnn.so.9"), "").expect("written");
    let search = SearchPath { libraries: vec![folder.path().to_path_buf()], ..Default::default() };
    let found = SourceSettings { search, ..SourceSettings::default() };
    let nowhere = SourceChoice::At(folder.path().join("nowhere"));
    for (settings, reason) in [
        (found.clone(), "no `xmem` on PATH"),
        (SourceSettings { worker: Some(worker("exit 3")), ..found.clone() }, "exit status: 3"),
        (SourceSettings { choice: nowhere, ..found.clone() }, "no cuDNN library"),
    ] {
        let answers = ask_by(settings);
        assert_eq!(plans(&answers), &from_the_model(), "{reason}");
        assert_eq!(answers.source(), ask(&FittedModel).source(), "{reason}");
        let warning = answers.warning().expect("a warning");
        assert!(warning.contains(reason), "{warning}");
    }
    for (choice, source) in [
        (SourceChoice::Model, &FittedModel as &dyn ConvolutionSource),
        (SourceChoice::NoWorkspaces, &NoWorkspaces),
    ] {
        assert_eq!(ask_by(SourceSettings { choice, ..found.clone() }), ask(source));
    }
}
