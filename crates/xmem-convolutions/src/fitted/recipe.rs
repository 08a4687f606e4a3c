//! Closed forms for the workspace of one cuDNN engine.
//!
//! The forms were inferred from cuDNN's own answers: tensor-core kernels work on NHWC copies with the
//! channels padded to 16 bytes, split-K kernels add partial results, Winograd and FFT kernels keep
//! transformed tiles. The forms below reproduce all but about 0.2 % of the bytes that the library
//! requested in fp32 NCHW convolutions of the shapes in the table's header.

use crate::{ConvShape, ElementType};

/// Sizes of a convolution, the operands of the recipes, in elements or bytes.
///
/// Floating point, so that products of the dimensions of a damaged trace do not overflow; every size
/// below 2^53 is exact.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) batch: f64,
    pub(super) channels: f64,
    pub(super) filters: f64,
    pub(super) group_channels: f64,
    pub(super) groups: f64,
    pub(super) height: f64,
    pub(super) width: f64,
    pub(super) out_height: f64,
    pub(super) out_width: f64,
    pub(super) kernel_height: f64,
    pub(super) kernel_width: f64,
    /// Input, weight and output as they are, in bytes.
    pub(super) plain: [f64; 3],
    /// Input, weight and output with padded channels, in bytes.
    padded: [f64; 3],
    /// The padded three in fp32, the element of every partial result.
    padded_f32: [f64; 3],
    largest_padded_extent: f64,
}

impl Terms {
    pub(super) fn of(shape: &ConvShape) -> Self {
        let [batch, channels, height, width] = shape.input.map(|n| n as f64);
        let [filters, group_channels, kernel_height, kernel_width] = shape.weight.map(|n| n as f64);
        let [_, _, out_height, out_width] = shape.output.map(|n| n as f64);
        let groups = (shape.groups.max(1)) as f64;
        let element = shape.element.size() as f64;
        let step = match shape.element {
            ElementType::F32 => 4.0,
            ElementType::F16 | ElementType::Bf16 => 8.0,
        };
        let pad = |n: f64| (n / step).ceil() * step;
        let depthwise = groups > 1.0 && group_channels == 1.0;
        let pad_grouped = |n: f64| if depthwise { pad(n) } else { pad(n / groups) * groups };
        let (padded_channels, padded_filters) = (pad_grouped(channels), pad_grouped(filters));
        let padded_group_channels = if depthwise { 1.0 } else { pad(group_channels) };
        let taps = kernel_height * kernel_width;
        let plain = [
            batch * channels * height * width,
            filters * group_channels * taps,
            batch * filters * out_height * out_width,
        ];
        let padded = [
            batch * padded_channels * height * width,
            padded_filters * padded_group_channels * taps,
            batch * padded_filters * out_height * out_width,
        ];
        let padding = shape.padding.map(|n| n as f64);
        Self {
            batch,
            channels,
            filters,
            group_channels,
            groups,
            height,
            width,
            out_height,
            out_width,
            kernel_height,
            kernel_width,
            plain: plain.map(|n| n * element),
            padded: padded.map(|n| n * element),
            padded_f32: padded.map(|n| n * 4.0),
            largest_padded_extent: (height + 2.0 * padding[0]).max(width + 2.0 * padding[1]),
        }
    }

    /// Bytes of input, weight and output together: the scale of a workspace.
    pub(super) fn all_bytes(&self) -> f64 {
        self.plain.iter().sum()
    }

    fn weight_f32(&self) -> f64 {
        4.0 * self.filters * self.group_channels * self.kernel_height * self.kernel_width
    }
}

/// A recipe for the size of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recipe {
    /// No workspace, or one so small that it stays in the small pool of the allocator.
    Zero,
    /// `n` weights in fp32.
    Weights(u16),
    /// Padded copies of some of input, weight and output.
    Copies { input: bool, weight: bool, output: bool },
    /// Padded copies of input and output, and `n` partial weights in fp32.
    InputOutputWeights(u16),
    /// Padded copies of input and weight, and `n` partial outputs in fp32.
    InputWeightOutputs(u16),
    /// Padded copies of weight and output, and `n` partial inputs in fp32.
    WeightOutputInputs(u16),
    /// Padded copies of all three, and one weight in fp32.
    AllAndWeight,
    /// Two padded inputs and one output.
    TwoInputs,
    /// Two padded outputs and one input.
    TwoOutputs,
    /// Padded copies of eight groups at a time.
    EightGroups,
    /// Copies without padding of all three.
    PlainAll,
    /// Copies without padding of input and weight.
    PlainInputWeight,
    /// Copies of all three, the input's channels padded to 4 (first layers on images).
    InputPadded4All,
    /// A weight gradient of every sample of the batch, in fp32.
    PerSampleWeights,
    /// Eight depthwise weight gradients of every sample, channels padded to 32, in fp32.
    EightPerSampleDepthwise,
    /// Winograd F(4x4, 3x3) over tiles of the output.
    WinogradOutput,
    /// The same with the batch rounded up to 16.
    WinogradOutputBatch16,
    /// Winograd F(4x4, 3x3) over tiles of the input, the batch rounded up to 16.
    WinogradInputBatch16,
    /// Winograd F(2x2, 3x3): only the transformed filter.
    WinogradFilter,
    /// FFT over 32x32 tiles.
    FftTiles,
    /// FFT of whole images.
    Fft,
}

