//! Convolutions take a cuDNN workspace for the length of each call. Its size is that of the plan which
//! PyTorch takes for the convolution: the first one that cuDNN's heuristics name, or a later one where memory
//! is short. Calls of one shape share the plan that was found to fit. Operands are brought into the output's
//! memory format once there is an output; the bias gradient is a separate sum.
//!
//! With `torch.backends.cudnn.benchmark = True` the first call of each shape tries all plans, in one
//! workspace as large as the largest of them that memory has room for. Then all cached memory is released,
//! and the fastest plan is taken, here and in later calls. Which one that is depends on the GPU: the first
//! plan of the heuristics is assumed, and the range has all that are timed. Each thread has its own plans.
//!
//! The rule does not know plans: it lists the convolutions of the job as questions, and finds the plans in
//! the answers.

mod benchmarked;
pub(crate) mod recorded;

use super::reduction_buffer;
use crate::frame::call::Call;
use crate::frame::context::Context;
use crate::frame::count::Count;
use crate::frame::definition::{Applies, Lowering, Outcome, RuleDefinition};
use crate::frame::draft::{Addition, Draft};
use crate::rule::Rule;
use crate::target::Target;
use crate::uncertainty::{SizeRange, UnaskedConvolution, Uncertainty};
use benchmarked::Benchmarked;
use rustc_hash::{FxHashMap, FxHashSet};
use xmem_analyzer::{Argument, Arguments, DType, Profile, Role, TensorArg};
use xmem_convolutions::{
    Basis, ConvPass, ConvShape, ConvolutionAnswers, ConvolutionQuestion, ElementType, Layout,
    Plans, Volume,
};
use xmem_types::{BlockId, Bytes, Diagnostics, FallbackId, OpId, Severity};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "cudnn-convolution",
        summary: "convolutions take a cuDNN workspace for the length of each call",
        source: "aten/src/ATen/native/cudnn/Conv_v8.cpp; answers of cuDNN's heuristics (see the profile data)",
        operators: &["aten::_convolution", "aten::convolution_backward"],
        covers: &[
            "aten::_conv_depthwise2d",
            "aten::_slow_conv2d_forward",
            "aten::conv1d",
            "aten::conv2d",
            "aten::conv3d",
            "aten::conv_transpose2d",
            "aten::convolution",
            "aten::convolution_overrideable",
            "aten::mkldnn_convolution",
            "aten::mkldnn_convolution_backward",
            "aten::slow_conv3d",
            "aten::slow_conv_transpose2d",
            "aten::slow_conv_transpose3d",
            "aten::thnn_conv2d",
        ],
    },
    applies: Applies::ToOperators(|_| Box::new(Convolutions::default())),
};

const FORWARD_OP: &str = "aten::_convolution";
const BACKWARD_OP: &str = "aten::convolution_backward";

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

/// From here on, the uncertainty of a workspace is worth a note.
const NOTEWORTHY: Bytes = Bytes::mib(64);

/// The convolutions of a job whose plans the rule wants to know: each once, in the order of their first
/// calls. None if the rule is switched off.
pub(crate) fn questions(profile: &Profile, target: &Target) -> Vec<ConvolutionQuestion> {
    let mut questions = Vec::new();
    if target.disabled.contains(RULE.name) {
        return questions;
    }
    let Some(is_call) = calls(profile) else { return questions };
    let choice = target.cudnn_benchmark.choice();
    let mut seen = FxHashSet::default();
    let mut read_already = FxHashSet::default();
    for &op in profile.tree.preorder() {
        // Operators of one signature share their arguments.
        let call = (profile.op_symbol(op), std::ptr::from_ref(profile.arguments(op)));
        if !is_call(op) || !read_already.insert(call) {
            continue;
        }
        let found = of_call(profile, op).into_iter().map(|question| question.chosen_by(choice));
        questions.extend(found.filter(|question| seen.insert(*question)));
    }
    questions
}

