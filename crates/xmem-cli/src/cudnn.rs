//! The source of the workspace sizes of convolutions: a cuDNN library, the model, or none.

use crate::Outcome;
use crate::args::{CudnnArgs, CudnnSource, CudnnWorkerArgs};
use crate::error::CliError;
use crate::exit::Exit;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xmem::{ConvolutionSource, FittedModel, NoWorkspaces};
use xmem_cudnn::{CachedAnswers, Cudnn, SourceSettings, WORKER, WorkerCommand};

/// The chosen source.
pub(crate) struct Convolutions {
    plans: Arc<dyn ConvolutionSource>,
    library: Option<Arc<Cudnn>>,
}

impl Convolutions {
    /// Returns the source that the arguments choose.
    pub(crate) fn choose(args: &CudnnArgs) -> Result<Self, CliError> {
        match &source(args) {
            CudnnSource::Model => Ok(Self::without(FittedModel)),
            CudnnSource::NoWorkspaces => Ok(Self::without(NoWorkspaces)),
            CudnnSource::Auto => {
                let library = xmem_cudnn::find(&SourceSettings::from_environment().search);
                Ok(library
                    .and_then(|library| with_worker(library, args))
                    .map_or_else(|| Self::without(FittedModel), Self::with))
            }
            CudnnSource::Path(path) => {
                if let Some(answers) = CachedAnswers::at(path) {
                    return Ok(Self::without(answers));
                }
                let cudnn = xmem_cudnn::at(path)
                    .and_then(|library| with_worker(library, args))
                    .ok_or_else(|| CliError::NoCudnn { path: path.clone() })?;
                cudnn.open().map_err(|reason| CliError::Cudnn { path: path.clone(), reason })?;
                Ok(Self::with(cudnn))
            }
        }
    }

    fn without(plans: impl ConvolutionSource + 'static) -> Self {
        Self { plans: Arc::new(plans), library: None }
    }

    fn with(cudnn: Cudnn) -> Self {
        let cudnn = Arc::new(cudnn);
        Self { plans: cudnn.clone(), library: Some(cudnn) }
    }

    pub(crate) fn plans(&self) -> Arc<dyn ConvolutionSource> {
        Arc::clone(&self.plans)
    }

    /// Writes the answers of the library to the cache.
    pub(crate) fn save(&self) {
        if let Some(Err(error)) = self.library.as_ref().map(|cudnn| cudnn.save()) {
            tracing::warn!(%error, "cannot write the cache of cuDNN answers");
        }
    }
}

/// The value of `--cudnn` or `XMEM_CUDNN`, if it is not the default.
pub(crate) fn explicit_choice(args: &CudnnArgs) -> Option<String> {
    match source(args) {
        CudnnSource::Auto => None,
        CudnnSource::Path(path) => Some(path.display().to_string()),
        CudnnSource::Model => Some("model".to_owned()),
        CudnnSource::NoWorkspaces => Some("none".to_owned()),
    }
}

fn source(args: &CudnnArgs) -> CudnnSource {
    let Ok(named) = CudnnSource::parse(&std::env::var("XMEM_CUDNN").unwrap_or_default());
    args.cudnn.clone().unwrap_or(named)
}

/// Runs the process that has the library loaded. It ends with its standard input, and ignores the
/// signals that a terminal sends to all processes: queries of traces in progress still need
/// answers.
pub(crate) fn serve(args: &CudnnWorkerArgs) -> Outcome {
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::default())
            .map_err(|error| CliError::CudnnWorker { reason: error.to_string() })?;
    }
    xmem_cudnn::serve(&args.library, io::stdin().lock(), io::stdout().lock())
        .map_err(|error| CliError::CudnnWorker { reason: error.to_string() })?;
    Ok(Exit::Fits)
}

/// Returns a client of the library in a second process of this program, or `None` if the path of
/// this program is unknown.
fn with_worker(library: PathBuf, args: &CudnnArgs) -> Option<Cudnn> {
    let program = std::env::current_exe().ok()?;
    let command = WorkerCommand { program, arguments: vec![WORKER.into()] };
    Some(Cudnn::new(library, command, cache_folder(args.cudnn_cache.as_deref())))
}

/// The cache folder; `None` for `off`, and without a home directory.
fn cache_folder(chosen: Option<&Path>) -> Option<PathBuf> {
    match chosen {
        Some(off) if off == Path::new("off") => None,
        Some(folder) => Some(folder.to_path_buf()),
        None => {
            let cache =
                folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
            Some(cache.join("xmem"))
        }
    }
}

/// The absolute path in an environment variable.
fn folder(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
