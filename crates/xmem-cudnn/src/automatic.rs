//! The default source of the command line and of the library.

use crate::environment::{Choice, Environment};
use std::sync::{Arc, OnceLock};
use xmem_convolutions::{ConvolutionAnswers, ConvolutionQuestion, ConvolutionSource, FittedModel};
use xmem_profiles::Device;

/// The source that an [`Environment`] chooses, made at the first question.
///
/// Until a question is about a convolution that uses cuDNN, no folder is searched and no process is
/// started. Where the
/// chosen library cannot be used, the fitted model answers, and the warning says why.
#[derive(Debug)]
pub struct Automatic {
    environment: Environment,
    chosen: OnceLock<Result<Arc<dyn ConvolutionSource>, String>>,
}

impl Automatic {
    /// The source that `environment` chooses.
    #[must_use]
    pub const fn new(environment: Environment) -> Self {
        Self { environment, chosen: OnceLock::new() }
    }

    /// The source that the [environment of this process](Environment::of_this_process) chooses.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::new(Environment::of_this_process())
    }
}

impl ConvolutionSource for Automatic {
    fn answer(&self, device: &Device, questions: &[ConvolutionQuestion]) -> ConvolutionAnswers {
        let on = device.compute_capability;
        let library_wanted = matches!(self.environment.choice, Choice::Automatic | Choice::At(_));
        if library_wanted && !questions.iter().any(|question| question.shape.uses_cudnn(on)) {
            return FittedModel.answer(device, questions);
        }
        let chosen = self
            .chosen
            .get_or_init(|| self.environment.source().map_err(|error| error.to_string()));
        match chosen {
            Ok(source) => source.answer(device, questions),
            Err(reason) => FittedModel.answer(device, questions).with_warning(Some(reason.clone())),
        }
    }
}
