//! A question about a convolution.

use crate::shape::{ConvPass, ConvShape};

/// A convolution whose plans are of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConvolutionQuestion {
    /// The pass.
    pub pass: ConvPass,
    /// Sizes, element type and memory format.
    pub shape: ConvShape,
}
