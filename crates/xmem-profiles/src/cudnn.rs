//! How much workspace cuDNN asks for in a convolution, without cuDNN and without a GPU.
//!
//! PyTorch (`aten/src/ATen/native/cudnn/Conv_v8.cpp`, `run_single_conv` with `benchmark=False`)
//! asks cuDNN's heuristics (mode `INSTANT`) for engine configurations, takes the first one that
//! builds and allocates its workspace through the caching allocator for the length of the call.
//! Which engine that is has no closed form, so it is tabulated: one decision tree for each compute
//! capability, element type, memory format and pass, fitted to answers of cuDNN 9.19's own
//! heuristics. What an engine asks for does have closed forms, so a tree's leaf is a
//! recipe, and the answer is exact wherever the tree finds the right engine. The number of
//! multiprocessors turned out to have no influence: cuDNN gave the same plans for 28 and 82 SMs
//! of compute capability 8.6, and for 24 and 128 of 8.9.
//!
//! The table stands for `torch.backends.cudnn.allow_tf32 = True`, `benchmark = False` and
//! `deterministic = False`, which are PyTorch's defaults.

mod recipe;
mod table;

use crate::ComputeCapability;
use recipe::Terms;
use table::{Choice, Key};
use xmem_types::Bytes;

/// The three convolutions that cuDNN knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConvPass {
    /// Output from input and weight; also the gradient of a transposed convolution's input.
    Forward,
    /// Gradient of the input; also the forward pass of a transposed convolution
    /// (`cudnn_convolution_transpose_forward` in `native/cudnn/ConvShared.cpp`).
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

/// Memory format in which PyTorch hands the tensors over.
///
/// Channels-last is taken when the input or the weight is channels-last
/// (`cudnn_conv_suggest_memory_format` in `native/ConvUtils.h`); the others are then converted.
/// Where height and width are both 1 the two formats are the same bytes, and the choice is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layout {
    /// Contiguous.
    Nchw,
    /// Channels-last.
    Nhwc,
}

/// The sizes that decide about a convolution.
///
/// A one-dimensional convolution has height 1, padding 0, stride 1 and dilation 1 in the first
/// place, as PyTorch itself makes it (`view1d_as_2d`). A three-dimensional one is not covered by
/// the table: fold depth into height (size, kernel) for a rough answer. A transposed convolution
/// is given as the convolution of which it is the gradient: `input` is what the transposed one
/// puts out, `output` what it takes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Groups.
    pub groups: u64,
    /// Element type.
    pub element: ElementType,
    /// Memory format.
    pub layout: Layout,
}

impl ConvShape {
    /// One filter set for each channel: the case with kernels of its own in PyTorch
    /// (`ConvParams::is_depthwise` in `native/Convolution.cpp`).
    #[must_use]
    pub fn is_depthwise(&self) -> bool {
        let channels = self.input[1];
        self.groups > 1 && channels == self.groups && self.weight[0].is_multiple_of(channels)
    }
}

/// What a convolution allocates while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// The best guess, as requested from the allocator (before any rounding).
    pub bytes: Bytes,
    /// A size that 19 of 20 tabulated convolutions of the same kind reach or exceed.
    pub low: Bytes,
    /// A size that 19 of 20 tabulated convolutions of the same kind stay below.
    pub high: Bytes,
    /// How the guess was found.
    pub basis: Basis,
}

/// How sure a [`Workspace`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// All tabulated convolutions of the same kind follow the formula (within 2 % or 64 KiB).
    Formula,
    /// Only this percentage of them does; the others lie between the bounds.
    Likely {
        /// Per cent, 0 to 99.
        percent: u8,
    },
    /// The table has no such device; the nearest older one was taken.
    OtherDevice,
    /// The convolution does not go to cuDNN ([`uses_cudnn`]) and has no workspace.
    NotCudnn,
}

/// The workspace that PyTorch allocates for one convolution call.
///
/// `_sms` is part of the signature because a device is known by both; the answer does not depend
/// on it (see the module's documentation).
#[must_use]
pub fn workspace(
    pass: ConvPass,
    shape: &ConvShape,
    arch: ComputeCapability,
    _sms: u32,
) -> Workspace {
    if !uses_cudnn(shape, arch) {
        let none = Bytes::ZERO;
        return Workspace { bytes: none, low: none, high: none, basis: Basis::NotCudnn };
    }
    let (tabulated, exact_device) = tabulated_arch(arch);
    let key = Key { arch: tabulated, element: shape.element, layout: shape.layout, pass };
    let terms = Terms::of(shape);
    let Choice { recipe, spread } = table::choose(key, shape, &terms);
    let bytes = to_bytes(recipe.bytes(&terms));
    let (low, high, basis) = match spread {
        None => (bytes, bytes, Basis::Formula),
        Some(spread) => {
            let all = terms.all_bytes();
            (
                bytes.min(to_bytes(all * spread.low)),
                bytes.max(to_bytes(all * spread.high)),
                Basis::Likely { percent: spread.percent },
            )
        }
    };
    let basis = if exact_device { basis } else { Basis::OtherDevice };
    Workspace { bytes, low, high, basis }
}

/// Does PyTorch hand this convolution to cuDNN?
///
/// It does not where the batch or another dimension is empty, for `bfloat16` below compute
/// capability 8.0, and for most depthwise convolutions of contiguous tensors, which have native
/// kernels without a workspace (`ConvParams::use_cudnn`, `use_cudnn_depthwise` and
/// `check_cudnn_depthwise_workload_with_filter` in `native/Convolution.cpp`; kernels in
/// `native/cuda/DepthwiseConv2d.cu`).
#[must_use]
pub fn uses_cudnn(shape: &ConvShape, arch: ComputeCapability) -> bool {
    let empty = [shape.input, shape.weight, shape.output].iter().flatten().any(|&n| n == 0);
    if empty || (shape.element == ElementType::Bf16 && arch.major < 8) {
        return false;
    }
    if shape.layout == Layout::Nhwc || !shape.is_depthwise() {
        return true;
    }
    let too_large_for_the_native_kernel = |dims: [u64; 4]| {
        dims.iter().fold(1u64, |product, &n| product.saturating_mul(n)) > i32::MAX as u64
    };
    if too_large_for_the_native_kernel(shape.input) || too_large_for_the_native_kernel(shape.weight)
    {
        return true;
    }
    shape.element == ElementType::F16 && half_depthwise_is_faster_in_cudnn(shape)
}

/// The measured conditions that PyTorch puts on contiguous half-precision depthwise convolutions.
fn half_depthwise_is_faster_in_cudnn(shape: &ConvShape) -> bool {
    let [batch, channels, height, width] = shape.input;
    let [_, _, kernel_height, kernel_width] = shape.weight;
    let stride = shape.stride[1];
    let even_steps = shape.stride[0] == stride || height == 1;
    if shape.dilation != [1, 1] || !even_steps || channels < 32 {
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

/// The tabulated compute capability that stands for `arch`, and whether it is that one.
fn tabulated_arch(arch: ComputeCapability) -> (u8, bool) {
    match (arch.major, arch.minor) {
        (0..7, _) | (7, 0..5) => (75, false),
        (7, _) => (75, true),
        (8, 0) => (80, true),
        (8, 9..) => (89, true),
        (8, _) => (86, true),
        (9, _) => (90, true),
        _ => (90, false),
    }
}

fn to_bytes(size: f64) -> Bytes {
    Bytes(size as u64)
}
