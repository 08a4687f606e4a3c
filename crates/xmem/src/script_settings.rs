//! What a script sets of cuDNN, as `xmem profile` noted it, for the source of convolution plans.

use std::sync::Arc;
use xmem_analyzer::recording::Recording;
use xmem_convolutions::{ConvolutionSource, KeptAnswers, NoWorkspaces, RecordedCudnn};
use xmem_types::{Diagnostics, Severity};

/// The source of convolution plans: none where the script disables cuDNN.
pub(crate) fn source(
    given: &Arc<dyn ConvolutionSource>,
    recording: &Recording,
    notes: &mut Diagnostics,
) -> Arc<dyn ConvolutionSource> {
    if recording.backend("cudnn.enabled").unwrap_or(true) {
        return Arc::clone(given);
    }
    notes.report("cudnn-off", Severity::Warning, None, || {
        "the script disables cuDNN: convolutions are assumed to need no workspace; the temporary \
         memory of PyTorch's own kernels is not modeled"
            .into()
    });
    Arc::new(NoWorkspaces)
}

/// What a recording says about cuDNN.
pub(crate) fn cudnn(recording: &Recording) -> RecordedCudnn {
    let library = recording.cudnn.as_ref();
    let answers = recording.cudnn_answers.iter().map(|kept| KeptAnswers {
        release: kept.release.clone(),
        device: kept.device.clone(),
        workspaces: kept.workspaces.clone(),
    });
    RecordedCudnn {
        library: library.and_then(|found| Some(found.library.as_ref()?.into())),
        release: library.and_then(|found| found.release.clone()),
        answers: answers.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_without_cudnn_is_noted() {
        for (on, code) in [(false, Some("cudnn-off")), (true, None)] {
            let backends = vec![("cudnn.enabled".to_owned(), on)];
            let mut notes = Diagnostics::default();
            let given: Arc<dyn ConvolutionSource> = Arc::new(xmem_convolutions::FittedModel);
            source(&given, &Recording { backends, ..Recording::default() }, &mut notes);
            assert_eq!(notes.iter().map(|note| note.code).next(), code, "{on}");
        }
    }
}
