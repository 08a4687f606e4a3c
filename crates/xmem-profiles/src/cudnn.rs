//! How much workspace cuDNN asks for in a convolution, without cuDNN and without a GPU.
//!
//! PyTorch (`aten/src/ATen/native/cudnn/Conv_v8.cpp`, `run_single_conv` with `benchmark=False`)
//! asks cuDNN's heuristics (mode `INSTANT`) for engine configurations, takes the first one that
//! builds and allocates its workspace through the caching allocator for the length of the call.
//! Which engine that is has no closed form, so it is tabulated: decision trees for each element type,
//! memory format and pass, and for some each compute capability, fitted to answers of cuDNN 9.19's
//! own heuristics (`data/cudnn-9.19.md`). What an engine asks for does have closed
//! forms, so a tree's leaf is a recipe, and the answer is exact wherever the tree finds the right
//! engine. Of a device, hardly anything but the compute capability turned out to matter: other
//! numbers of multiprocessors, cache and memory sizes gave the same plans, and another memory clock
//! others for about 1 % of convolutions on 9.0.
//!
//! `bfloat16` takes the trees of `float16`: on compute capability 8.0 cuDNN gave both the same
//! workspace for 93 to 96 % of 6 000 convolutions.
//!
//! The table stands for `torch.backends.cudnn.allow_tf32 = True`, `benchmark = False` and
//! `deterministic = False`, which are PyTorch's defaults.

mod plans;
mod recipe;
mod table;

pub use plans::{ConvolutionPlans, FittedPlans, NoWorkspaces, Plans};

