//! One convolution as PyTorch hands it to a library: pass, sizes, element type, memory format.

use xmem_types::Bytes;

/// The three convolutions that cuDNN distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConvPass {
    /// Output from input and weight; also the gradient of a transposed convolution's input.
    Forward,
    /// Gradient of the input; also the forward pass of a transposed convolution
    /// (`cudnn_convolution_transpose_forward` in `aten/src/ATen/native/cudnn/ConvShared.cpp`).
    BackwardData,
    /// Gradient of the weight.
    BackwardWeight,
}

/// Element type of all three tensors of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ElementType {
    /// `float32`, on tensor cores as TF32 where the device has it.
    F32,
    /// `float16`.
    F16,
    /// `bfloat16`.
    Bf16,
}

impl ElementType {
    /// Bytes of one element.
    #[must_use]
    pub const fn size(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

/// Memory format in which PyTorch passes the tensors.
///
/// Channels-last is chosen when the input or the weight is channels-last
/// (`cudnn_conv_suggest_memory_format` in `aten/src/ATen/native/ConvUtils.h`); the others are then
/// converted. Where height and width are both 1 the two formats are the same bytes, and the choice is
/// free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layout {
    /// Contiguous.
    Nchw,
    /// Channels-last.
    Nhwc,
}

/// The sizes that determine a convolution.
///
/// A one-dimensional convolution has height 1, padding 0, stride 1 and dilation 1 in the first
/// spatial dimension, as in PyTorch (`view1d_as_2d`). A three-dimensional one has a
/// [`volume`](Self::volume) in addition. A transposed convolution is given as the convolution of which
/// it is the gradient: `input` is the output of the transposed one, `output` its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConvShape {
    /// Batch, channels, height, width.
    pub input: [u64; 4],
    /// Filters, channels in a group, height, width.
    pub weight: [u64; 4],
    /// Batch, filters, height, width.
    pub output: [u64; 4],
    /// Vertical and horizontal stride.
    pub stride: [u64; 2],
    /// Vertical and horizontal padding, of each side.
    pub padding: [u64; 2],
    /// Vertical and horizontal dilation.
    pub dilation: [u64; 2],
    /// The first of three spatial dimensions; `None` in one or two dimensions.
    pub volume: Option<Volume>,
    /// True for the gradient that stands for a transposed convolution.
    pub transposed: bool,
    /// Groups.
    pub groups: u64,
    /// Element type.
    pub element: ElementType,
    /// Memory format.
    pub layout: Layout,
}

/// Depth, the outermost dimension of a three-dimensional convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Volume {
    /// Depth of the input.
    pub input: u64,
    /// Depth of the kernel.
    pub kernel: u64,
    /// Depth of the output.
    pub output: u64,
    /// Stride along it.
    pub stride: u64,
    /// Padding of each side.
    pub padding: u64,
    /// Dilation along it.
    pub dilation: u64,
}

impl ConvShape {
    /// Depth folded into height, for which the trees were not fitted: a rough answer.
    pub(crate) fn folded(&self) -> Self {
        let Some(volume) = self.volume else { return *self };
        let fold = |[n, c, h, w]: [u64; 4], depth: u64| [n, c, h.saturating_mul(depth), w];
        Self {
            input: fold(self.input, volume.input),
            weight: fold(self.weight, volume.kernel),
            output: fold(self.output, volume.output),
            volume: None,
            ..*self
        }
    }

    /// The bytes of input, weight and output together; saturates.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        let depths =
            self.volume.map_or([1; 3], |volume| [volume.input, volume.kernel, volume.output]);
        let elements = |dims: [u64; 4], depth: u64| {
            dims.iter().fold(depth, |product, &n| product.saturating_mul(n))
        };
        let all = [self.input, self.weight, self.output].into_iter().zip(depths);
        let elements =
            all.fold(0u64, |sum, (dims, depth)| sum.saturating_add(elements(dims, depth)));
        Bytes(elements.saturating_mul(self.element.size()))
    }

    /// True for one filter set per channel: the case with kernels of its own in PyTorch
    /// (`ConvParams::is_depthwise` in `aten/src/ATen/native/Convolution.cpp`).
    #[must_use]
    pub fn is_depthwise(&self) -> bool {
        let channels = self.input[1];
        !self.transposed
            && self.groups > 1
            && channels == self.groups
            && self.weight[0].is_multiple_of(channels)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A 3x3 convolution of 32 images of 56x56 with as many filters as channels.
    pub(crate) fn conv(
        channels: u64,
        groups: u64,
        element: ElementType,
        layout: Layout,
    ) -> ConvShape {
        ConvShape {
            input: [32, channels, 56, 56],
            weight: [channels, channels / groups, 3, 3],
            output: [32, channels, 56, 56],
            stride: [1, 1],
            padding: [1, 1],
            dilation: [1, 1],
            volume: None,
            transposed: false,
            groups,
            element,
            layout,
        }
    }
}