/// Tells whether an operator is a call of a convolution; none if the job has no convolutions.
fn calls(profile: &Profile) -> Option<impl Fn(OpId) -> bool + '_> {
    let names = [FORWARD_OP, BACKWARD_OP].map(|name| profile.symbol(name));
    let is_call = move |op| names.contains(&Some(profile.op_symbol(op)));
    (names != [None, None]).then_some(is_call)
}

/// The convolutions of a call, in the order in which they run.
fn of_call(profile: &Profile, call: OpId) -> Vec<ConvolutionQuestion> {
    let arguments = profile.arguments(call);
    if profile.op_name(call) == FORWARD_OP {
        forward_question(arguments).into_iter().collect()
    } else {
        BackwardCall::read(arguments).map_or_else(Vec::new, |call| call.questions())
    }
}

/// Notes the reasons why answers come from another source than the one that they name, or may not be believed.
fn note_source(answers: &ConvolutionAnswers, notes: &mut Diagnostics) {
    if let Some(warning) = answers.warning() {
        notes.report("cudnn-not-asked", Severity::Warning, None, || warning.to_owned());
    }
    if let Some(doubt) = answers.doubt() {
        notes.report("cudnn-doubtful", Severity::Warning, None, || doubt.to_owned());
    }
}

/// The convolutions met so far.
#[derive(Debug, Default)]
struct Convolutions {
    /// Calls of a thread with one key share the plan that was found to fit (`benchmark_cache` in
    /// aten/src/ATen/native/cudnn/Conv_v8.cpp). On the GPU, backward has a thread of its own.
    met: FxHashMap<(Thread, ConvolutionQuestion), Workspace>,
    /// Convolutions that are benchmarked.
    benchmarked: Benchmarked,
    /// Convolutions that cuDNN runs.
    with_cudnn: u64,
    /// Calls whose workspace may be larger than expected.
    uncertain: u64,
    /// The most by which the workspace of one of them may be larger.
    more: Bytes,
    /// Calls about which the answers say nothing.
    unanswered: u64,
}

/// The thread of a call on the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Thread {
    Program,
    Backward,
}

/// The workspace of one convolution.
#[derive(Clone, Copy, Debug)]
struct Workspace {
    /// The size where memory is ample.
    size: Bytes,
    range: SizeRange,
    /// The sizes that are tried where memory is short.
    fallback: FallbackId,
}

impl Lowering for Convolutions {
    fn lower(&mut self, call: &mut Call<'_, '_, '_>) -> Outcome {
        let lowered =
            if call.name() == FORWARD_OP { self.forward(call) } else { self.backward(call) };
        lowered.map_or(Outcome::Unclaimed, |()| Outcome::Done)
    }

    fn finish(&self, cx: &Context<'_>, notes: &mut Diagnostics) {
        note_source(cx.convolutions, notes);
        if let Some(reason) = cx.convolutions.other_release().filter(|_| self.with_cudnn > 0) {
            notes.report("cudnn-release", Severity::Warning, None, || {
                format!(
                    "{reason}: the workspaces of convolutions are those of another release ({}), and the \
                     range has what others may take",
                    cx.convolutions.source()
                )
            });
        }
        if self.unanswered > 0 {
            notes.report_many(
                "cudnn-plan-unanswered",
                Severity::Warning,
                None,
                self.unanswered,
                || {
                    "no answer about the plans of some convolutions: they are assumed to need no \
                     workspace"
                        .to_owned()
                },
            );
        }
        self.benchmarked.note(cx.target.cudnn_benchmark, self.with_cudnn, notes);
        if self.more >= NOTEWORTHY {
            notes.report_many(
                "cudnn-workspace-uncertain",
                Severity::Note,
                None,
                self.uncertain,
                || {
                    format!(
                        "the workspaces of some convolutions are estimated from cuDNN's answers for \
                         other shapes, or are smaller than these; one of them may take up to {} more \
                         than assumed",
                        self.more
                    )
                },
            );
        }
    }
}

