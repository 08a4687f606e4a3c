//! What knows the workspaces of convolutions: a cuDNN library, the model, or nothing.

use crate::Outcome;
use crate::args::{CudnnArgs, CudnnSource, CudnnWorkerArgs};
use crate::complaint::Complaint;
use crate::exit::Exit;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xmem::{ConvolutionPlans, FittedModel, NoWorkspaces};
use xmem_cudnn::{CachedAnswers, Cudnn, Environment, WORKER, WorkerCommand};

/// What was chosen.
pub(crate) struct Convolutions {
    plans: Arc<dyn ConvolutionPlans>,
    library: Option<Arc<Cudnn>>,
}

impl Convolutions {
    /// Chooses what the arguments say.
    pub(crate) fn choose(args: &CudnnArgs) -> Result<Self, Complaint> {
        match &source(args) {
            CudnnSource::Model => Ok(Self::without(FittedModel)),
            CudnnSource::NoWorkspaces => Ok(Self::without(NoWorkspaces)),
            CudnnSource::Auto => {
                let library = xmem_cudnn::find(&Environment::of_this_process().search);
                Ok(library
                    .and_then(|library| asking(library, args))
                    .map_or_else(|| Self::without(FittedModel), Self::with))
            }
            CudnnSource::At(path) => {
                if let Some(answers) = CachedAnswers::at(path) {
                    return Ok(Self::without(answers));
                }
                let cudnn = xmem_cudnn::at(path)
                    .and_then(|library| asking(library, args))
                    .ok_or_else(|| Complaint::NoCudnn { path: path.clone() })?;
                cudnn.open().map_err(|reason| Complaint::Cudnn { path: path.clone(), reason })?;
                Ok(Self::with(cudnn))
            }
        }
    }

    fn without(plans: impl ConvolutionPlans + 'static) -> Self {
        Self { plans: Arc::new(plans), library: None }
    }

    fn with(cudnn: Cudnn) -> Self {
        let cudnn = Arc::new(cudnn);
        Self { plans: cudnn.clone(), library: Some(cudnn) }
    }

    pub(crate) fn plans(&self) -> Arc<dyn ConvolutionPlans> {
        Arc::clone(&self.plans)
    }

    /// Keeps what the library answered for the next time.
    pub(crate) fn save(&self) {
        if let Some(Err(error)) = self.library.as_ref().map(|cudnn| cudnn.save()) {
            tracing::warn!(%error, "the answers of cuDNN could not be kept");
        }
    }
}

/// What the arguments or the environment say, where it is not the default.
pub(crate) fn asked(args: &CudnnArgs) -> Option<String> {
    match source(args) {
        CudnnSource::Auto => None,
        CudnnSource::At(path) => Some(path.display().to_string()),
        CudnnSource::Model => Some("model".to_owned()),
        CudnnSource::NoWorkspaces => Some("none".to_owned()),
    }
}

fn source(args: &CudnnArgs) -> CudnnSource {
    let Ok(named) = CudnnSource::parse(&std::env::var("XMEM_CUDNN").unwrap_or_default());
    args.cudnn.clone().unwrap_or(named)
}

/// The process that has the library loaded. It ends when nobody asks any more, and not by the signal
/// that a terminal sends to all processes: the questions of a trace at work are still to be answered.
pub(crate) fn serve(args: &CudnnWorkerArgs) -> Outcome {
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::default())
            .map_err(|error| Complaint::CudnnWorker { reason: error.to_string() })?;
    }
    xmem_cudnn::serve(&args.library, io::stdin().lock(), io::stdout().lock())
        .map_err(|error| Complaint::CudnnWorker { reason: error.to_string() })?;
    Ok(Exit::Fits)
}

/// Asks a library through a second process of this program; none if the program cannot find itself.
fn asking(library: PathBuf, args: &CudnnArgs) -> Option<Cudnn> {
    let program = std::env::current_exe().ok()?;
    let command = WorkerCommand { program, arguments: vec![WORKER.into()] };
    Some(Cudnn::new(library, command, cache_folder(args.cudnn_cache.as_deref())))
}

/// None for `off`, and where there is no home.
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

/// The folder that a variable of the environment names.
fn folder(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