/// Bytes that every kernel with copies requests in addition (alignment of the first copy).
const COPY_SLACK: f64 = 16.0;

impl Recipe {
    /// The recipe of that name in the table.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let copies = |input, weight, output| Self::Copies { input, weight, output };
        Some(match name {
            "zero" => Self::Zero,
            "w4" => Self::Weights(1),
            "w4x4" => Self::Weights(4),
            "x" => copies(true, false, false),
            "w" => copies(false, true, false),
            "y" => copies(false, false, true),
            "xw" => copies(true, true, false),
            "wy" => copies(false, true, true),
            "xwy+w4" => Self::AllAndWeight,
            "2xy" => Self::TwoInputs,
            "x2y" => Self::TwoOutputs,
            "xw8g" => Self::EightGroups,
            "rawxwy" => Self::PlainAll,
            "rawxw" => Self::PlainInputWeight,
            "c4xwy" => Self::InputPadded4All,
            "partial" => Self::PerSampleWeights,
            "dwpart8" => Self::EightPerSampleDepthwise,
            "winoy" => Self::WinogradOutput,
            "winoy16" => Self::WinogradOutputBatch16,
            "winox16" => Self::WinogradInputBatch16,
            "wino2w" => Self::WinogradFilter,
            "fft32" => Self::FftTiles,
            "fft" => Self::Fft,
            _ => {
                let (base, partials) = name.split_once('+')?;
                let (count, of) = partials.split_at_checked(partials.len().checked_sub(1)?)?;
                let count = count.parse().ok()?;
                match (base, of) {
                    ("xy", "w") => Self::InputOutputWeights(count),
                    ("xw", "y") => Self::InputWeightOutputs(count),
                    ("wy", "x") => Self::WeightOutputInputs(count),
                    _ => return None,
                }
            }
        })
    }

    /// Bytes of workspace for a convolution of these sizes.
    pub(super) fn bytes(self, t: &Terms) -> f64 {
        let [x, w, y] = t.padded;
        let [x4, w4, y4] = t.padded_f32;
        let n = f64::from;
        match self {
            Self::Zero => 0.0,
            Self::Weights(count) => n(count) * t.weight_f32(),
            Self::Copies { input, weight, output } => {
                let pick = |wanted: bool, bytes: f64| if wanted { bytes } else { 0.0 };
                COPY_SLACK + pick(input, x) + pick(weight, w) + pick(output, y)
            }
            Self::InputOutputWeights(count) => COPY_SLACK + x + y + n(count) * self.partial(w, w4),
            Self::InputWeightOutputs(count) => COPY_SLACK + x + w + n(count) * y4,
            Self::WeightOutputInputs(count) => COPY_SLACK + w + y + n(count) * x4,
            Self::AllAndWeight => COPY_SLACK + x + w + y + w4,
            Self::TwoInputs => COPY_SLACK + 2.0 * x + y,
            Self::TwoOutputs => COPY_SLACK + x + 2.0 * y,
            Self::EightGroups => (COPY_SLACK + (x + w + y) * 8.0 / t.groups.max(8.0)).floor(),
            Self::PlainAll => COPY_SLACK + t.plain.iter().sum::<f64>(),
            Self::PlainInputWeight => COPY_SLACK + t.plain[0] + t.plain[1],
            Self::InputPadded4All => {
                let padding = (t.channels / 4.0).ceil() * 4.0 / t.channels;
                COPY_SLACK + t.plain[0] * padding + t.plain[1] + t.plain[2]
            }
            Self::PerSampleWeights => t.batch * t.weight_f32(),
            Self::EightPerSampleDepthwise => {
                let channels = (t.channels / 32.0).ceil() * 32.0;
                8.0 * 4.0 * t.batch * channels * t.kernel_height * t.kernel_width
            }
            Self::WinogradOutput => winograd_tiles(t, t.batch, t.out_height, t.out_width),
            Self::WinogradOutputBatch16 => {
                winograd_tiles(t, round_up_16(t.batch), t.out_height, t.out_width)
            }
            Self::WinogradInputBatch16 => {
                winograd_tiles(t, round_up_16(t.batch), t.height, t.width)
            }
            Self::WinogradFilter => 64.0 * t.filters * t.group_channels + t.weight_f32(),
            Self::FftTiles => {
                let tiles = if t.out_height.max(t.out_width) > 30.0 { 2.0 } else { 1.0 };
                let images = t.batch * (t.channels + t.filters) * tiles;
                fft_image(32.0) * (images + t.filters * t.group_channels)
            }
            Self::Fft => {
                let mut extent = 16.0;
                while extent < t.largest_padded_extent && extent < 512.0 {
                    extent *= 2.0;
                }
                let images = t.batch * (t.channels + t.filters);
                2.0 * fft_image(extent) * images.max(t.filters * t.group_channels) + y
            }
        }
    }

    /// One copy of the weights is in the element type, partial sums are in fp32; a single "partial"
    /// is the copy.
    fn partial(self, copy: f64, partial: f64) -> f64 {
        if self == Self::InputOutputWeights(1) { copy } else { partial }
    }
}

