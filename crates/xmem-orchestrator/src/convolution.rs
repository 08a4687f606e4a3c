//! Workspaces of cuDNN convolutions.

use crate::doubt::{Doubt, SizeRange};
use crate::draft::{Addition, Draft};
use crate::reduction;
use crate::rules::name;
use crate::target::Target;
use rustc_hash::FxHashMap;
use xmem_analyzer::{Argument, Arguments, DType, Role, TensorArg};
use xmem_convolutions::{ConvPass, ConvShape, ElementType, Layout, Plans, Volume};
use xmem_types::{Bytes, FallbackId, OpId};

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

/// The convolutions met so far: their plans, and how far the workspaces may be off.
#[derive(Debug, Default)]
pub(crate) struct Convolutions {
    /// Calls with one key share what they found to fit (`benchmark_cache` in
    /// aten/src/ATen/native/cudnn/Conv_v8.cpp).
    met: FxHashMap<(ConvPass, ConvShape), (Plans, FallbackId)>,
    /// Calls whose kind of shape leads to different formulas.
    pub(crate) doubtful: u64,
    /// The most by which the workspace of one of them may be larger than taken.
    pub(crate) more: Bytes,
}

impl Convolutions {
    /// Adds the workspace of one call, which lives from just after the allocation of `output` until
    /// just after that again.
    fn add_workspace(
        &mut self,
        draft: &mut Draft<'_>,
        target: &Target,
        (pass, shape): (ConvPass, ConvShape),
        output: usize,
        op: OpId,
    ) {
        let (plans, fallback) = self.met.entry((pass, shape)).or_insert_with(|| {
            let plans = target.convolutions.plans(pass, &shape, &target.device);
            let list = draft.fallbacks.add(plans.sizes.iter().copied());
            (plans, list)
        });
        let bytes = plans.first();
        if plans.high > bytes {
            self.doubtful += 1;
            self.more = self.more.max(plans.high - bytes);
        }
        draft.items[output].settled = true;
        let alloc = draft.after(output);
        let free = Some(draft.after(output));
        let new = Addition { size: bytes, alloc, free, role: Role::Workspace, op };
        let range = SizeRange { low: plans.low, high: plans.high, doubt: Doubt::ConvolutionPlan };
        if let Some(added) = draft.add_uncertain(new, range, name::CUDNN_CONV) {
            draft.items[added].fallback = Some(*fallback);
        }
    }
}

/// A forward call: the output, then the workspace for the length of the call.
pub(crate) fn forward(draft: &mut Draft<'_>, target: &Target, op: OpId, met: &mut Convolutions) {
    let arguments = draft.profile.arguments(op);
    let (Some(input), Some(weight)) = (arguments.tensor(0), arguments.tensor(1)) else { return };
    let Some(output) = draft.blocks_in(op).into_iter().find(|&i| draft.escapes(i, op)) else {
        return;
    };
    let Some(shape) = read(arguments, &FORWARD, input, weight, None) else { return };
    // Operands are brought into the output's memory format once there is an output.
    for copy in format_copies(draft, op) {
        if draft.items[copy].alloc < draft.items[output].alloc {
            let (alloc, free) = (draft.after(output), draft.items[copy].free);
            draft.retime(copy, alloc, free, name::CUDNN_CONV);
        }
    }
    let pass = if shape.transposed { ConvPass::BackwardData } else { ConvPass::Forward };
    met.add_workspace(draft, target, (pass, shape), output, op);
}

/// Copies of a call's operands in another memory format, which are gone when it returns.
fn format_copies(draft: &Draft<'_>, op: OpId) -> Vec<usize> {
    let profile = draft.profile;
    let is_copy = |&i: &usize| {
        let within = |o: &OpId| *o != op;
        let mut path = profile.blocks[i].op.into_iter().flat_map(|o| profile.tree.path(o));
        draft.live(i)
            && !draft.escapes(i, op)
            && path.by_ref().take_while(within).any(|o| profile.op_name(o) == "aten::contiguous")
    };
    draft.blocks_in(op).into_iter().filter(is_copy).collect()
}

