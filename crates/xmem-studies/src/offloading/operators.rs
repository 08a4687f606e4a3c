//! The operators of one iteration: the outermost ones in order, their part of the training step, and their durations.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use xmem_analyzer::{Argument, DType, Phase, Profile};
use xmem_timing::{Precision, Tensor, TimeModel, Work, has_formula, starts_no_kernel};
use xmem_types::{Bytes, Nanos, OpId};

/// An outermost operator, or a node of the backward pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outermost {
    pub(crate) op: OpId,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) part: Part,
}

/// The part of the training step that an operator belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Forward,
    /// A node of the backward pass, and the outermost forward operator that made it.
    Backward(Option<OpId>),
    Optimizer,
    Other,
}

/// The outermost operators of a span of time, in order.
pub(crate) fn outermost(profile: &Profile, span: &Range<Nanos>) -> Vec<Outermost> {
    let is_inside = |op: &OpId| span.contains(&profile.op_start(*op));
    let mut found: Vec<Outermost> = profile
        .tree
        .preorder()
        .iter()
        .copied()
        .filter(is_inside)
        .filter(|&op| !profile.is_annotation(op) && is_outermost(profile, op))
        .map(|op| {
            let start = profile.op_start(op);
            Outermost { op, start, end: profile.tree.end(op), part: part(profile, op, start) }
        })
        .collect();
    found.sort_by_key(|operator| (operator.start, operator.op));
    // What other threads do at the same time, as loading data, is not the device's work in order.
    let mut until = Nanos::MIN;
    found.retain(|operator| {
        let follows = operator.start >= until;
        if follows {
            until = operator.end;
        }
        follows
    });
    found
}

fn is_outermost(profile: &Profile, op: OpId) -> bool {
    profile.tree.path(op).skip(1).all(|above| profile.is_annotation(above))
}

fn part(profile: &Profile, op: OpId, start: Nanos) -> Part {
    if profile.backward_node(op) == Some(op) {
        let forward = profile.autograd.saved_by(op);
        return Part::Backward(forward.map(|forward| top(profile, forward)));
    }
    match profile.phase_at(start).map(|span| span.phase) {
        Some(Phase::OptimizerStep) => Part::Optimizer,
        Some(Phase::Backward | Phase::ZeroGrad) => Part::Other,
        _ => Part::Forward,
    }
}

/// The outermost operator around an operator.
fn top(profile: &Profile, op: OpId) -> OpId {
    let around = profile.tree.path(op).filter(|&above| !profile.is_annotation(above));
    around.last().unwrap_or(op)
}

/// The shapes of the gradients that the engine adds up in a node of the backward pass: the input of such a shape has
/// another reader, further on in the forward pass (`InputBuffer::add` of torch/csrc/autograd/input_buffer.cpp).
pub(super) fn accumulated(profile: &Profile, node: OpId) -> Vec<Vec<u64>> {
    let additions = profile
        .tree
        .children(node)
        .filter(|&op| matches!(profile.op_name(op), "aten::add" | "aten::add_"));
    additions.filter_map(|op| Some(profile.arguments(op).tensor(0)?.dims.clone())).collect()
}

/// Durations by a model.
pub(crate) struct Durations<'a> {
    profile: &'a Profile,
    model: &'a TimeModel,
    /// The measured operators that were met.
    measured: RefCell<BTreeSet<&'a str>>,
}

impl<'a> Durations<'a> {
    pub(crate) fn new(profile: &'a Profile, model: &'a TimeModel) -> Self {
        Self { profile, model, measured: RefCell::default() }
    }

    /// The duration of an operator with everything inside. A measured one inside counts, too: profiles of a GPU have the
    /// time of a convolution at `aten::cudnn_convolution`, and traces have `aten::conv2d` around it.
    pub(crate) fn of(&self, op: OpId) -> Nanos {
        let name = self.profile.op_name(op);
        if let Some((name, &duration)) = self.model.measured.get_key_value(name) {
            self.measured.borrow_mut().insert(name);
            return duration;
        }
        if has_formula(name) && !self.has_measured_inside(op) {
            return self.single(op, name);
        }
        let mut inside = self.profile.tree.children(op).peekable();
        if inside.peek().is_some() {
            return inside.map(|child| self.of(child)).sum();
        }
        if name.starts_with("autograd::") || self.profile.is_annotation(op) {
            return Nanos::ZERO;
        }
        self.single(op, name)
    }

    fn has_measured_inside(&self, op: OpId) -> bool {
        !self.model.measured.is_empty()
            && self.profile.tree.children(op).any(|child| {
                self.model.measured.contains_key(self.profile.op_name(child))
                    || self.has_measured_inside(child)
            })
    }

    /// The measured operators that were met.
    pub(super) fn measured(self) -> BTreeSet<String> {
        self.measured.into_inner().into_iter().map(str::to_owned).collect()
    }

    fn single(&self, op: OpId, name: &str) -> Nanos {
        if starts_no_kernel(name) {
            return Nanos::ZERO;
        }
        let is_convolution = name.contains("conv");
        let arguments = self.profile.arguments(op);
        let tensors: Vec<Tensor<'_>> = arguments
            .list
            .iter()
            .flat_map(|argument| match argument {
                Argument::Tensor(tensor) => {
                    let precision = precision(tensor.dtype, is_convolution);
                    vec![Tensor { extents: &tensor.dims, precision }]
                }
                Argument::TensorList(list) => list
                    .iter()
                    .map(|dims| Tensor { extents: dims, precision: Precision::Float32 })
                    .collect(),
                _ => Vec::new(),
            })
            .collect();
        let (start, end) = (self.profile.op_start(op), self.profile.op_end(op));
        let made = &self.profile.blocks[self.profile.blocks_between(start, end)];
        let outputs: Bytes =
            made.iter().filter(|block| block.lasts_beyond(end)).map(|block| block.size).sum();
        let changed = tensors.first().map_or(Bytes::ZERO, |first| {
            let elements = first.extents.iter().product::<u64>();
            Bytes(elements.saturating_mul(first.precision.element()))
        });
        let outputs = if outputs == Bytes::ZERO { changed } else { outputs };
        self.model.operator_duration(name, &Work::of_operator(name, &tensors, outputs))
    }
}

/// cuDNN computes convolutions of `float32` in TF32 where the device has it (`torch.backends.cudnn.allow_tf32`).
fn precision(dtype: DType, is_convolution: bool) -> Precision {
    match dtype {
        DType::F64 => Precision::Float64,
        DType::F32 if is_convolution => Precision::TensorFloat32,
        DType::F32 => Precision::Float32,
        DType::F16 => Precision::Float16,
        DType::BF16 => Precision::BFloat16,
        other => Precision::Other(u8::try_from(other.size()).unwrap_or(8)),
    }
}
