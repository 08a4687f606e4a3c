//! What the schedule is made for.

use std::collections::BTreeSet;
use std::sync::Arc;
use xmem_convolutions::{ConvolutionPlans, FittedModel};
use xmem_profiles::Device;
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
    /// What knows the workspaces of convolutions.
    pub convolutions: Arc<dyn ConvolutionPlans>,
    /// How optimizers run on the GPU; none leaves it to what the recording says that the script asked
    /// for, and else to PyTorch's default.
    pub optimizer: Option<OptimizerImpl>,
    /// The kernels of attention that the script allows.
    pub attention: AttentionKernels,
    /// Moves `zero_grad` to another place; none keeps the trace's.
    pub zero_grad: Option<ZeroGradPlace>,
    /// Whether `zero_grad` drops gradients (`set_to_none=True`, PyTorch's default since 2.0); false
    /// keeps them for ever, as zeros.
    pub set_to_none: bool,
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
            convolutions: Arc::new(FittedModel),
            optimizer: None,
            attention: AttentionKernels::default(),
            zero_grad: None,
            set_to_none: true,
            disabled: BTreeSet::new(),
        }
    }
}

/// How an optimizer's step is carried out on the GPU.
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

/// Kernels of `scaled_dot_product_attention` that a program can switch off (`torch.backends.cuda`,
/// `enable_flash_sdp` and its like); what is left is the math path.
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

/// Where the loop clears gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroGradPlace {
    /// Just before backward.
    BeforeBackward,
    /// At the start of the iteration.
    IterationStart,
}
