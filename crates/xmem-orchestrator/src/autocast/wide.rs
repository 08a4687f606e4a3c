//! Operators that CUDA's autocast runs in 32 bits and the CPU's does not.
//!
//! What such an operator makes is twice as large, and so is everything computed from it element by
//! element, until a matrix product or a convolution casts it down again. The trace has no tensor
//! ids: an operator is taken to read the latest live blocks of its inputs' sizes.

use crate::attention::NodesOf;
use crate::draft::{Addition, Draft, Position};
use crate::rules::name::AUTOCAST_WIDE;
use rustc_hash::FxHashMap;
use xmem_analyzer::{DType, Profile, Role, TensorArg};
use xmem_types::{Bytes, OpId};

/// Operators of the float32 list that are common on activations and absent from the CPU's list,
/// whose backward reads the input: the cast copy is kept instead of the input.
const KEEP_CAST: &[&str] = &[
    "aten::pow",
    "aten::square",
    "aten::log",
    "aten::log10",
    "aten::log1p",
    "aten::log2",
    "aten::softplus",
    "aten::sinh",
    "aten::cosh",
    "aten::layer_norm",
    "aten::group_norm",
];

/// The same, where backward reads the result or nothing: the cast copy goes when they return.
const PASS_CAST: &[&str] = &[
    "aten::exp",
    "aten::expm1",
    "aten::reciprocal",
    "aten::rsqrt",
    "aten::tan",
    "aten::upsample_nearest1d",
    "aten::upsample_nearest2d",
    "aten::upsample_nearest3d",
    "aten::upsample_linear1d",
    "aten::upsample_bilinear2d",
    "aten::upsample_bicubic2d",
    "aten::upsample_trilinear3d",
];

/// Operators whose result is asked for in float32 (`fp32_set_opt_dtype`). Kernels read float16 as
/// it is and bfloat16 from a cast copy.
const WIDE_RESULT: &[&str] =
    &["aten::softmax", "aten::log_softmax", "aten::cumsum", "aten::cumprod"];

/// Operators that compute element by element in the wider of their inputs' types.
const ELEMENTWISE: &[&str] = &[
    "aten::mul",
    "aten::add",
    "aten::sub",
    "aten::div",
    "aten::tanh",
    "aten::neg",
    "aten::sigmoid",
    "aten::relu",
    "aten::gelu",
    "aten::silu",
    "aten::clamp",
    "aten::dropout",
    "aten::masked_fill",
    "aten::where",
    "aten::clone",
    "aten::hardswish",
    "aten::leaky_relu",
    "aten::elu",
    "aten::mish",
    "aten::sqrt",
    "aten::abs",
];

/// Operators of the lower-precision list: they cast wide inputs down.
const CAST_DOWN: &[&str] = &[
    "aten::linear",
    "aten::addmm",
    "aten::matmul",
    "aten::mm",
    "aten::bmm",
    "aten::baddbmm",
    "aten::conv1d",
    "aten::conv2d",
    "aten::conv3d",
    "aten::_convolution",
];

/// Below this many elements a tensor is not worth following.
const SMALL: u64 = 1024;

/// How far back an input is looked for, in blocks.
const WINDOW: usize = 96;

/// Blocks that are wide on CUDA, and the operators that made them.
type Wide = FxHashMap<usize, OpId>;

/// Widens what CUDA's autocast keeps in 32 bits.
pub(crate) fn widen(draft: &mut Draft<'_>, nodes_of: &NodesOf) {
    let profile = draft.profile;
    if !autocast_is_on(profile) {
        return;
    }
    let mut wide = Wide::default();
    // Inputs that only the cast operator kept; on CUDA it keeps the cast copy instead.
    let mut unkept: Vec<usize> = Vec::new();
    let order = profile.tree.preorder();
    let mut at = 0;
    while let Some(&op) = order.get(at) {
        at += 1;
        if profile.is_annotation(op) {
            continue;
        }
        at += profile.tree.descendants(op).len();
        let operator = profile.op_name(op);
        let half = profile.arguments(op).tensor(0).filter(|t| t.dtype.is_half());
        if let Some(input) = half.and_then(|t| widened(operator, t.dtype)) {
            // What is wide already needs no cast.
            let input = if read(draft, op, &wide).is_some() { Input::AsIs } else { input };
            raise(draft, nodes_of, op, input, &mut wide);
            if input == Input::Kept {
                unkept.extend(kept_input(draft, nodes_of, op));
            }
        } else if wide.is_empty() {
        } else if ELEMENTWISE.contains(&operator) {
            if read(draft, op, &wide).is_some() {
                raise(draft, nodes_of, op, Input::AsIs, &mut wide);
            }
        } else if CAST_DOWN.contains(&operator)
            && let Some(input) = read(draft, op, &wide)
        {
            let maker = wide.remove(&input);
            lower(draft, nodes_of, op, input, maker);
            let gone = Position::start(profile.op_start(op));
            for i in unkept.drain(..) {
                draft.retime(i, draft.items[i].alloc, Some(gone), AUTOCAST_WIDE);
            }
        }
    }
}

