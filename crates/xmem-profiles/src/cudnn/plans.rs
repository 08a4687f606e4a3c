//! The seam between the rule for convolutions and what knows cuDNN's plans.

use super::{Basis, ConvPass, ConvShape, Workspace, uses_cudnn, workspace};
use crate::Device;
use std::fmt;
use xmem_types::Bytes;

/// What knows which plans PyTorch tries for a convolution: the model of this crate, or cuDNN itself.
pub trait ConvolutionPlans: fmt::Debug + Send + Sync {
    /// The workspaces that PyTorch tries to get for one convolution call on `device`.
    fn plans(&self, pass: ConvPass, shape: &ConvShape, device: &Device) -> Plans;

    /// Where the answers come from, for people (`model fitted to cuDNN 9.19`).
    fn origin(&self) -> String;

    /// Why some answers are not from there after all; none if all are.
    fn complaint(&self) -> Option<String> {
        None
    }
}

/// The workspaces of a convolution's plans, and how sure they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plans {
    /// In the order in which PyTorch tries them, as requested from the allocator (before any
    /// rounding): the first is taken unless memory is short (`try_configs` in
    /// `aten/src/ATen/native/cudnn/Conv_v8.cpp` goes on with the next plan when the allocation of
    /// the workspace fails). Empty where the convolution has no workspace at all.
    pub sizes: Vec<Bytes>,
    /// The first workspace is at least this.
    pub low: Bytes,
    /// The first workspace is at most this.
    pub high: Bytes,
    /// How they were found.
    pub basis: Basis,
}

impl Plans {
    /// No plan: PyTorch takes a kernel of its own, or none is to be assumed.
    #[must_use]
    pub const fn none() -> Self {
        let zero = Bytes::ZERO;
        Self { sizes: Vec::new(), low: zero, high: zero, basis: Basis::NotCudnn }
    }

    /// The workspace where memory is ample.
    #[must_use]
    pub fn first(&self) -> Bytes {
        self.sizes.first().copied().unwrap_or(Bytes::ZERO)
    }
}

/// Plans from the decision trees of [`workspace`].
///
/// Further plans are not in the trees; where memory is short, an engine without a workspace is
/// taken for the next. cuDNN has one for every convolution that was tabulated.
#[derive(Clone, Copy, Debug, Default)]
pub struct FittedPlans;

impl ConvolutionPlans for FittedPlans {
    fn plans(&self, pass: ConvPass, shape: &ConvShape, device: &Device) -> Plans {
        if !uses_cudnn(shape, device.compute_capability) {
            return Plans::none();
        }
        let Workspace { bytes, low, high, basis } =
            workspace(pass, shape, device.compute_capability, device.sms);
        Plans { sizes: vec![bytes, Bytes::ZERO], low, high, basis }
    }

    fn origin(&self) -> String {
        "model fitted to cuDNN 9.19".to_owned()
    }
}

/// Convolutions without workspaces, as if every one ran through an engine that needs none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWorkspaces;

impl ConvolutionPlans for NoWorkspaces {
    fn plans(&self, _: ConvPass, _: &ConvShape, _: &Device) -> Plans {
        Plans::none()
    }

    fn origin(&self) -> String {
        "none assumed".to_owned()
    }
}
