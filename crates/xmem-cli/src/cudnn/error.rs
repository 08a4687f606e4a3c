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
        NotFound { path: PathBuf } => Usage,
        #[error("cannot query cuDNN at `{}`: {reason}", shown(path))]
        #[diagnostic(help("xmem needs cuDNN 9.8 or newer; `--cudnn model` needs no library"))]
        Unusable { path: PathBuf, reason: String } => Usage,
        #[error("refusing to load cuDNN at `{}`: {reason}", shown(path))]
        #[diagnostic(help("`--cudnn model` needs no library"))]
        Refused { path: PathBuf, reason: String } => Usage,
        #[error("query to cuDNN failed: {reason}")]
        Worker { reason: String } => Unreadable,
    }
}
