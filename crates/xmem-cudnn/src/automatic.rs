//! The default source of the command line and of the library.

use crate::settings::{SourceChoice, SourceSettings};
use std::sync::{Arc, OnceLock};
use xmem_convolutions::{ConvolutionAnswers, ConvolutionQuestion, ConvolutionSource, FittedModel};
use xmem_profiles::Device;

/// The source that [`SourceSettings`] choose, made at the first question.
///
/// Until a question is about a convolution that uses cuDNN, no folder is searched and no process is
/// started. Where the chosen library cannot be used, the fitted model answers, and the warning says why.
#[derive(Debug)]
pub struct AutomaticSource {
    settings: SourceSettings,
    chosen: OnceLock<Result<Arc<dyn ConvolutionSource>, String>>,
}

impl AutomaticSource {
    /// The source that `settings` choose.
    #[must_use]
    pub const fn new(settings: SourceSettings) -> Self {
        Self { settings, chosen: OnceLock::new() }
    }

    /// The source that the [environment of this process](SourceSettings::from_environment) chooses.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::new(SourceSettings::from_environment())
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
}
