//! Workspaces of cuDNN convolutions.

use crate::doubt::SizeRange;
use crate::draft::{Addition, Draft};
use crate::reduction;
use crate::rules::name;
use crate::target::Target;
use xmem_analyzer::{Argument, Arguments, DType, Role, TensorArg};
use xmem_profiles::cudnn::{self, Basis, ConvPass, ConvShape, ElementType, Layout, Workspace};
use xmem_types::{Bytes, OpId};

/// Positions of a convolution's settings among an operator's arguments.
struct Settings {
    stride: usize,
    padding: usize,
    dilation: usize,
    transposed: usize,
    groups: usize,
}

/// `_convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding,
/// groups, …)`.
const FORWARD: Settings = Settings { stride: 3, padding: 4, dilation: 5, transposed: 6, groups: 8 };

/// `convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation,
/// transposed, output_padding, groups, output_mask)`.
const BACKWARD: Settings =
    Settings { stride: 4, padding: 5, dilation: 6, transposed: 7, groups: 9 };

/// How far the workspaces may be off: cuDNN's choice of engine is read from a table of its answers
/// for other shapes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Doubt {
    /// Calls whose kind of shape leads to different formulas.
    pub(crate) calls: u64,
    /// The most by which the workspace of one of them may be larger than taken.
    pub(crate) more: Bytes,
}

impl Doubt {
    fn note(&mut self, found: Workspace) {
        if found.basis != Basis::Formula && found.high > found.bytes {
            self.calls += 1;
            self.more = self.more.max(found.high - found.bytes);
        }
    }
}

/// A forward call: the output, then the workspace for the length of the call.
pub(crate) fn forward(draft: &mut Draft<'_>, target: &Target, op: OpId, doubt: &mut Doubt) {
    let arguments = draft.profile.arguments(op);
    let (Some(input), Some(weight)) = (arguments.tensor(0), arguments.tensor(1)) else { return };
    let Some(output) = draft.blocks_in(op).into_iter().find(|&i| draft.escapes(i, op)) else {
        return;
    };
    let Some(call) = Call::read(arguments, &FORWARD, input, weight, None) else { return };
    let pass = if call.transposed { ConvPass::BackwardData } else { ConvPass::Forward };
    doubt.note(call.workspace(draft, target, pass, output, op));
}

/// A backward call: data gradient, weight gradient and bias gradient, each with its own scratch.
pub(crate) fn backward(draft: &mut Draft<'_>, target: &Target, op: OpId, doubt: &mut Doubt) {
    let arguments = draft.profile.arguments(op);
    let (Some(gradient), Some(input), Some(weight)) =
        (arguments.tensor(0), arguments.tensor(1), arguments.tensor(2))
    else {
        return;
    };
    let Some(call) = Call::read(arguments, &BACKWARD, input, weight, Some(gradient)) else {
        return;
    };
    let wanted: Vec<bool> = arguments
        .value(10)
        .map(|mask| mask.trim_matches(['[', ']']).split(',').map(|m| m.trim() == "True").collect())
        .unwrap_or_default();
    let wants = |i: usize| wanted.get(i).copied().unwrap_or(true);
    let element = input.dtype.size();
    let (data, filter, bias) = (input.bytes(), weight.bytes(), weight.dims[0] * element);
    let mut left: Vec<usize> =
        draft.blocks_in(op).into_iter().filter(|&i| draft.escapes(i, op)).collect();
    let mut take = |draft: &Draft<'_>, bytes: u64| {
        let at = left.iter().position(|&i| draft.profile.blocks[i].size.get() == bytes)?;
        Some(left.remove(at))
    };
    if let Some(output) = wants(0).then(|| take(draft, data)).flatten() {
        let pass = if call.transposed { ConvPass::Forward } else { ConvPass::BackwardData };
        doubt.note(call.workspace(draft, target, pass, output, op));
    }
    let filter = wants(1).then(|| take(draft, filter)).flatten();
    if let Some(output) = filter {
        doubt.note(call.workspace(draft, target, ConvPass::BackwardWeight, output, op));
    }
    let has_bias = matches!(arguments.list.get(3), Some(Argument::Value(_))) && wants(2);
    if let Some(output) = has_bias.then(|| take(draft, bias)).flatten() {
        // CUDA sums the gradient over all but the channels once the weight gradient is there.
        if let Some(filter) = filter {
            let at = draft.after(filter);
            if draft.items[output].alloc < at {
                let free = draft.items[output].free;
                draft.retime(output, at, free, name::CUDNN_CONV);
            }
            draft.items[output].settled = true;
        }
        if !target.disabled.contains(name::REDUCTION) {
            let reduced: Vec<bool> = (0..gradient.dims.len()).map(|d| d != 1).collect();
            reduction::scratch(draft, target, gradient, &reduced, output, op);
        }
    }
}

/// A convolution as cuDNN sees it.
struct Call {
    shape: ConvShape,
    transposed: bool,
}

