//! The source of the workspace sizes of convolutions, from the arguments.

mod args;
mod error;

pub(crate) use args::CudnnArgs;
pub(crate) use error::CudnnFailure;

use crate::error::CliError;
use std::path::Path;
use std::sync::Arc;
use xmem::convolutions::ConvolutionSource;
use xmem_cudnn::{
    AutomaticSource, ChoiceOrigin, FoundLibrary, SourceChoice, SourceError, SourceSettings, WORKER,
    WorkerCommand,
};

/// Returns the source that the arguments choose. A library that they name is opened at once.
pub(crate) fn source(args: &CudnnArgs) -> Result<Arc<dyn ConvolutionSource>, CliError> {
    let settings = settings(args);
    match settings.choice {
        SourceChoice::At(_) => settings.source().map_err(|error| {
            match error {
                SourceError::NotFound { path } => CudnnFailure::NotFound { path },
                SourceError::Refused { path, reason } => CudnnFailure::Refused { path, reason },
                SourceError::Unusable { library, reason } => {
                    CudnnFailure::Unusable { path: library, reason }
                }
                error => CudnnFailure::Worker { reason: error.to_string() },
            }
            .into()
        }),
        _ => Ok(Arc::new(AutomaticSource::new(settings))),
    }
}

/// What decides the source: the choice, and the library that is found or named, with its size and time.
pub(crate) fn identity(args: &CudnnArgs) -> String {
    let settings = settings(args);
    let library = match &settings.choice {
        SourceChoice::Automatic if settings.found == FoundLibrary::Load => {
            xmem_cudnn::find(&settings.search)
        }
        SourceChoice::At(path) => xmem_cudnn::at(path),
        _ => None,
    };
    let found = library.as_deref().and_then(|path| path.metadata().ok());
    let found = found.map(|found| (found.len(), found.modified().ok()));
    format!("{} {library:?} {found:?}", settings.choice)
}

/// The value of `--cudnn` or `XMEM_CUDNN`, if it is not the default.
pub(crate) fn explicit_choice(args: &CudnnArgs) -> Option<String> {
    let choice = settings(args).choice;
    (choice != SourceChoice::default()).then(|| choice.to_string())
}

/// The settings of the environment alone.
pub(crate) fn settings_of_environment() -> SourceSettings {
    settings(&CudnnArgs::default())
}

/// The settings of the environment, where the arguments have none. The worker is this program,
/// under whatever name.
fn settings(args: &CudnnArgs) -> SourceSettings {
    let environment = SourceSettings::from_environment();
    let this = std::env::current_exe().ok();
    let worker = this.map(|program| WorkerCommand { program, arguments: vec![WORKER.into()] });
    let cache = match args.cudnn_cache.as_deref() {
        None => environment.cache,
        Some(off) if off == Path::new("off") => None,
        Some(folder) => Some(folder.to_path_buf()),
    };
    let (choice, choice_origin) = match &args.cudnn {
        Some(choice) => (choice.clone(), ChoiceOrigin::Caller),
        None => (environment.choice, environment.choice_origin),
    };
    SourceSettings {
        choice,
        choice_origin,
        found: environment.found,
        search: environment.search,
        worker: worker.or(environment.worker),
        cache,
    }
}