/// What becomes of an operator's input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Input {
    /// It is cast, and backward keeps the cast copy.
    Kept,
    /// It is cast for the length of the call.
    Passing,
    /// It is read as it is.
    AsIs,
}

/// How an operator that makes float32 of half precision treats its input; none for others.
fn widened(operator: &str, dtype: DType) -> Option<Input> {
    if KEEP_CAST.contains(&operator) {
        Some(Input::Kept)
    } else if PASS_CAST.contains(&operator) {
        Some(Input::Passing)
    } else if WIDE_RESULT.contains(&operator) {
        Some(if dtype == DType::BF16 { Input::Passing } else { Input::AsIs })
    } else {
        None
    }
}

/// Autocast dispatches an operator of its lists again within itself.
fn autocast_is_on(profile: &Profile) -> bool {
    profile.tree.preorder().iter().any(|&op| {
        CAST_DOWN.contains(&profile.op_name(op))
            && profile.tree.children(op).any(|c| profile.op_symbol(c) == profile.op_symbol(op))
    })
}

/// Doubles an operator's result and what its backward makes.
fn raise(draft: &mut Draft<'_>, nodes_of: &NodesOf, op: OpId, input: Input, wide: &mut Wide) {
    let profile = draft.profile;
    let Some(tensor) = profile.arguments(op).tensors().max_by_key(|t| t.numel()) else { return };
    let narrow = Bytes(tensor.numel() * 2);
    if tensor.numel() < SMALL {
        return;
    }
    let resampled = profile.op_name(op).starts_with("aten::upsample");
    let result = if resampled { largest(draft, op) } else { of_size(draft, op, narrow) };
    let Some(result) = result else { return };
    let doubled = Bytes(narrow.get() * 2);
    draft.resize(result, Bytes(profile.blocks[result].size.get() * 2), AUTOCAST_WIDE);
    wide.insert(result, op);
    let node = nodes(profile, nodes_of, op).first().copied();
    if let Some(node) = node {
        for i in draft.blocks_in(node) {
            if draft.live(i) && draft.items[i].size == narrow {
                draft.resize(i, doubled, AUTOCAST_WIDE);
            }
        }
    }
    if input == Input::AsIs {
        return;
    }
    let alloc = Position::start(profile.op_start(op));
    let alloc = draft.after_position(alloc);
    let (last, role) = match (input, node) {
        (Input::Kept, Some(node)) => (node, Role::Activation),
        _ => (op, Role::Temporary),
    };
    let free = Some(Position::end(profile.op_end(last)));
    draft.add(Addition { size: doubled, alloc, free, role, op }, AUTOCAST_WIDE);
    // The cast's own backward: the wide gradient gives way to one in the input's type.
    let Some(node) = node else { return };
    let Some(gradient) = draft
        .blocks_in(node)
        .into_iter()
        .rev()
        .find(|&i| draft.live(i) && draft.items[i].size == doubled && draft.escapes(i, node))
    else {
        return;
    };
    hand_over(draft, gradient, narrow, node);
}

/// The input that an operator alone keeps for its backward: freed by its node.
fn kept_input(draft: &Draft<'_>, nodes_of: &NodesOf, op: OpId) -> Option<usize> {
    let profile = draft.profile;
    let node = nodes(profile, nodes_of, op).first().copied()?;
    let (start, end) = (profile.op_start(node), profile.op_end(node));
    let size = Bytes(profile.arguments(op).tensor(0)?.bytes());
    let before = profile.blocks.partition_point(|b| b.alloc_time < profile.op_start(op));
    (before.saturating_sub(WINDOW)..before).rev().find(|&i| {
        let block = &profile.blocks[i];
        draft.live(i)
            && block.size == size
            && block.free_time.is_some_and(|f| start <= f && f <= end)
    })
}

