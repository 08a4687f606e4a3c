//! Sources of plans: the trait, and the source that needs neither a table nor a library.

use crate::answers::ConvolutionAnswers;
use crate::kept::RecordedCudnn;
use crate::plans::Plans;
use crate::question::ConvolutionQuestion;
use std::fmt;
use xmem_devices::Device;

/// A source of convolution plans: the fitted model, a cuDNN library, answers given before.
pub trait ConvolutionSource: fmt::Debug + Send + Sync {
    /// Answers all questions for one device. A question without an answer of its own is answered by
    /// the [`FittedModel`](crate::FittedModel), and [`ConvolutionAnswers::warning`] says so.
    fn answer(&self, device: &Device, questions: &[ConvolutionQuestion]) -> ConvolutionAnswers;

    /// Answers all questions about the job of a recording. A source that was chosen on purpose does not look
    /// at what the recording says about cuDNN.
    fn answer_recorded(
        &self,
        device: &Device,
        questions: &[ConvolutionQuestion],
        _recorded: &RecordedCudnn,
    ) -> ConvolutionAnswers {
        self.answer(device, questions)
    }

    /// Returns whether nobody chose the source: the release of a library that was found need not be the one that
    /// the job will use.
    fn is_automatic(&self) -> bool {
        false
    }
}

/// Convolutions without workspaces, as if every one ran through an engine that needs none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWorkspaces;

impl NoWorkspaces {
    pub(crate) const NAME: &str = "none assumed";
}

impl ConvolutionSource for NoWorkspaces {
    fn answer(&self, _: &Device, questions: &[ConvolutionQuestion]) -> ConvolutionAnswers {
        ConvolutionAnswers::new(Self::NAME, questions.iter().map(|&q| (q, Plans::none())))
    }
}