/// A backward call: data gradient, weight gradient and bias gradient, each with its own scratch.
pub(crate) fn backward(draft: &mut Draft<'_>, target: &Target, op: OpId, met: &mut Convolutions) {
    let arguments = draft.profile.arguments(op);
    let (Some(gradient), Some(input), Some(weight)) =
        (arguments.tensor(0), arguments.tensor(1), arguments.tensor(2))
    else {
        return;
    };
    let Some(shape) = read(arguments, &BACKWARD, input, weight, Some(gradient)) else {
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
    // The data gradient's call has a copy of the weight, both calls share one of the gradient.
    let mut copies = format_copies(draft, op);
    let mut copy_of = |draft: &Draft<'_>, bytes: u64| {
        let at = copies.iter().position(|&i| draft.items[i].size.get() == bytes)?;
        Some(copies.remove(at))
    };
    let weight_copy = copy_of(draft, filter);
    let gradient_copy = copy_of(draft, gradient.bytes());
    if let Some(output) = wants(0).then(|| take(draft, data)).flatten() {
        let pass = if shape.transposed { ConvPass::Forward } else { ConvPass::BackwardData };
        let begin = draft.after(output);
        met.add_workspace(draft, target, (pass, shape), output, op);
        let end = draft.after(output);
        if let Some(copy) = weight_copy.filter(|&copy| draft.items[copy].alloc < begin) {
            draft.retime(copy, begin, Some(end), name::CUDNN_CONV);
        }
    }
    let filter = wants(1).then(|| take(draft, filter)).flatten();
    if let Some(output) = filter {
        let pass = ConvPass::BackwardWeight;
        met.add_workspace(draft, target, (pass, shape), output, op);
        if let Some(copy) = gradient_copy {
            let (alloc, free) = (draft.items[copy].alloc, draft.after(output));
            draft.retime(copy, alloc, Some(free), name::CUDNN_CONV);
        }
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

/// Reads shapes and settings; none where they were not recorded or do not have 1
/// to 3 spatial dimensions.
fn read(
    arguments: &Arguments,
    settings: &Settings,
    input: &TensorArg,
    weight: &TensorArg,
    output: Option<&TensorArg>,
) -> Option<ConvShape> {
    let spatial = input.dims.len().checked_sub(2).filter(|s| (1..=3).contains(s))?;
    // Depth, height, width; `flat` for a dimension that is not there.
    let along = |position: usize, flat: u64| -> Option<[u64; 3]> {
        let values = arguments.ints(position)?;
        let mut all = [flat; 3];
        for (i, place) in all[3 - spatial..].iter_mut().enumerate() {
            *place = u64::try_from(*values.get(i).or(values.first())?).ok()?;
        }
        Some(all)
    };
    let stride = along(settings.stride, 1)?;
    let padding = along(settings.padding, 0)?;
    let dilation = along(settings.dilation, 1)?;
    let transposed = arguments.value(settings.transposed) == Some("True");
    let groups = u64::try_from(*arguments.ints(settings.groups)?.first()?).ok()?;
    let element = match input.dtype {
        DType::F32 => ElementType::F32,
        DType::F16 => ElementType::F16,
        DType::BF16 => ElementType::Bf16,
        _ => return None,
    };
    let weight_dims = spatial_dims(&weight.dims)?;
    let given = spatial_dims(&input.dims)?;
    let made = match output {
        Some(output) => spatial_dims(&output.dims)?,
        None => extent(given, weight_dims, stride, padding, dilation, transposed, groups),
    };
    let (input_dims, output_dims) = if transposed { (made, given) } else { (given, made) };
    let layout =
        if channels_last(input) || channels_last(weight) { Layout::Nhwc } else { Layout::Nchw };
    let volume = (spatial == 3).then(|| Volume {
        input: input_dims[2],
        kernel: weight_dims[2],
        output: output_dims[2],
        stride: stride[0],
        padding: padding[0],
        dilation: dilation[0],
    });
    let flat = |[n, c, _, h, w]: [u64; 5]| [n, c, h, w];
    let last = |[_, y, x]: [u64; 3]| [y, x];
    let shape = ConvShape {
        input: flat(input_dims),
        weight: flat(weight_dims),
        output: flat(output_dims),
        stride: last(stride),
        padding: last(padding),
        dilation: last(dilation),
        volume,
        transposed,
        groups,
        element,
        layout,
    };
    Some(shape)
}

/// Batch, channels, depth, height, width; 1 for a dimension that is not there.
fn spatial_dims(dims: &[u64]) -> Option<[u64; 5]> {
    match *dims {
        [n, c, w] => Some([n, c, 1, 1, w]),
        [n, c, h, w] => Some([n, c, 1, h, w]),
        [n, c, d, h, w] => Some([n, c, d, h, w]),
        _ => None,
    }
}

/// The output's shape (torch/nn/modules/conv.py, `Conv2d`, `ConvTranspose2d` without output
/// padding).
fn extent(
    input: [u64; 5],
    weight: [u64; 5],
    stride: [u64; 3],
    padding: [u64; 3],
    dilation: [u64; 3],
    transposed: bool,
    groups: u64,
) -> [u64; 5] {
    let side = |i: usize| {
        let kernel = dilation[i] * weight[2 + i].saturating_sub(1) + 1;
        if transposed {
            (input[2 + i].saturating_sub(1) * stride[i] + kernel).saturating_sub(2 * padding[i])
        } else {
            (input[2 + i] + 2 * padding[i]).saturating_sub(kernel) / stride[i].max(1) + 1
        }
    };
    let channels = if transposed { weight[1] * groups } else { weight[0] };
    [input[0], channels, side(0), side(1), side(2)]
}

/// Whether strides say channels-last (`suggest_memory_format`, c10/core/MemoryFormat.h).
fn channels_last(tensor: &TensorArg) -> bool {
    let (&[_, c, ref image @ ..], &[_, sc, .., sw]) =
        (tensor.dims.as_slice(), tensor.strides.as_slice())
    else {
        return false;
    };
    let pixels: u64 = image.iter().product();
    image.len() >= 2 && sc == 1 && c > 1 && pixels > 1 && sw.unsigned_abs() == c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_extent_of_plain_and_transposed_convolutions() {
        let plain =
            extent([8, 3, 1, 96, 96], [64, 3, 1, 7, 7], [1, 2, 2], [0, 3, 3], [1, 1, 1], false, 1);
        assert_eq!(plain, [8, 64, 1, 48, 48]);
        let up =
            extent([8, 64, 1, 48, 48], [64, 3, 1, 4, 4], [1, 2, 2], [0, 1, 1], [1, 1, 1], true, 1);
        assert_eq!(up, [8, 3, 1, 96, 96]);
        let volume =
            extent([2, 1, 16, 32, 32], [8, 1, 3, 5, 5], [2, 1, 1], [1, 2, 2], [1, 1, 1], false, 1);
        assert_eq!(volume, [2, 8, 8, 32, 32]);
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