/// A product or convolution reads a wide tensor: a cast copy is what it keeps. The wide one goes
/// when it returns, or with the backward of its maker where that reads its own result (softmax).
fn lower(draft: &mut Draft<'_>, nodes_of: &NodesOf, op: OpId, input: usize, maker: Option<OpId>) {
    let profile = draft.profile;
    let narrow = profile.blocks[input].size;
    let alloc = draft.after_position(Position::start(profile.op_start(op)));
    let kept = maker.is_some_and(|maker| {
        let freed = profile.blocks[input].free_time;
        nodes(profile, nodes_of, maker)
            .iter()
            .any(|&n| freed.is_some_and(|f| profile.op_start(n) <= f && f <= profile.op_end(n)))
    });
    let users = nodes(profile, nodes_of, op);
    let free = match users.first() {
        Some(&node) if kept => Some(Position::end(profile.op_end(node))),
        _ => draft.items[input].free,
    };
    draft.add(Addition { size: narrow, alloc, free, role: Role::Activation, op }, AUTOCAST_WIDE);
    if !kept {
        let done = Position::end(profile.op_end(op));
        draft.retime(input, draft.items[input].alloc, Some(done), AUTOCAST_WIDE);
    }
    for node in users {
        let Some(gradient) = of_size(draft, node, narrow) else { continue };
        hand_over(draft, gradient, Bytes(narrow.get() * 2), node);
        return;
    }
}

/// After `node` a gradient is cast: a block of `size` lives on in its stead.
fn hand_over(draft: &mut Draft<'_>, gradient: usize, size: Bytes, node: OpId) {
    let done = Position::end(draft.profile.op_end(node));
    let free = draft.items[gradient].free;
    let alloc = draft.after_position(done);
    draft.add(Addition { size, alloc, free, role: Role::Temporary, op: node }, AUTOCAST_WIDE);
    let gone = draft.after_position(done);
    draft.retime(gradient, draft.items[gradient].alloc, Some(gone), AUTOCAST_WIDE);
}

/// The escaping block of this size that an operator makes.
fn of_size(draft: &Draft<'_>, op: OpId, size: Bytes) -> Option<usize> {
    let made = draft.blocks_in(op).into_iter();
    made.rev().find(|&i| draft.live(i) && draft.items[i].size == size && draft.escapes(i, op))
}

/// The largest block that an operator makes.
fn largest(draft: &Draft<'_>, op: OpId) -> Option<usize> {
    let made = draft.blocks_in(op).into_iter();
    made.filter(|&i| draft.live(i) && draft.escapes(i, op)).max_by_key(|&i| draft.items[i].size)
}

/// Backward nodes of an operator and of what it calls, in order of time.
fn nodes(profile: &Profile, nodes_of: &NodesOf, op: OpId) -> Vec<OpId> {
    let inside = profile.tree.descendants(op).iter().copied();
    let mut found: Vec<OpId> = std::iter::once(op)
        .chain(inside)
        .filter_map(|o| nodes_of.get(&o))
        .flatten()
        .copied()
        .collect();
    found.sort_unstable_by_key(|&n| (profile.op_start(n), n));
    found
}

/// The wide block among the latest live blocks of the sizes of an operator's 16-bit inputs.
fn read(draft: &Draft<'_>, op: OpId, wide: &Wide) -> Option<usize> {
    let profile = draft.profile;
    let start = profile.op_start(op);
    let before = profile.blocks.partition_point(|b| b.alloc_time < start);
    let inputs = profile.arguments(op).tensors().filter(|t| t.dtype.is_half());
    let mut sizes: Vec<u64> = inputs.filter(|t| t.numel() >= SMALL).map(TensorArg::bytes).collect();
    for i in (before.saturating_sub(WINDOW)..before).rev() {
        let block = &profile.blocks[i];
        if !draft.live(i) || block.free_time.is_some_and(|f| f < start) {
            continue;
        }
        let Some(at) = sizes.iter().position(|&s| s == block.size.get()) else { continue };
        if wide.contains_key(&i) {
            return Some(i);
        }
        sizes.swap_remove(at);
    }
    None
}