use crate::ComputeCapability;
use recipe::Terms;
use table::{Choice, Key, Precision};
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
/// place, as PyTorch itself makes it (`view1d_as_2d`). A three-dimensional one has a
/// [`volume`](Self::volume) besides. A transposed convolution
/// is given as the convolution of which it is the gradient: `input` is what the transposed one
/// puts out, `output` what it takes in.
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
    /// The first of three spatial dimensions; none in one or two dimensions.
    pub volume: Option<Volume>,
    /// Whether it is the gradient that stands for a transposed convolution.
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
    /// Depth folded into height, for which the trees were not made: a rough answer.
    fn folded(&self) -> Self {
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

    /// One filter set for each channel: the case with kernels of its own in PyTorch
    /// (`ConvParams::is_depthwise` in `native/Convolution.cpp`).
    #[must_use]
    pub fn is_depthwise(&self) -> bool {
        let channels = self.input[1];
        !self.transposed
            && self.groups > 1
            && channels == self.groups
            && self.weight[0].is_multiple_of(channels)
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
    /// cuDNN itself was asked about this convolution.
    Library,
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
    let element = match shape.element {
        ElementType::F32 => Precision::F32,
        ElementType::F16 | ElementType::Bf16 => Precision::F16,
    };
    let key = Key { arch: tabulated, element, layout: shape.layout, pass };
    let shape = &shape.folded();
    let terms = Terms::of(shape);
    let Choice { recipe, spread } = table::choose(key, shape, &terms);
    let bytes = to_bytes(recipe.bytes(&terms));
    let (low, high, basis) = match spread {
        None if shape.element == ElementType::Bf16 => {
            (bytes, bytes, Basis::Likely { percent: SAME_FOR_BFLOAT16 })
        }
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

/// How often, in per cent, `bfloat16` got the workspace of `float16`.
const SAME_FOR_BFLOAT16: u8 = 93;

/// The tabulated compute capability that stands for `arch`, and whether it is that one.
fn tabulated_arch(arch: ComputeCapability) -> (u8, bool) {
    match (arch.major, arch.minor) {
        (0..7, _) | (7, 0..5) => (75, false),
        (7, _) => (75, true),
        (8, 0) => (80, true),
        (8, 9..) => (89, true),
        (8, _) => (86, true),
        (9, _) => (90, true),
        (10, 0) => (100, true),
        (10 | 11, _) => (100, false),
        (12, 0) => (120, true),
        _ => (120, false),
    }
}

fn to_bytes(size: f64) -> Bytes {
    Bytes(size as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A100: ComputeCapability = ComputeCapability { major: 8, minor: 0 };
    const T4: ComputeCapability = ComputeCapability { major: 7, minor: 5 };

    fn conv(channels: u64, groups: u64, element: ElementType, layout: Layout) -> ConvShape {
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

    #[test]
    fn depthwise_convolutions_mostly_have_native_kernels() {
        let f32_contiguous = conv(96, 96, ElementType::F32, Layout::Nchw);
        assert!(f32_contiguous.is_depthwise());
        assert!(!uses_cudnn(&f32_contiguous, A100));
        let none = workspace(ConvPass::BackwardWeight, &f32_contiguous, A100, 108);
        assert_eq!((none.bytes, none.basis), (Bytes::ZERO, Basis::NotCudnn));

        assert!(uses_cudnn(&conv(96, 96, ElementType::F32, Layout::Nhwc), A100));
        assert!(uses_cudnn(&conv(96, 96, ElementType::F16, Layout::Nchw), A100));
        assert!(!uses_cudnn(&conv(96, 96, ElementType::Bf16, Layout::Nchw), A100));
        assert!(!uses_cudnn(&conv(16, 16, ElementType::F16, Layout::Nchw), A100));
        let seven =
            ConvShape { weight: [96, 1, 7, 7], ..conv(96, 96, ElementType::F16, Layout::Nchw) };
        assert!(!uses_cudnn(&seven, A100));
        assert!(uses_cudnn(&conv(96, 32, ElementType::F32, Layout::Nchw), A100));
    }

    #[test]
    fn half_precision_depthwise_with_stride_two_needs_many_channels() {
        let strided = |channels| ConvShape {
            stride: [2, 2],
            ..conv(channels, channels, ElementType::F16, Layout::Nchw)
        };
        assert!(!uses_cudnn(&strided(128), A100));
        assert!(uses_cudnn(&strided(256), A100));
        let one_image = ConvShape { input: [1, 128, 56, 56], ..strided(128) };
        assert!(uses_cudnn(&one_image, A100));
    }

    #[test]
    fn depthwise_convolutions_have_native_kernels_unless_they_are_transposed() {
        let plain = conv(96, 96, ElementType::F32, Layout::Nchw);
        assert!(!uses_cudnn(&plain, A100));
        assert!(uses_cudnn(&ConvShape { transposed: true, ..plain }, A100));
        let half = conv(96, 96, ElementType::F16, Layout::Nchw);
        let depth = Volume { input: 8, kernel: 3, output: 8, stride: 1, padding: 1, dilation: 1 };
        assert!(uses_cudnn(&half, A100));
        assert!(!uses_cudnn(&ConvShape { volume: Some(depth), ..half }, A100));
    }

    #[test]
    fn bfloat16_needs_compute_capability_8() {
        let shape = conv(64, 1, ElementType::Bf16, Layout::Nchw);
        assert!(uses_cudnn(&shape, A100));
        assert!(!uses_cudnn(&shape, T4));
    }

    #[test]
    fn an_empty_batch_does_not_reach_cudnn() {
        let mut shape = conv(64, 1, ElementType::F32, Layout::Nchw);
        (shape.input[0], shape.output[0]) = (0, 0);
        assert!(!uses_cudnn(&shape, A100));
    }

    #[test]
    fn untabulated_devices_take_a_neighbour_and_say_so() {
        let shape = conv(64, 1, ElementType::F32, Layout::Nchw);
        let on = |major, minor| {
            workspace(ConvPass::BackwardData, &shape, ComputeCapability { major, minor }, 80)
        };
        assert_eq!(on(11, 0).basis, Basis::OtherDevice);
        assert_eq!(on(11, 0).bytes, on(10, 0).bytes);
        assert_eq!(on(13, 0).bytes, on(12, 0).bytes);
        assert_eq!(on(7, 0).bytes, on(7, 5).bytes);
        assert_eq!(on(8, 7).bytes, on(8, 6).bytes);
        assert_ne!(on(8, 6).basis, Basis::OtherDevice);
    }

    fn any_shape() -> impl Strategy<Value = ConvShape> {
        let small = || prop_oneof![0..4u64, 0..4096u64, any::<u64>()];
        let four = move || [small(), small(), small(), small()];
        let two = move || [small(), small()];
        let element =
            prop_oneof![Just(ElementType::F32), Just(ElementType::F16), Just(ElementType::Bf16)];
        let layout = prop_oneof![Just(Layout::Nchw), Just(Layout::Nhwc)];
        (four(), four(), four(), two(), two(), two(), small(), element, layout).prop_map(
            |(input, weight, output, stride, padding, dilation, groups, element, layout)| {
                ConvShape {
                    input,
                    weight,
                    output,
                    stride,
                    padding,
                    dilation,
                    volume: None,
                    transposed: false,
                    groups,
                    element,
                    layout,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn whatever_the_shape_the_bounds_enclose_the_guess(
            shape in any_shape(),
            major in 5..13u8,
            minor in 0..10u8,
        ) {
            let arch = ComputeCapability { major, minor };
            for pass in [ConvPass::Forward, ConvPass::BackwardData, ConvPass::BackwardWeight] {
                let guess = workspace(pass, &shape, arch, 1);
                prop_assert!(guess.low <= guess.bytes && guess.bytes <= guess.high);
                if !uses_cudnn(&shape, arch) {
                    prop_assert_eq!(guess.high, Bytes::ZERO);
                }
            }
        }
    }
}
