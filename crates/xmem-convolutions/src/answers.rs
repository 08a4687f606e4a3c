//! The answers of one source for one device, as plain data.

use crate::plans::Plans;
use crate::question::ConvolutionQuestion;
use crate::release::CudnnRelease;
use std::collections::BTreeMap;

/// The plans of a job's convolutions on one device, with their source.
///
/// It is a [`ConvolutionSource`](crate::ConvolutionSource) in turn: answers of a library can be replayed
/// where the library is not installed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvolutionAnswers {
    plans: BTreeMap<ConvolutionQuestion, Plans>,
    source: String,
    warning: Option<String>,
    doubt: Option<String>,
    release: Option<CudnnRelease>,
    other_release: Option<String>,
}

impl ConvolutionAnswers {
    /// Answers of a source that calls itself `source` (`model fitted to cuDNN 9.19`).
    #[must_use]
    pub fn new(
        source: impl Into<String>,
        plans: impl IntoIterator<Item = (ConvolutionQuestion, Plans)>,
    ) -> Self {
        Self { plans: plans.into_iter().collect(), source: source.into(), ..Self::default() }
    }

    /// Adds the reason why some answers come from another source, if there is one.
    #[must_use]
    pub fn with_warning(self, warning: Option<String>) -> Self {
        Self { warning, ..self }
    }

    /// Adds the reason why the source may not be believed, if there is one.
    #[must_use]
    pub fn with_doubt(self, doubt: Option<String>) -> Self {
        Self { doubt, ..self }
    }

    /// Adds the release of cuDNN whose answers these are, if a library gave them.
    #[must_use]
    pub fn with_release(self, release: Option<CudnnRelease>) -> Self {
        Self { release, ..self }
    }

    /// Adds the reason why the job runs with a release that may answer otherwise, if there is one.
    #[must_use]
    pub fn with_other_release(self, other_release: Option<String>) -> Self {
        Self { other_release, ..self }
    }

    /// The plans of one convolution; `None` if the source was not asked about it.
    #[must_use]
    pub fn get(&self, question: &ConvolutionQuestion) -> Option<&Plans> {
        self.plans.get(question)
    }

    /// All answers, in the order of the questions.
    pub fn iter(&self) -> impl Iterator<Item = (&ConvolutionQuestion, &Plans)> {
        self.plans.iter()
    }

    /// True if there is no convolution.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.plans.is_empty()
    }

    /// The source of the answers, for people (`model fitted to cuDNN 9.19`).
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The reason why some answers come from another source; `None` if all are from [`Self::source`].
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// The reason why [`Self::source`] may not be believed: other users can change it.
    #[must_use]
    pub fn doubt(&self) -> Option<&str> {
        self.doubt.as_deref()
    }

    /// The release of cuDNN that gave the answers; `None` for a model.
    #[must_use]
    pub const fn release(&self) -> Option<CudnnRelease> {
        self.release
    }

    /// The reason why the job runs with a release that may answer otherwise.
    #[must_use]
    pub fn other_release(&self) -> Option<&str> {
        self.other_release.as_deref()
    }
}
