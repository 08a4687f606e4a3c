//! What becomes of an answer when the process that asks cuDNN behaves in every possible way. The
//! process is a shell script here.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "counts the files of a cache")]

use std::path::{Path, PathBuf};
use xmem_convolutions::{
    Basis, ConvPass, ConvShape, ConvolutionPlans, ElementType, FittedModel, Layout, Plans,
};
use xmem_cudnn::{Cudnn, WorkerCommand};
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

fn cudnn(script: &str, cache: Option<&Path>) -> Cudnn {
    let arguments = ["-c", script, "worker"].map(Into::into).to_vec();
    let command = WorkerCommand { program: PathBuf::from("/bin/sh"), arguments };
    Cudnn::new(PathBuf::from("/opt/libcudnn.so.9"), command, cache.map(Path::to_path_buf))
}

fn device() -> Device {
    xmem_profiles::find("rtx3060-12g").expect("built in").clone()
}

fn asked(cudnn: &Cudnn) -> Plans {
    cudnn.plans(ConvPass::BackwardWeight, &SHAPE, &device())
}

fn from_the_model() -> Plans {
    FittedModel.plans(ConvPass::BackwardWeight, &SHAPE, &device())
}

#[test]
fn answers_are_taken_as_they_are_whatever_else_is_printed() {
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
    assert_eq!(asked(&cudnn), expected);
    assert_eq!(cudnn.origin(), "cuDNN 9.19.0 at /opt/libcudnn.so.9");
    assert_eq!(cudnn.complaint(), None);
}

#[test]
fn the_worker_is_told_the_device_and_then_the_convolution() {
    let script = "echo cudnn 9.19.0; read device; read question; \
                  test \"$1\" = /opt/libcudnn.so.9 || exit 1; \
                  case \"$device\" in *'\"deviceVer\":860,\"multiProcessorCount\":28'*) ;; *) exit 2;; \
                  esac; test \"$question\" = 'backward-weight f32 nchw 8,64,32,32 64,64,3,3 \
                  8,64,32,32 1,1 1,1 1,1' || exit 3; echo '= 5'; read end";
    let cudnn = cudnn(script, None);
    assert_eq!((asked(&cudnn).first(), cudnn.complaint()), (Bytes(5), None));
}

#[test]
fn the_model_stands_in_for_a_worker_that_fails() {
    for (script, complaint) in [
        ("exit 3", "ended: exit status: 3"),
        ("echo '! the library cannot be loaded: no such file'", "no such file"),
        ("echo cudnn 9.19.0; read device; kill -SEGV $$", "signal: 11"),
        ("echo cudnn 9.19.0; read device; read question; kill -ABRT $$", "signal: 6"),
        ("echo cudnn 9.19.0; read device; read question; echo '= many'", "said `many`"),
    ] {
        let cudnn = cudnn(script, None);
        assert_eq!(asked(&cudnn), from_the_model(), "{script}");
        let told = cudnn.complaint().expect("a complaint");
        assert!(told.contains(complaint), "{script}: {told}");
        assert_eq!(asked(&cudnn), from_the_model(), "{script}, the second time");
    }
}

#[test]
fn a_refusal_is_about_one_convolution() {
    let script = "echo cudnn 9.19.0; read device; read question; echo '! too large'; \
                  read question; echo '= 9'; read end";
    let cudnn = cudnn(script, None);
    assert_eq!(asked(&cudnn), from_the_model());
    assert_eq!((asked(&cudnn).first(), cudnn.complaint()), (Bytes(9), None));
}

#[test]
fn nothing_is_asked_about_what_pytorch_runs_itself() {
    let depthwise = ConvShape { weight: [64, 1, 3, 3], groups: 64, ..SHAPE };
    let cudnn = cudnn("exit 3", None);
    assert_eq!(cudnn.plans(ConvPass::Forward, &depthwise, &device()), Plans::none());
    assert_eq!((cudnn.complaint(), cudnn.origin()), (None, "cuDNN at /opt/libcudnn.so.9".into()));
}

#[test]
fn what_was_answered_once_is_not_asked_again() {
    let folder = tempfile::tempdir().expect("folder");
    let first = cudnn(
        "echo cudnn 9.19.0; read device; read q; echo '= 44 0'; read end",
        Some(folder.path()),
    );
    let answer = asked(&first);
    assert_eq!(asked(&first), answer);
    first.save().expect("saved");
    assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1);
    let again = cudnn("echo cudnn 9.19.0; exit 0", Some(folder.path()));
    assert_eq!((asked(&again), again.complaint()), (answer, None));
    let newer =
        cudnn("echo cudnn 9.20.0; read device; read q; echo '= 1'; read end", Some(folder.path()));
    assert_eq!(asked(&newer).first(), Bytes(1));
}