impl Convolutions {
    /// A forward call: the output, then the workspace for the length of the call.
    fn forward(&mut self, call: &mut Call<'_, '_, '_>) -> Option<()> {
        let output = call.blocks().into_iter().find(|&block| call.escapes(block))?;
        let question = forward_question(call.arguments())?;
        // Operands are brought into the output's memory format once there is an output.
        for copy in format_copies(&call.edits, call.op) {
            if call.edits.item(copy).alloc() < call.edits.item(output).alloc() {
                let alloc = call.edits.after(output);
                call.edits.move_alloc(copy, alloc);
            }
        }
        self.add_workspace(call, question, output);
        Some(())
    }

    /// A backward call: data gradient, weight gradient and bias gradient, each with its own scratch.
    fn backward(&mut self, call: &mut Call<'_, '_, '_>) -> Option<()> {
        let BackwardCall { shape, gradient, input, weight, wants, has_bias } =
            BackwardCall::read(call.arguments())?;
        let (data, filter) = (Count::bytes(input), Count::bytes(weight));
        let bias = Count(weight.dims[0]) * input.dtype.size();
        let mut left: Vec<BlockId> =
            call.blocks().into_iter().filter(|&block| call.escapes(block)).collect();
        let mut take = |call: &Call<'_, '_, '_>, bytes: Count| {
            let sized = |&block: &BlockId| call.edits.recorded_size(block) == bytes.into();
            let at = left.iter().position(sized)?;
            Some(left.remove(at))
        };
        // The data gradient's call has a copy of the weight, both calls share one of the gradient.
        let mut copies = format_copies(&call.edits, call.op);
        let mut copy_of = |call: &Call<'_, '_, '_>, bytes: Count| {
            let sized = |&block: &BlockId| call.edits.item(block).size() == bytes.into();
            let at = copies.iter().position(sized)?;
            Some(copies.remove(at))
        };
        let weight_copy = copy_of(call, filter);
        let gradient_copy = copy_of(call, Count::bytes(gradient));
        if let Some(output) = wants[0].then(|| take(call, data)).flatten() {
            let begin = call.edits.after(output);
            self.add_workspace(call, data_question(shape), output);
            let end = call.edits.after(output);
            if let Some(copy) = weight_copy.filter(|&copy| call.edits.item(copy).alloc() < begin) {
                call.edits.retime(copy, begin, end);
            }
        }
        let filter = wants[1].then(|| take(call, filter)).flatten();
        if let Some(output) = filter {
            self.add_workspace(call, weight_question(shape), output);
            if let Some(copy) = gradient_copy {
                let free = call.edits.after(output);
                call.edits.move_free(copy, free);
            }
        }
        if let Some(output) = (has_bias && wants[2]).then(|| take(call, bias)).flatten() {
            // CUDA sums the gradient over all but the channels once the weight gradient is there.
            if let Some(filter) = filter {
                let at = call.edits.after(filter);
                if call.edits.item(output).alloc() < at {
                    call.edits.move_alloc(output, at);
                }
                call.edits.keep(output);
            }
            let reduced: Vec<bool> = (0..gradient.dims.len()).map(|d| d != 1).collect();
            reduction_buffer::add_sum(call, gradient, &reduced, output);
        }
        Some(())
    }

    /// Adds the workspace of one call, which lives from just after the allocation of `output` until
    /// just after that again.
    fn add_workspace(
        &mut self,
        call: &mut Call<'_, '_, '_>,
        question: ConvolutionQuestion,
        output: BlockId,
    ) {
        call.edits.keep(output);
        let question = question.chosen_by(call.target().cudnn_benchmark.choice());
        let thread = if call.in_backward() { Thread::Backward } else { Thread::Program };
        let key = (thread, question);
        let workspace = match self.met.get(&key) {
            Some(&met) => met,
            None => match self.first_call(call, question, output) {
                Some(workspace) => *self.met.entry(key).or_insert(workspace),
                None => {
                    self.unanswered += 1;
                    return;
                }
            },
        };
        let Workspace { size, range, fallback } = workspace;
        if range.cause == Uncertainty::ConvolutionPlan && range.high > size {
            let more = range.high - size;
            self.uncertain += 1;
            self.more = self.more.max(more);
        }
        let (alloc, free) = (call.edits.after(output), call.edits.after(output));
        let new = Addition { size, alloc, free, role: Role::Workspace, op: call.op };
        if let Some(added) = call.edits.add_uncertain(new, range) {
            call.edits.fall_back(added, fallback);
        }
    }

    /// The workspace of a convolution at the first call of its shape, after the trial of its plans if
    /// there is one.
    fn first_call(
        &mut self,
        call: &mut Call<'_, '_, '_>,
        question: ConvolutionQuestion,
        output: BlockId,
    ) -> Option<Workspace> {
        let plans = call.cx.convolutions.get(&question)?;
        self.with_cudnn += u64::from(plans.basis != Basis::NotCudnn);
        let cause = match plans.trial {
            Some(_) => Uncertainty::ConvolutionBenchmark,
            None => Uncertainty::ConvolutionPlan,
        };
        self.add_trial(call, plans, output);
        let is_asked = !plans.basis.is_modeled() && call.cx.convolutions.other_release().is_none();
        let range = SizeRange::new(plans.low, plans.high, cause);
        let unasked = UnaskedConvolution { pass: question.pass, tensors: question.shape.bytes() };
        let any_release = plans.trial.is_none() && plans.basis != Basis::NotCudnn && !is_asked;
        Some(Workspace {
            size: plans.first(),
            range: if any_release { range.of_any_release(unasked) } else { range },
            fallback: call.edits.fallback_sizes(plans.sizes.iter().copied()),
        })
    }

    fn add_trial(&mut self, call: &mut Call<'_, '_, '_>, plans: &Plans, output: BlockId) {
        let Some(trial) = &plans.trial else { return };
        self.benchmarked.count(plans, trial);
        let cause = Uncertainty::ConvolutionPlan;
        let range = SizeRange::new(trial.low, trial.high, cause);
        let sizes = call.edits.fallback_sizes(trial.sizes.iter().copied());
        let (alloc, free) = (call.edits.after(output), call.edits.after(output));
        let (size, role, op) = (trial.largest(), Role::Workspace, call.op);
        call.edits.add_trial(Addition { size, alloc, free, role, op }, range, sizes);
    }
}

