//! The choice between cuDNN and PyTorch's own kernels for a convolution.

use crate::{ConvShape, ElementType, Layout};
use xmem_devices::ComputeCapability;

impl ConvShape {
    /// True if PyTorch hands this convolution to cuDNN on a device of that compute capability.
    ///
    /// It does not where the batch or another dimension is empty, for `bfloat16` below compute
    /// capability 8.0, and for most depthwise convolutions of contiguous tensors, which have native
    /// kernels without a workspace (`ConvParams::use_cudnn`, `use_cudnn_depthwise` and
    /// `check_cudnn_depthwise_workload_with_filter` in `aten/src/ATen/native/Convolution.cpp`; kernels
    /// in `aten/src/ATen/native/cuda/DepthwiseConv2d.cu`).
    #[must_use]
    pub fn uses_cudnn(&self, on: ComputeCapability) -> bool {
        let empty = [self.input, self.weight, self.output].iter().flatten().any(|&n| n == 0);
        if empty || (self.element == ElementType::Bf16 && on.major < 8) {
            return false;
        }
        if self.layout == Layout::Nhwc || !self.is_depthwise() {
            return true;
        }
        if too_large_for_the_native_kernel(self.input)
            || too_large_for_the_native_kernel(self.weight)
        {
            return true;
        }
        self.element == ElementType::F16 && half_depthwise_is_faster_in_cudnn(self)
    }
}

fn too_large_for_the_native_kernel(dims: [u64; 4]) -> bool {
    dims.iter().fold(1u64, |product, &n| product.saturating_mul(n)) > i32::MAX as u64
}

/// The measured conditions that PyTorch puts on contiguous half-precision depthwise convolutions.
fn half_depthwise_is_faster_in_cudnn(shape: &ConvShape) -> bool {
    let [batch, channels, height, width] = shape.input;
    let [_, _, kernel_height, kernel_width] = shape.weight;
    let stride = shape.stride[1];
    let even_steps = shape.stride[0] == stride || height == 1;
    if shape.volume.is_some() || shape.dilation != [1, 1] || !even_steps || channels < 32 {
        return false;
    }
    if height == 1 && stride == 1 {
        return true;
    }
    if kernel_height != kernel_width || ![1, 3, 5].contains(&kernel_width) || width < 7 {
        return false;
    }
    match (stride, kernel_width) {
        (1, _) => true,
        (2, 1) if batch == 1 => width <= 28,
        (2, 1) => batch <= 16 && channels >= 128 && width <= 7,
        (2, _) => batch == 1 || channels >= 512 || (channels >= 256 && width >= 28),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Volume;
    use crate::shape::tests::conv;

    const A100: ComputeCapability = ComputeCapability { major: 8, minor: 0 };
    const T4: ComputeCapability = ComputeCapability { major: 7, minor: 5 };

    #[test]
    fn depthwise_convolutions_mostly_have_native_kernels() {
        let f32_contiguous = conv(96, 96, ElementType::F32, Layout::Nchw);
        assert!(f32_contiguous.is_depthwise());
        assert!(!f32_contiguous.uses_cudnn(A100));

        assert!(conv(96, 96, ElementType::F32, Layout::Nhwc).uses_cudnn(A100));
        assert!(conv(96, 96, ElementType::F16, Layout::Nchw).uses_cudnn(A100));
        assert!(!conv(96, 96, ElementType::Bf16, Layout::Nchw).uses_cudnn(A100));
        assert!(!conv(16, 16, ElementType::F16, Layout::Nchw).uses_cudnn(A100));
        let seven =
            ConvShape { weight: [96, 1, 7, 7], ..conv(96, 96, ElementType::F16, Layout::Nchw) };
        assert!(!seven.uses_cudnn(A100));
        assert!(conv(96, 32, ElementType::F32, Layout::Nchw).uses_cudnn(A100));
    }

    #[test]
    fn half_precision_depthwise_with_stride_two_needs_many_channels() {
        let strided = |channels| ConvShape {
            stride: [2, 2],
            ..conv(channels, channels, ElementType::F16, Layout::Nchw)
        };
        assert!(!strided(128).uses_cudnn(A100));
        assert!(strided(256).uses_cudnn(A100));
        let one_image = ConvShape { input: [1, 128, 56, 56], ..strided(128) };
        assert!(one_image.uses_cudnn(A100));
    }

    #[test]
    fn depthwise_convolutions_have_native_kernels_unless_they_are_transposed() {
        let plain = conv(96, 96, ElementType::F32, Layout::Nchw);
        assert!(!plain.uses_cudnn(A100));
        assert!(ConvShape { transposed: true, ..plain }.uses_cudnn(A100));
        let half = conv(96, 96, ElementType::F16, Layout::Nchw);
        let depth = Volume { input: 8, kernel: 3, output: 8, stride: 1, padding: 1, dilation: 1 };
        assert!(half.uses_cudnn(A100));
        assert!(!ConvShape { volume: Some(depth), ..half }.uses_cudnn(A100));
    }

    #[test]
    fn bfloat16_needs_compute_capability_8() {
        let shape = conv(64, 1, ElementType::Bf16, Layout::Nchw);
        assert!(shape.uses_cudnn(A100));
        assert!(!shape.uses_cudnn(T4));
    }

    #[test]
    fn an_empty_batch_does_not_reach_cudnn() {
        let mut shape = conv(64, 1, ElementType::F32, Layout::Nchw);
        (shape.input[0], shape.output[0]) = (0, 0);
        assert!(!shape.uses_cudnn(A100));
    }
}
