//! The settings of a script, as `xmem profile` noted them, as the defaults of an estimate.

use std::sync::Arc;
use xmem_analyzer::recording::Recording;
use xmem_convolutions::{ConvolutionSource, KeptAnswers, NoWorkspaces, RecordedCudnn};
use xmem_orchestrator::{AttentionKernels, CudnnBenchmark, Target, requested_optimizer};
use xmem_types::{Diagnostics, Severity};

/// The target and the source of convolution plans, with the requests of the recording where they leave
/// the choice.
pub(crate) fn apply(
    (target, mut convolutions): (Target, Arc<dyn ConvolutionSource>),
    recording: &Recording,
    notes: &mut Diagnostics,
) -> (Target, Arc<dyn ConvolutionSource>) {
    let on = |name: &str| recording.backend(name).unwrap_or(true);
    let target = Target {
        optimizer: target.optimizer.or_else(|| requested_optimizer(recording)),
        attention: AttentionKernels {
            flash: on("flash_sdp"),
            efficient: on("mem_efficient_sdp"),
            cudnn: on("cudnn_sdp"),
        },
        cudnn_benchmark: match (target.cudnn_benchmark, recording.backend("cudnn.benchmark")) {
            (CudnnBenchmark::Unknown, Some(true)) => {
                CudnnBenchmark::On { limit: recording.cudnn_benchmark_limit.unwrap_or(10) }
            }
            (CudnnBenchmark::Unknown, Some(false)) => CudnnBenchmark::Off,
            (given, _) => given,
        },
        ..target
    };
    if !on("cudnn.enabled") {
        convolutions = Arc::new(NoWorkspaces);
        notes.report("cudnn-off", Severity::Warning, None, || {
            "the script disables cuDNN: convolutions are assumed to need no workspace; the temporary \
             memory of PyTorch's own kernels is not modeled"
                .into()
        });
    }
    (target, convolutions)
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
    use xmem_analyzer::recording::{Implementation, Optimizer};
    use xmem_orchestrator::OptimizerImpl;

    fn optimizer(implementation: Implementation) -> Optimizer {
        Optimizer {
            class: "torch.optim.adam.Adam".into(),
            implementation,
            capturable: false,
            differentiable: false,
            tensors: 1,
            steps: None,
            state: Vec::new(),
        }
    }

    fn applied(recording: &Recording, given: Option<OptimizerImpl>) -> (Target, Vec<&'static str>) {
        let device = xmem_profiles::find("rtx3060-12g").expect("known").clone();
        let mut notes = Diagnostics::default();
        let target = Target { optimizer: given, ..Target::new(device) };
        let source = Arc::new(xmem_convolutions::FittedModel);
        let (target, _) = apply((target, source), recording, &mut notes);
        (target, notes.iter().map(|d| d.code).collect())
    }

    #[test]
    fn optimizers_that_were_asked_the_same_decide_and_the_caller_overrules() {
        use Implementation::{Default as Usual, ForLoop, Fused};
        for (asked, given, expected) in [
            (vec![], None, None),
            (vec![Usual], None, None),
            (vec![Fused, Fused], None, Some(OptimizerImpl::Fused)),
            (vec![Fused, ForLoop], None, None),
            (vec![Fused], Some(OptimizerImpl::Foreach), Some(OptimizerImpl::Foreach)),
        ] {
            let optimizers = asked.iter().map(|&asked| optimizer(asked)).collect();
            let recording = Recording { optimizers, ..Recording::default() };
            assert_eq!(applied(&recording, given).0.optimizer, expected, "{asked:?}");
        }
    }

    #[test]
    fn switches_of_the_backends_count_and_what_is_not_modeled_is_noted() {
        for (switch, on, code) in
            [("cudnn.enabled", false, Some("cudnn-off")), ("cudnn.enabled", true, None)]
        {
            let backends = vec![(switch.to_owned(), on)];
            let (_, codes) = applied(&Recording { backends, ..Recording::default() }, None);
            assert_eq!(codes.first().copied(), code, "{switch} {on}");
        }
        let benchmark = |recording: Recording| applied(&recording, None).0.cudnn_benchmark;
        assert_eq!(benchmark(Recording::default()), CudnnBenchmark::Unknown);
        for (limit, on, expected) in [
            (None, true, CudnnBenchmark::On { limit: 10 }),
            (Some(0), true, CudnnBenchmark::On { limit: 0 }),
            (Some(0), false, CudnnBenchmark::Off),
        ] {
            let backends = vec![("cudnn.benchmark".to_owned(), on)];
            let cudnn_benchmark_limit = limit;
            let recording = Recording { backends, cudnn_benchmark_limit, ..Recording::default() };
            assert_eq!(benchmark(recording), expected, "{limit:?} {on}");
        }
        let backends = vec![("flash_sdp".to_owned(), false)];
        let (target, _) = applied(&Recording { backends, ..Recording::default() }, None);
        let kernels = target.attention;
        assert_eq!((kernels.flash, kernels.efficient, kernels.cudnn), (false, true, true));
    }
}