fn forward_question(arguments: &Arguments) -> Option<ConvolutionQuestion> {
    let (input, weight) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let shape = read(arguments, &FORWARD, input, weight, None)?;
    let pass = if shape.transposed { ConvPass::BackwardData } else { ConvPass::Forward };
    Some(ConvolutionQuestion::new(pass, shape))
}

const fn data_question(shape: ConvShape) -> ConvolutionQuestion {
    let pass = if shape.transposed { ConvPass::Forward } else { ConvPass::BackwardData };
    ConvolutionQuestion::new(pass, shape)
}

const fn weight_question(shape: ConvShape) -> ConvolutionQuestion {
    ConvolutionQuestion::new(ConvPass::BackwardWeight, shape)
}

/// The arguments of a backward call.
struct BackwardCall<'p> {
    shape: ConvShape,
    gradient: &'p TensorArg,
    input: &'p TensorArg,
    weight: &'p TensorArg,
    /// The gradients that are wanted: of input, weight and bias (`output_mask`).
    wants: [bool; 3],
    has_bias: bool,
}

impl<'p> BackwardCall<'p> {
    fn read(arguments: &'p Arguments) -> Option<Self> {
        let (gradient, input, weight) =
            (arguments.tensor(0)?, arguments.tensor(1)?, arguments.tensor(2)?);
        let shape = read(arguments, &BACKWARD, input, weight, Some(gradient))?;
        let mut wants = [true; 3];
        if let Some(mask) = arguments.value(10) {
            let flags = mask.trim_matches(['[', ']']).split(',').map(|flag| flag.trim() == "True");
            for (wanted, flag) in wants.iter_mut().zip(flags) {
                *wanted = flag;
            }
        }
        let has_bias = matches!(arguments.list.get(3), Some(Argument::Value(_)));
        Some(Self { shape, gradient, input, weight, wants, has_bias })
    }

