//! The workspaces of cuDNN's convolutions, without cuDNN and without a GPU.
//!
//! PyTorch (`aten/src/ATen/native/cudnn/Conv_v8.cpp`, `run_single_conv` with `benchmark=False`)
//! asks cuDNN's heuristics (mode `INSTANT`) for engine configurations, takes the first one that
//! builds and allocates its workspace through the caching allocator for the length of the call.
//! The choice of the engine has no closed form, so it is tabulated: decision trees for each element type,
//! memory format and pass, and for some each compute capability, fitted to answers of cuDNN 9.19's
//! own heuristics (`data/cudnn-9.19.md`). The workspace of an engine does have a closed form, so a
//! tree's leaf is a recipe, and the answer is exact wherever the tree finds the right engine. Of a
//! device, hardly anything but the compute capability turned out to matter: other numbers of
//! multiprocessors, cache and memory sizes gave the same plans, and another memory clock others for
//! about 1 % of convolutions on 9.0.
//!
//! `bfloat16` takes the trees of `float16`: on compute capability 8.0 cuDNN gave both the same
//! workspace for 93 to 96 % of 6 000 convolutions.
//!
//! The table stands for `torch.backends.cudnn.allow_tf32 = True`, `benchmark = False` and
//! `deterministic = False`, which are PyTorch's defaults. With `benchmark = True`, formulas bound the
//! workspace of the trial (`trial`).

mod recipe;
mod table;
mod trial;

use crate::answers::ConvolutionAnswers;
use crate::plans::{Basis, Plans};
use crate::question::{ConvolutionQuestion, PlanChoice};
use crate::shape::{ConvShape, ElementType};
use crate::source::ConvolutionSource;
use recipe::Terms;
use table::{Choice, Key, Precision};
use xmem_devices::{ComputeCapability, Device};
use xmem_types::Bytes;

/// Decision trees fitted to the answers of cuDNN's heuristics.
///
/// Further plans are not in the trees; where memory is short, an engine without a workspace is
/// taken for the next. cuDNN has one for every convolution that was tabulated.
#[derive(Clone, Copy, Debug, Default)]
pub struct FittedModel;

impl FittedModel {
    /// The name of this source in answers.
    pub const NAME: &str = "model fitted to cuDNN 9.19";

    /// The plans of one convolution on a device of that compute capability.
    #[must_use]
    pub fn predict(&self, question: &ConvolutionQuestion, on: ComputeCapability) -> Plans {
        if !question.shape.uses_cudnn(on) {
            return Plans::none();
        }
        let (arch, exact_device) = tabulated_arch(on);
        let element = match question.shape.element {
            ElementType::F32 => Precision::F32,
            ElementType::F16 | ElementType::Bf16 => Precision::F16,
        };
        let key = Key { arch, element, layout: question.shape.layout, pass: question.pass };
        let plans = choose(key, &question.shape.folded());
        let basis = if exact_device { plans.basis } else { Basis::OtherDevice };
        let plans = Plans { basis, ..plans };
        match question.choice {
            PlanChoice::Heuristics => plans,
            PlanChoice::Benchmark { .. } => trial::benchmarked(question, plans),
        }
    }
}

impl ConvolutionSource for FittedModel {
    fn answer(&self, device: &Device, questions: &[ConvolutionQuestion]) -> ConvolutionAnswers {
        let plans = questions.iter().map(|q| (*q, self.predict(q, device.compute_capability)));
        ConvolutionAnswers::new(Self::NAME, plans)
    }
}

fn choose(key: Key, shape: &ConvShape) -> Plans {
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
    Plans { sizes: vec![bytes, Bytes::ZERO], low, high, basis, trial: None }
}

/// Per cent of `bfloat16` convolutions that had the workspace of the `float16` one.
const SAME_FOR_BFLOAT16: u8 = 93;

/// The tabulated compute capability (times ten) that stands for `on`; true if it is the same one.
fn tabulated_arch(on: ComputeCapability) -> (u8, bool) {
    match (on.major, on.minor) {
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

/// Whole bytes; sizes beyond `u64` saturate.
fn to_bytes(size: f64) -> Bytes {
    Bytes(size as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::tests::conv;
    use crate::{ConvPass, Layout, Volume};
    use proptest::prelude::*;

    const PASSES: [ConvPass; 3] =
        [ConvPass::Forward, ConvPass::BackwardData, ConvPass::BackwardWeight];

    #[test]
    fn untabulated_devices_take_a_neighbor_and_say_so() {
        let shape = conv(64, 1, ElementType::F32, Layout::Nchw);
        let question = ConvolutionQuestion::new(ConvPass::BackwardData, shape);
        let on = |major, minor| FittedModel.predict(&question, ComputeCapability { major, minor });
        assert_eq!(on(11, 0).basis, Basis::OtherDevice);
        assert_eq!(on(11, 0).sizes, on(10, 0).sizes);
        assert_eq!(on(13, 0).sizes, on(12, 0).sizes);
        assert_eq!(on(7, 0).sizes, on(7, 5).sizes);
        assert_eq!(on(8, 7).sizes, on(8, 6).sizes);
        assert_ne!(on(8, 6).basis, Basis::OtherDevice);
    }

    #[test]
    fn shapes_beyond_any_memory_saturate() {
        let extent = 1 << 32;
        let volume = Volume {
            input: extent,
            kernel: extent,
            output: extent,
            stride: extent,
            padding: extent,
            dilation: extent,
        };
        for volume in [None, Some(volume)] {
            for layout in [Layout::Nchw, Layout::Nhwc] {
                for element in [ElementType::F32, ElementType::F16, ElementType::Bf16] {
                    let shape = ConvShape {
                        input: [extent; 4],
                        weight: [extent; 4],
                        output: [extent; 4],
                        stride: [extent; 2],
                        padding: [extent; 2],
                        dilation: [extent; 2],
                        volume,
                        transposed: false,
                        groups: 1,
                        element,
                        layout,
                    };
                    for pass in PASSES {
                        let question = ConvolutionQuestion::new(pass, shape);
                        let on = ComputeCapability { major: 8, minor: 6 };
                        let plans = FittedModel.predict(&question, on);
                        assert!(
                            plans.first().get() == 0 || plans.first().get() > 1 << 60,
                            "{question:?}: {plans:?}"
                        );
                        assert!(plans.low <= plans.first() && plans.first() <= plans.high);
                    }
                }
            }
        }
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
        fn the_bounds_of_any_shape_enclose_the_first_size(
            shape in any_shape(),
            major in 5..13u8,
            minor in 0..10u8,
        ) {
            let on = ComputeCapability { major, minor };
            for pass in PASSES {
                let plans = FittedModel.predict(&ConvolutionQuestion::new(pass, shape), on);
                prop_assert!(plans.low <= plans.first() && plans.first() <= plans.high);
                if !shape.uses_cudnn(on) {
                    prop_assert_eq!(plans, Plans::none());
                }
            }
        }
    }
}
