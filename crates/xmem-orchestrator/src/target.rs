//! What the schedule is made for.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use xmem_profiles::Device;

/// The GPU, the PyTorch version and the what-ifs of a lowering.
#[derive(Clone, Debug)]
pub struct Target {
    /// The GPU.
    pub device: Device,
    /// The PyTorch version that will run on it.
    pub torch: TorchVersion,
    /// How the optimizer runs on the GPU.
    pub optimizer: OptimizerImpl,
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
            optimizer: OptimizerImpl::default(),
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
    /// One kernel, no temporaries.
    Fused,
    /// Parameter by parameter, as on the CPU.
    ForLoop,
}

/// Where the loop clears gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroGradPlace {
    /// Just before backward.
    BeforeBackward,
    /// At the start of the iteration.
    IterationStart,
}

/// A PyTorch release, major and minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TorchVersion {
    /// 2 in 2.11.
    pub major: u16,
    /// 11 in 2.11.
    pub minor: u16,
}

impl Default for TorchVersion {
    /// The release that the recorded traces come from.
    fn default() -> Self {
        Self { major: 2, minor: 11 }
    }
}

impl fmt::Display for TorchVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for TorchVersion {
    type Err = String;

    /// Reads `2.6`, `2.6.0`, `2.11.0+cu130`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || format!("`{text}` is not a PyTorch version: write it like 2.6 or 2.11.0");
        let mut parts = text.trim().trim_start_matches('v').split('.');
        let mut number = || parts.next().and_then(|p| p.parse().ok()).ok_or_else(error);
        Ok(Self { major: number()?, minor: number()? })
    }
}