    fn questions(&self) -> Vec<ConvolutionQuestion> {
        let [data, weight, _] = self.wants;
        let data = data.then(|| data_question(self.shape));
        data.into_iter().chain(weight.then(|| weight_question(self.shape))).collect()
    }
}

/// Copies of a call's operands in another memory format, which are gone when it returns.
fn format_copies(draft: &Draft<'_>, op: OpId) -> Vec<BlockId> {
    let profile = draft.profile();
    let is_copy = |&block: &BlockId| {
        let mut path = profile.op_path(profile.block(block)).take_while(|&o| o != op);
        draft.live(block)
            && !draft.escapes(block, op)
            && path.any(|o| profile.op_name(o) == "aten::contiguous")
    };
    draft.blocks_in(op).into_iter().filter(is_copy).collect()
}

/// Reads shapes and settings; `None` if they were not recorded or do not have 1 to 3 spatial dimensions.
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
        let kernel = (Count(weight[2 + i]) - 1) * dilation[i] + 1;
        let input = Count(input[2 + i]);
        let padding = Count(padding[i]) * 2;
        let side = if transposed {
            (input - 1) * stride[i] + kernel - padding
        } else {
            (input + padding - kernel) / stride[i] + 1
        };
        side.get()
    };
    let channels = if transposed { (Count(weight[1]) * groups).get() } else { weight[0] };
    [input[0], channels, side(0), side(1), side(2)]
}

