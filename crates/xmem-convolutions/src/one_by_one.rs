//! The interface for one convolution at a time.

use crate::{ConvPass, ConvShape, ConvolutionQuestion, FittedModel, NoWorkspaces, Plans};
use std::fmt;
use xmem_profiles::Device;

/// A source that is asked one convolution at a time, while a job is lowered.
pub trait ConvolutionPlans: fmt::Debug + Send + Sync {
    /// The workspaces that PyTorch tries to get for one convolution call on `device`.
    fn plans(&self, pass: ConvPass, shape: &ConvShape, device: &Device) -> Plans;

    /// The origin of the answers, for people (`model fitted to cuDNN 9.19`).
    fn origin(&self) -> String;

    /// The reason why some answers have another origin; `None` if none has.
    fn complaint(&self) -> Option<String> {
        None
    }
}

impl ConvolutionPlans for FittedModel {
    fn plans(&self, pass: ConvPass, shape: &ConvShape, device: &Device) -> Plans {
        self.predict(&ConvolutionQuestion { pass, shape: *shape }, device.compute_capability)
    }

    fn origin(&self) -> String {
        Self::NAME.to_owned()
    }
}

impl ConvolutionPlans for NoWorkspaces {
    fn plans(&self, _: ConvPass, _: &ConvShape, _: &Device) -> Plans {
        Plans::none()
    }

    fn origin(&self) -> String {
        Self::NAME.to_owned()
    }
}
