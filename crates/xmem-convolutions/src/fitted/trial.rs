//! The trial of all plans, as formulas.
//!
//! The largest workspace is mostly that of a Fourier transform in tiles: 4,352 bytes (32 x 17 complex
//! numbers) for each pair of image and channel of the input, of image and filter of the output, and of
//! channel and filter of the weight; half of that for gradients of weights and 1 x 1 kernels. To it come
//! copies of the tensors. Of 324 convolutions of six networks (fp32, contiguous, compute capability 8.6)
//! whose plans cuDNN 9.19 was asked for, all had a largest workspace within the bounds; the estimate was
//! within a factor of 2.4 of it for 9 of 10 of those above 64 MiB.

use crate::plans::{Basis, Plans, Trial};
use crate::question::ConvolutionQuestion;
use crate::shape::{ConvPass, ConvShape};
use xmem_types::Bytes;

/// The bytes of a transformed tile.
const TILE: u64 = 4352;

/// The plans of a convolution that is benchmarked, from those of the heuristics.
pub(super) fn benchmarked(question: &ConvolutionQuestion, plans: Plans) -> Plans {
    let trial = trial(question);
    // Any plan may be the fastest. Those that are timed have seldom more than the tensors twice over.
    let most = times(question.shape.bytes(), 3).min(trial.high);
    let high = plans.high.max(most);
    let basis = match plans.basis {
        Basis::Formula => Basis::Likely { percent: 0 },
        other => other,
    };
    Plans { low: Bytes::ZERO, high, basis, trial: Some(trial), ..plans }
}

fn trial(question: &ConvolutionQuestion) -> Trial {
    let (shape, pass) = (question.shape.folded(), question.pass);
    let tensors = question.shape.bytes();
    let planes = planes(&shape);
    let is_point = shape.weight[2..] == [1, 1];
    let is_strided = shape.stride != [1, 1];
    let tile = match pass {
        _ if is_point && (is_strided || pass == ConvPass::BackwardData) => 0,
        _ if is_point => TILE / 2,
        ConvPass::BackwardWeight => TILE / 2,
        _ => TILE,
    };
    let (low, copies) = match pass {
        ConvPass::BackwardData => (Bytes(tensors.get() / 3), 2),
        _ => (tensors, 4),
    };
    let with_copies = |tile: u64, copies: u64| {
        let tiles = planes.saturating_mul(tile);
        Bytes(tiles.saturating_add(times(tensors, copies).get()))
    };
    let sizes = [with_copies(tile, copies), tensors, Bytes::ZERO];
    Trial { low, high: with_copies(TILE, 14), ..Trial::of(&sizes) }
}

/// Image and channel, image and filter, channel and filter.
fn planes(shape: &ConvShape) -> u64 {
    [shape.input, shape.output, shape.weight]
        .iter()
        .fold(0, |sum: u64, &[n, c, ..]| sum.saturating_add(n.saturating_mul(c)))
}

fn times(size: Bytes, factor: u64) -> Bytes {
    Bytes(size.get().saturating_mul(factor))
}