/// Returns whether strides say channels-last (`suggest_memory_format`, c10/core/MemoryFormat.h).
fn channels_last(tensor: &TensorArg) -> bool {
    let (&[_, c, ref image @ ..], &[_, sc, .., sw]) =
        (tensor.dims.as_slice(), tensor.strides.as_slice())
    else {
        return false;
    };
    let pixels: Count = image.iter().copied().map(Count).product();
    image.len() >= 2 && sc == 1 && c > 1 && pixels > Count(1) && sw.unsigned_abs() == c
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::target::CudnnBenchmark;
    use crate::testing::{Case, Script, lowered, target};
    use expect_test::expect;
    use xmem_types::RequestKind;

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

    #[test]
    fn cudnn_benchmark_tries_all_plans_at_the_first_call_of_each_shape() {
        let codes = |benchmark: CudnnBenchmark| {
            let target = Target { cudnn_benchmark: benchmark, ..target() };
            let (schedule, notes) = lowered(&convolution(64, 1), &target);
            let trials: Vec<usize> = (0..schedule.requests.len())
                .filter(|&row| schedule.fallbacks.is_trial(schedule.requests[row].block))
                .collect();
            for pair in trials.chunks(2) {
                let (alloc, free) = (schedule.requests[pair[0]], schedule.requests[pair[1]]);
                assert_eq!((pair[1], free.kind), (pair[0] + 1, RequestKind::Free));
                assert!(
                    matches!(alloc.kind, RequestKind::Alloc { size, .. } if size > Bytes::ZERO)
                );
            }
            let codes: Vec<&str> =
                notes.iter().map(|n| n.code).filter(|c| c.starts_with("cudnn-bench")).collect();
            (trials.len() / 2, codes)
        };
        assert_eq!(codes(CudnnBenchmark::Unknown), (0, vec!["cudnn-benchmark-unknown"]));
        assert_eq!(codes(CudnnBenchmark::Off), (0, vec![]));
        let modeled = vec!["cudnn-benchmark", "cudnn-benchmark-modeled"];
        assert_eq!(codes(CudnnBenchmark::On { limit: 10 }), (3, modeled));
    }

    pub(crate) fn cases() -> Vec<Case> {
        vec![
            Case {
                rule: RULE.name,
                shows: "64 to 64 channels, 3 x 3: a workspace each for output, data and weight gradient, \
                        a reduction for the bias",
                script: convolution(64, 1),
                target: target(),
                requests: expect![[r#"
                    64 to 64 channels, 3 x 3: a workspace each for output, data and weight gradient, a reduction for the bias
                        + w 147456 parameter model-placement
                        + b 256 parameter model-placement
                        + y 25690112 activation
                    on  + cudnn-convolution#1 25837584 workspace
                    on  - cudnn-convolution#1
                        + gx 25690112 gradient
                    on  + cudnn-convolution#2 51527696 workspace
                    on  - cudnn-convolution#2
                        + gw 147456 gradient
                    on  + cudnn-convolution#3 52559888 workspace
                    on  - cudnn-convolution#3
                        + gb 256 gradient
                        - y
                        - gx
                        - gw
                        - gb
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "depthwise, contiguous, 32 bits: PyTorch's own kernel, without a workspace",
                script: convolution(64, 64),
                target: target(),
                requests: expect![[r#"
                    depthwise, contiguous, 32 bits: PyTorch's own kernel, without a workspace
                        + w 2304 parameter model-placement
                        + b 256 parameter model-placement
                        + y 25690112 activation
                        + gx 25690112 gradient
                        + gw 2304 gradient
                        + gb 256 gradient
                        - y
                        - gx
                        - gw
                        - gb
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "transposed: the output takes the workspace of a data gradient",
                script: transposed(),
                target: target(),
                requests: expect![[r#"
                    transposed: the output takes the workspace of a data gradient
                        + w 131072 parameter model-placement
                        + y 1048576 activation
                    on  + cudnn-convolution#1 1703952 workspace
                    on  - cudnn-convolution#1
                        + gx 524288 gradient
                    on  + cudnn-convolution#2 1179664 workspace
                    on  - cudnn-convolution#2
                        + gw 131072 gradient
                    on  + cudnn-convolution#3 2621456 workspace
                    on  - cudnn-convolution#3
                        - y
                        - gx
                        - gw
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "copies in another memory format come after the output, and go with their call",
                script: with_copies(),
                target: target(),
                requests: expect![[r#"
                    copies in another memory format come after the output, and go with their call
                        + w 24576 parameter model-placement
                    off + weight 24576 temporary
                        + y 786432 activation
                    on  + weight 24576 temporary cudnn-convolution
                        - weight
                    on  + gradient 786432 temporary cudnn-convolution
                    off + weight 24576 temporary
                    off + gradient 786432 temporary
                        + gx 524288 gradient
                    on  + weight 24576 temporary cudnn-convolution
                    on  - weight
                        + gw 24576 gradient
                    on  + cudnn-convolution#1 196608 workspace
                    on  - cudnn-convolution#1
                    off - weight
                        - gradient
                        - y
                        - gx
                        - gw
                "#]],
            },
        ]
    }

    /// 1 x 1 on a channels-last input: the CPU copies the weight before it makes the output, and weight and
    /// gradient before both gradients.
    fn with_copies() -> Script {
        let copy = |t: &mut Script, name: &str, bytes| {
            t.op("aten::contiguous", "{8,64,16,16} 2", |t| {
                t.makes("aten::clone", "- 2", name, bytes);
            });
        };
        let mut t = Script::default();
        t.parameter("w", &[96, 64, 1, 1]);
        t.iteration(0, |t| {
            let arguments = "f32[8,64,16,16] f32[96,64,1,1] - (1,1) (0,0) (1,1) False (0,0) 1";
            t.op_seq(1, "aten::_convolution", arguments, |t| {
                copy(t, "weight", 24_576);
                t.makes("aten::mkldnn_convolution", arguments, "y", 786_432);
                t.free("weight");
            });
            t.node(1, "ConvolutionBackward0", |t| {
                let arguments = "f32[8,96,16,16] f32[8,64,16,16] f32[96,64,1,1] - (1,1) (0,0) (1,1) \
                                 False (0,0) 1 (True,True,False)";
                t.op("aten::convolution_backward", arguments, |t| {
                    copy(t, "weight", 24_576);
                    copy(t, "gradient", 786_432);
                    t.alloc("gx", 524_288);
                    t.makes("aten::_to_copy", "f32[96,64,1,1]", "gw", 24_576);
                    t.free("weight gradient");
                });
                t.free("y");
            });
            t.accumulate("f32[96,64,1,1]");
            t.free("gx gw");
        });
        t
    }

    /// Batch 32, 56 x 56, with bias; oneDNN reorders the input.
    fn convolution(channels: u64, groups: u64) -> Script {
        let image = format!("f32[32,{channels},56,56]");
        let weight = format!("f32[{channels},{},3,3]", channels / groups);
        let bytes = 32 * channels * 56 * 56 * 4;
        let weight_bytes = channels * (channels / groups) * 36;
        let settings = format!("(1,1) (1,1) (1,1) False (0,0) {groups}");
        let mut t = Script::default();
        t.model(&[("w", &[channels, channels / groups, 3, 3]), ("b", &[channels])]);
        t.iteration(0, |t| {
            let arguments = format!("{image} {weight} f32[{channels}] {settings}");
            t.op_seq(1, "aten::conv2d", &arguments, |t| {
                let arguments = format!("{arguments} False False True True");
                t.op_seq(1, "aten::_convolution", &arguments, |t| {
                    t.op("aten::mkldnn_convolution", &arguments, |t| {
                        t.alloc("reordered", bytes);
                        t.alloc("y", bytes);
                        t.free("reordered");
                    });
                });
            });
            t.node(1, "ConvolutionBackward0", |t| {
                let arguments =
                    format!("{image} {image} {weight} ({channels}) {settings} (True,True,True)");
                t.op("aten::convolution_backward", &arguments, |t| {
                    t.alloc("gx", bytes);
                    t.alloc("gw", weight_bytes);
                    t.alloc("gb", 4 * channels);
                });
                t.free("y");
            });
            t.accumulate(&weight);
            t.accumulate(&format!("f32[{channels}]"));
            t.free("gx gw gb");
        });
        t
    }

    /// 64 to 32 channels, 4 x 4, stride 2: 16 x 16 becomes 32 x 32.
    fn transposed() -> Script {
        let mut t = Script::default();
        t.parameter("w", &[64, 32, 4, 4]);
        t.iteration(0, |t| {
            let arguments = "f32[8,64,16,16] f32[64,32,4,4] - (2,2) (1,1) (1,1) True (0,0) 1";
            t.makes_seq(1, "aten::_convolution", arguments, "y", 8 * 32 * 32 * 32 * 4);
            t.node(1, "ConvolutionBackward0", |t| {
                let arguments = "f32[8,32,32,32] f32[8,64,16,16] f32[64,32,4,4] - (2,2) (1,1) (1,1) \
                                 True (0,0) 1 (True,True,False)";
                t.op("aten::convolution_backward", arguments, |t| {
                    t.alloc("gx", 8 * 64 * 16 * 16 * 4);
                    t.alloc("gw", 64 * 32 * 16 * 4);
                });
                t.free("y");
            });
            t.accumulate("f32[64,32,4,4]");
            t.free("gx gw");
        });
        t
    }
}
