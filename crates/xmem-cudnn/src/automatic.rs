//! The default source of the command line and of the library.

use crate::kept;
use crate::settings::{SourceChoice, SourceSettings};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use xmem_convolutions::{
    ConvolutionAnswers, ConvolutionQuestion, ConvolutionSource, FittedModel, RecordedCudnn,
};
use xmem_devices::Device;

/// The source that [`SourceSettings`] choose, made at the first question.
///
/// Until a question is about a convolution that uses cuDNN, no folder is searched and no process is
/// started. Where the chosen library cannot be used, the fitted model answers, and the warning says why.
///
/// Without a choice, the answers that were kept with a recording come first, then the library that the job was
/// recorded with if it is still there, then a library that is found.
#[derive(Debug)]
pub struct AutomaticSource {
    settings: SourceSettings,
    chosen: OnceLock<Result<Arc<dyn ConvolutionSource>, String>>,
    /// Libraries that recordings name; `None` for one that is not loaded.
    recorded: Mutex<BTreeMap<PathBuf, Option<Arc<dyn ConvolutionSource>>>>,
}

impl AutomaticSource {
    /// The source that `settings` choose.
    #[must_use]
    pub const fn new(settings: SourceSettings) -> Self {
        Self { settings, chosen: OnceLock::new(), recorded: Mutex::new(BTreeMap::new()) }
    }

    /// The source that the [environment of this process](SourceSettings::from_environment) chooses.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::new(SourceSettings::from_environment())
    }

    /// The library that a job was recorded with, if it is still there and may be loaded.
    fn recorded_library(&self, recorded: &RecordedCudnn) -> Option<Arc<dyn ConvolutionSource>> {
        let path = recorded.library.as_deref()?;
        // A panic of another thread leaves nothing half done here.
        let mut sources = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let source = sources.entry(path.to_path_buf()).or_insert_with(|| {
            let library = self.settings.recorded_library(path)?;
            library.open().ok()?;
            Some(Arc::new(library))
        });
        source.clone()
    }
}

impl ConvolutionSource for AutomaticSource {
    fn answer(&self, device: &Device, questions: &[ConvolutionQuestion]) -> ConvolutionAnswers {
        let on = device.compute_capability;
        let library_wanted =
            matches!(self.settings.choice, SourceChoice::Automatic | SourceChoice::At(_));
        if library_wanted && !questions.iter().any(|question| question.shape.uses_cudnn(on)) {
            return FittedModel.answer(device, questions);
        }
        let chosen = self.chosen.get_or_init(|| {
            let instead = FittedModel::NAME;
            let source = self.settings.source();
            source.map_err(|error| format!("{error}; the {instead} answers instead"))
        });
        match chosen {
            Ok(source) => source.answer(device, questions),
            Err(reason) => FittedModel.answer(device, questions).with_warning(Some(reason.clone())),
        }
    }

    fn answer_recorded(
        &self,
        device: &Device,
        questions: &[ConvolutionQuestion],
        recorded: &RecordedCudnn,
    ) -> ConvolutionAnswers {
        let on = device.compute_capability;
        if self.settings.choice != SourceChoice::Automatic
            || !questions.iter().any(|question| question.shape.uses_cudnn(on))
        {
            return self.answer(device, questions);
        }
        let kept = kept::of_device(&recorded.answers, device)
            .map(|kept| kept::answer(kept, device, questions));
        if let Some((answers, 0)) = kept {
            return answers;
        }
        if let Some(library) = self.recorded_library(recorded) {
            return library.answer(device, questions);
        }
        let found = self.answer(device, questions);
        match kept {
            // The model would answer more questions than the recording leaves open.
            Some((answers, _)) if found.release().is_none() && answers.release().is_some() => {
                answers
            }
            _ => found,
        }
    }

    fn is_automatic(&self) -> bool {
        self.settings.choice == SourceChoice::Automatic
    }
}
