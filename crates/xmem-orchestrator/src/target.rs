//! The target of a schedule: GPU, PyTorch version and what-ifs.

use crate::change::ChosenWhatIf;
use crate::completion::StreamCompletion;
use crate::resharding::Resharding;
use std::collections::BTreeSet;
use xmem_analyzer::recording::{Implementation, Recording};
use xmem_convolutions::PlanChoice;
use xmem_devices::Device;
use xmem_types::{Bytes, TorchVersion};

/// The GPU, the PyTorch version and the what-ifs of a lowering.
#[derive(Clone, Debug)]
pub struct Target {
    /// The GPU.
    pub device: Device,
    /// The PyTorch version that will run on it.
    pub torch: TorchVersion,
    /// Size of the cuBLAS workspace, if `CUBLAS_WORKSPACE_CONFIG` chooses one.
    pub cublas_workspace: Option<Bytes>,
    /// The implementation of optimizers on the GPU; `None` leaves it to the script's request, if the
    /// recording has it, and otherwise to PyTorch's default.
    pub optimizer: Option<OptimizerImpl>,
    /// The kernels of attention that the script allows.
    pub attention: AttentionKernels,
    /// The choice of convolutions' plans that the script makes.
    pub cudnn_benchmark: CudnnBenchmark,
    /// Another place of `zero_grad`; `None` keeps the trace's.
    pub zero_grad: Option<ZeroGradPlace>,
    /// True if `zero_grad` drops gradients (`set_to_none=True`, PyTorch's default since 2.0); false
    /// keeps them as zeros.
    pub set_to_none: bool,
    /// Another number of ranks; `None` keeps the recording's.
    pub resharding: Option<Resharding>,
    /// The time at which work on the streams of a recorded GPU is complete.
    pub completion: StreamCompletion,
    /// The what-ifs, each once, in the order of [`WHAT_IFS`](crate::WHAT_IFS). The fields above have what they say of the
    /// target once [`with_what_ifs`](Self::with_what_ifs) has been called.
    pub what_ifs: Vec<ChosenWhatIf>,
    /// Names of rules that are switched off.
    pub disabled: BTreeSet<String>,
}

impl Target {
    /// `device` with PyTorch's defaults.
    #[must_use]
    pub fn new(device: Device) -> Self {
        Self {
            device,
            torch: TorchVersion::default(),
            cublas_workspace: None,
            optimizer: None,
            attention: AttentionKernels::default(),
            cudnn_benchmark: CudnnBenchmark::default(),
            zero_grad: None,
            set_to_none: true,
            resharding: None,
            completion: StreamCompletion::AtOnce,
            what_ifs: Vec::new(),
            disabled: BTreeSet::new(),
        }
    }
}

impl Target {
    /// The target with what the script requested, as a recording notes it, where nothing else is chosen.
    #[must_use]
    pub fn with_requests(self, recording: &Recording) -> Self {
        let on = |name: &str| recording.backend(name).unwrap_or(true);
        Self {
            optimizer: self.optimizer.or_else(|| requested_optimizer(recording)),
            attention: AttentionKernels {
                flash: on("flash_sdp"),
                efficient: on("mem_efficient_sdp"),
                cudnn: on("cudnn_sdp"),
            },
            cudnn_benchmark: match (self.cudnn_benchmark, recording.backend("cudnn.benchmark")) {
                (CudnnBenchmark::Unknown, Some(true)) => {
                    CudnnBenchmark::On { limit: recording.cudnn_benchmark_limit.unwrap_or(10) }
                }
                (CudnnBenchmark::Unknown, Some(false)) => CudnnBenchmark::Off,
                (given, _) => given,
            },
            ..self
        }
    }
}

/// The implementation of an optimizer's step on the GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OptimizerImpl {
    /// Whole parameter lists at once: PyTorch's default on CUDA
    /// (torch/optim/optimizer.py, `_default_to_fused_or_foreach`).
    #[default]
    Foreach,
    /// One kernel, no temporaries. Classes that have none on CUDA run over lists.
    Fused,
    /// Parameter by parameter, as on the CPU.
    ForLoop,
}

impl OptimizerImpl {
    /// All implementations.
    pub const ALL: [Self; 3] = [Self::Foreach, Self::Fused, Self::ForLoop];

    /// The name in options and in machine-readable output (`for-loop`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Foreach => "foreach",
            Self::Fused => "fused",
            Self::ForLoop => "for-loop",
        }
    }
}

/// Kernels of `scaled_dot_product_attention` that a program can switch off (`torch.backends.cuda`,
/// `enable_flash_sdp` and its like); the math path is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionKernels {
    /// FlashAttention.
    pub flash: bool,
    /// The memory-efficient kernel.
    pub efficient: bool,
    /// cuDNN's.
    pub cudnn: bool,
}

impl Default for AttentionKernels {
    fn default() -> Self {
        Self { flash: true, efficient: true, cudnn: true }
    }
}

/// The script's setting of `torch.backends.cudnn.benchmark`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CudnnBenchmark {
    /// The trace does not say; taken as [`Off`](Self::Off), PyTorch's default.
    #[default]
    Unknown,
    /// The heuristics choose.
    Off,
    /// All plans of a convolution are tried.
    On {
        /// The number of plans that are timed; 0 is all of them (`benchmark_limit`).
        limit: u32,
    },
}

impl CudnnBenchmark {
    pub(crate) const fn choice(self) -> PlanChoice {
        match self {
            Self::Unknown | Self::Off => PlanChoice::Heuristics,
            Self::On { limit } => PlanChoice::Benchmark { limit },
        }
    }
}

/// The place at which the loop clears gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroGradPlace {
    /// Just before backward.
    BeforeBackward,
    /// At the start of the iteration.
    IterationStart,
}

impl ZeroGradPlace {
    /// All places.
    pub const ALL: [Self; 2] = [Self::BeforeBackward, Self::IterationStart];

    /// The name in options and in machine-readable output, that of the xMem paper (`pos0`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforeBackward => "pos0",
            Self::IterationStart => "pos1",
        }
    }
}

/// The implementation that the script requested, if it requested the same of every optimizer.
#[must_use]
pub fn requested_optimizer(recording: &Recording) -> Option<OptimizerImpl> {
    let (first, others) = recording.optimizers.split_first()?;
    let alike = |o: &_| (first.implementation, first.differentiable) == *o;
    if first.differentiable || !others.iter().all(|o| alike(&(o.implementation, o.differentiable)))
    {
        return None;
    }
    match first.implementation {
        Implementation::Default => None,
        Implementation::Foreach => Some(OptimizerImpl::Foreach),
        Implementation::Fused => Some(OptimizerImpl::Fused),
        Implementation::ForLoop => Some(OptimizerImpl::ForLoop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_analyzer::recording::{Implementation, Optimizer};

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

    fn target(recording: &Recording, given: Option<OptimizerImpl>) -> Target {
        let device = xmem_devices::find("rtx3060-12g").expect("known").clone();
        Target { optimizer: given, ..Target::new(device) }.with_requests(recording)
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
            assert_eq!(target(&recording, given).optimizer, expected, "{asked:?}");
        }
    }

    #[test]
    fn switches_of_the_backends_count() {
        let benchmark = |recording: Recording| target(&recording, None).cudnn_benchmark;
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
        let kernels = target(&Recording { backends, ..Recording::default() }, None).attention;
        assert_eq!((kernels.flash, kernels.efficient, kernels.cudnn), (false, true, true));
    }
}