impl Call {
    /// Reads shapes and settings; none where they were not recorded or are not 1- or
    /// 2-dimensional.
    fn read(
        arguments: &Arguments,
        settings: &Settings,
        input: &TensorArg,
        weight: &TensorArg,
        output: Option<&TensorArg>,
    ) -> Option<Self> {
        let spatial = input.dims.len().checked_sub(2).filter(|s| (1..=2).contains(s))?;
        let pair = |position: usize, flat: u64| -> Option<[u64; 2]> {
            let values = arguments.ints(position)?;
            let value = |i: usize| -> Option<u64> {
                u64::try_from(*values.get(i).or(values.first())?).ok()
            };
            if spatial == 1 { Some([flat, value(0)?]) } else { Some([value(0)?, value(1)?]) }
        };
        let stride = pair(settings.stride, 1)?;
        let padding = pair(settings.padding, 0)?;
        let dilation = pair(settings.dilation, 1)?;
        let transposed = arguments.value(settings.transposed) == Some("True");
        let groups = u64::try_from(*arguments.ints(settings.groups)?.first()?).ok()?;
        let element = match input.dtype {
            DType::F32 => ElementType::F32,
            DType::F16 => ElementType::F16,
            DType::BF16 => ElementType::Bf16,
            _ => return None,
        };
        let weight_dims = planar(&weight.dims)?;
        let given = planar(&input.dims)?;
        let made = match output {
            Some(output) => planar(&output.dims)?,
            None => extent(given, weight_dims, stride, padding, dilation, transposed, groups),
        };
        let (input_dims, output_dims) = if transposed { (made, given) } else { (given, made) };
        let layout =
            if channels_last(input) || channels_last(weight) { Layout::Nhwc } else { Layout::Nchw };
        Some(Self {
            shape: ConvShape {
                input: input_dims,
                weight: weight_dims,
                output: output_dims,
                stride,
                padding,
                dilation,
                groups,
                element,
                layout,
            },
            transposed,
        })
    }

    fn workspace(
        &self,
        draft: &mut Draft<'_>,
        target: &Target,
        pass: ConvPass,
        output: usize,
        op: OpId,
    ) -> Workspace {
        let device = &target.device;
        let found = cudnn::workspace(pass, &self.shape, device.compute_capability, device.sms);
        draft.items[output].settled = true;
        let alloc = draft.after(output);
        let free = Some(draft.after(output));
        let role = Role::Workspace;
        let new = Addition { size: found.bytes, alloc, free, role, op };
        let doubt = crate::doubt::Doubt::ConvolutionPlan;
        let range = SizeRange { low: found.low, high: found.high, doubt };
        draft.add_uncertain(new, range, name::CUDNN_CONV);
        found
    }
}

/// Batch, channels, height, width; height 1 for one spatial dimension.
fn planar(dims: &[u64]) -> Option<[u64; 4]> {
    match *dims {
        [n, c, w] => Some([n, c, 1, w]),
        [n, c, h, w] => Some([n, c, h, w]),
        _ => None,
    }
}

/// The output's shape (torch/nn/modules/conv.py, `Conv2d`, `ConvTranspose2d` without output
/// padding).
fn extent(
    input: [u64; 4],
    weight: [u64; 4],
    stride: [u64; 2],
    padding: [u64; 2],
    dilation: [u64; 2],
    transposed: bool,
    groups: u64,
) -> [u64; 4] {
    let side = |i: usize| {
        let kernel = dilation[i] * weight[2 + i].saturating_sub(1) + 1;
        if transposed {
            (input[2 + i].saturating_sub(1) * stride[i] + kernel).saturating_sub(2 * padding[i])
        } else {
            (input[2 + i] + 2 * padding[i]).saturating_sub(kernel) / stride[i].max(1) + 1
        }
    };
    let channels = if transposed { weight[1] * groups } else { weight[0] };
    [input[0], channels, side(0), side(1)]
}

/// Whether strides say channels-last (`suggest_memory_format`, c10/core/MemoryFormat.h).
fn channels_last(tensor: &TensorArg) -> bool {
    let (&[_, c, h, w], &[_, sc, _, sw]) = (tensor.dims.as_slice(), tensor.strides.as_slice())
    else {
        return false;
    };
    sc == 1 && c > 1 && h * w > 1 && sw.unsigned_abs() == c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_extent_of_plain_and_transposed_convolutions() {
        let plain = extent([8, 3, 96, 96], [64, 3, 7, 7], [2, 2], [3, 3], [1, 1], false, 1);
        assert_eq!(plain, [8, 64, 48, 48]);
        let up = extent([8, 64, 48, 48], [64, 3, 4, 4], [2, 2], [1, 1], [1, 1], true, 1);
        assert_eq!(up, [8, 3, 96, 96]);
    }

    #[test]
    fn channels_last_needs_channel_stride_one() {
        let tensor = |strides: &[i64]| TensorArg {
            dims: vec![2, 8, 4, 4],
            strides: strides.to_vec(),
            dtype: DType::F32,
        };
        assert!(channels_last(&tensor(&[128, 1, 32, 8])));
        assert!(!channels_last(&tensor(&[128, 16, 4, 1])));
        assert!(!channels_last(&tensor(&[])));
    }
}
