//! `--cudnn`, without a library. With one: the tests of `xmem-cudnn`.

use crate::job::Folder;
use crate::recorded::trace;
use crate::shell::{Ran, command, xmem};

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

#[cfg(unix)]
#[test]
fn what_is_not_cudnn_is_an_error_if_it_is_named_and_a_warning_if_it_is_found() {
    let folder = Folder::new();
    folder.put("libcudnn.so.9", b"?");
    let (job, library) = (trace("vgg11_sgd_pos0"), folder.path("libcudnn.so.9"));
    let ran = xmem(["replay", &job, "-d", "rtx3060-12g", "--cudnn", &library]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("cannot load"), "{}", ran.stderr);

    let mut command = command(["replay", &job, "-d", "rtx3060-12g", "--cudnn", "auto"]);
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        command.env_remove(name);
    }
    for name in ["PATH", "HOME", "LD_LIBRARY_PATH"] {
        command.env(name, folder.path(""));
    }
    let ran = Ran::from(command.output().expect("runs"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("model fitted to cuDNN 9.19"), "{}", ran.stdout);
    let flat = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("answers in its place"), "{flat}");
}
