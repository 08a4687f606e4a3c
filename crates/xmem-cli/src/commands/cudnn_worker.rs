//! `xmem cudnn-worker`: the process that has a cuDNN library loaded.

use crate::commands::Outcome;
use crate::cudnn::CudnnFailure;
use crate::exit::Exit;
use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of the process that [`xmem_cudnn::Cudnn`] starts.
#[derive(Debug, Args)]
pub(crate) struct CudnnWorkerArgs {
    /// Path of the library
    #[arg(value_name = "LIBRARY")]
    pub(crate) library: PathBuf,
}

/// Runs the process that has the library loaded. It ends with its standard input, and ignores the
/// signals that a terminal sends to all processes: queries of traces in progress still need
/// answers.
pub(crate) fn run(args: &CudnnWorkerArgs) -> Outcome {
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::default())
            .map_err(|error| CudnnFailure::Worker { reason: error.to_string() })?;
    }
    xmem_cudnn::serve(&args.library, io::stdin().lock(), io::stdout().lock())
        .map_err(|error| CudnnFailure::Worker { reason: error.to_string() })?;
    Ok(Exit::Fits)
}