/// Transformed 6x6 tiles of input, output and filter, in fp32.
fn winograd_tiles(t: &Terms, batch: f64, height: f64, width: f64) -> f64 {
    let tiles = batch * (height / 4.0).ceil() * (width / 4.0).ceil();
    4.0 * 36.0 * (tiles * (t.channels + t.filters) + t.filters * t.group_channels)
}

/// The half spectrum of one real image, complex fp32.
fn fft_image(extent: f64) -> f64 {
    8.0 * extent * (extent / 2.0 + 1.0)
}

fn round_up_16(n: f64) -> f64 {
    (n / 16.0).ceil() * 16.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    fn square(
        [batch, channels, extent]: [u64; 3],
        [filters, kernel]: [u64; 2],
        out_extent: u64,
    ) -> ConvShape {
        ConvShape {
            input: [batch, channels, extent, extent],
            weight: [filters, channels, kernel, kernel],
            output: [batch, filters, out_extent, out_extent],
            stride: [1, 1],
            padding: [kernel / 2, kernel / 2],
            dilation: [1, 1],
            volume: None,
            transposed: false,
            groups: 1,
            element: ElementType::F32,
            layout: Layout::Nchw,
        }
    }

    fn bytes(name: &str, shape: &ConvShape) -> f64 {
        Recipe::parse(name).expect("a known recipe").bytes(&Terms::of(shape))
    }

    /// Workspaces of plans recorded with PyTorch's CUDA build, kernels stubbed (RTX 3060): one for
    /// each kind of engine that asks for much.
    #[test]
    fn recorded_workspaces_follow_their_recipes_to_the_byte() {
        let stage_two = square([8, 64, 24], [128, 3], 12);
        assert_eq!(bytes("xy+1w", &stage_two), 2_064_400.0);
        let bottleneck = square([100, 64, 22], [64, 3], 22);
        assert_eq!(bytes("xw", &bottleneck), 12_537_872.0);
        let expansion = square([100, 512, 3], [2048, 1], 3);
        assert_eq!(bytes("xy+0w", &expansion), 9_216_016.0);
        let pointwise = square([100, 256, 22], [128, 1], 22);
        assert_eq!(bytes("partial", &pointwise), 13_107_200.0);
        let vgg = square([100, 256, 21], [256, 3], 21);
        assert_eq!(bytes("winoy", &vgg), 274_857_984.0);
        let downsampling = ConvShape { layout: Layout::Nhwc, ..square([32, 256, 10], [512, 2], 5) };
        assert_eq!(bytes("wy", &downsampling), 3_735_568.0);
    }

    #[test]
    fn channels_of_a_copy_are_padded_to_16_bytes_within_each_group() {
        let image = square([1, 3, 8], [4, 1], 8);
        assert_eq!(bytes("x", &image), 16.0 + 4.0 * 4.0 * 64.0);
        let half = ConvShape { element: ElementType::F16, ..image };
        assert_eq!(bytes("x", &half), 16.0 + 2.0 * 8.0 * 64.0);
        let grouped = ConvShape { input: [1, 6, 8, 8], groups: 2, ..image };
        assert_eq!(bytes("x", &grouped), 16.0 + 4.0 * 8.0 * 64.0);
        let depthwise = ConvShape { input: [1, 6, 8, 8], weight: [6, 1, 1, 1], groups: 6, ..image };
        assert_eq!(bytes("x", &depthwise), 16.0 + 4.0 * 8.0 * 64.0);
    }

    #[test]
    fn names_that_are_not_recipes_are_refused() {
        for name in ["", "+", "xy+", "xy+w", "xy+1x", "zz+1w", "xy+é"] {
            assert_eq!(Recipe::parse(name), None, "{name}");
        }
    }
}
