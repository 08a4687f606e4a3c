//! Sources of workspaces that cannot be used.

use crate::error::failures;
use crate::terminal::shown;
use miette::Diagnostic;
use std::path::PathBuf;
use thiserror::Error;

failures! {
    /// A cuDNN library that cannot be used.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum CudnnFailure {
        #[error("no cuDNN library found at `{}`", shown(path))]
        #[diagnostic(help(
            "--cudnn takes the path of libcudnn.so.9, of the folder it is in, or of a Python environment \
             with PyTorch for CUDA; `--cudnn model` needs no library"
        ))]
        NotFound { path: PathBuf } => Usage XM0141 {
            title: "no cuDNN library",
            cause: "The path of `--cudnn` has no libcudnn.so.9.",
            example: "xmem replay trace.json.zst --device t4-16g --cudnn /usr/lib",
            fix:
                "Give the library, its folder, or a Python environment with PyTorch for CUDA. `--cudnn model` needs no \
                 library.",
        },
        #[error("cannot query cuDNN at `{}`: {reason}", shown(path))]
        #[diagnostic(help("xmem needs cuDNN 9.8 or newer; `--cudnn model` needs no library"))]
        Unusable { path: PathBuf, reason: String } => Usage XM0142 {
            title: "unusable cuDNN library",
            cause:
                "The library was found, but is too old, is incomplete, or cannot be queried in a separate process.",
            example: "xmem replay trace.json.zst --device t4-16g --cudnn old/libcudnn.so.9",
            fix: "Use cuDNN 9.8 or newer, or `--cudnn model`, which needs no library.",
        },
        #[error("refusing to load cuDNN at `{}`: {reason}", shown(path))]
        #[diagnostic(help("`--cudnn model` needs no library"))]
        Refused { path: PathBuf, reason: String } => Usage XM0143 {
            title: "cuDNN library that others can change",
            cause: "Another user could replace the library, and xmem would run the code of that user.",
            example: "sudo xmem replay trace.json.zst --device t4-16g --cudnn auto",
            fix:
                "Correct the owner and the permissions that the message names, give the path of the library with \
                 `--cudnn`, or use `--cudnn model`.",
        },
        #[error("query to cuDNN failed: {reason}")]
        Worker { reason: String } => Unreadable XM0144 {
            title: "failed query to cuDNN",
            cause: "The separate process that queries cuDNN ended or returned an error.",
            example: "xmem replay trace.json.zst --device t4-16g --cudnn libcudnn.so.9",
            fix: "Run the command again with `--cudnn model`, which needs no library, and report the failure.",
        },
    }
}
