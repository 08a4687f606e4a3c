//! The math path where the CPU took its flash kernel.
//!
//! `_scaled_dot_product_attention_math` (aten/src/ATen/native/transformers/attention.cpp) is made
//! of ordinary operators: scaled copies of query and key, scores, softmax, and in half precision
//! 32-bit copies of all three inputs. Order and sizes recorded with PyTorch 2.11's CUDA build,
//! kernels stubbed.

use super::fused::is_copy;
use super::mask;
use super::select::Call;
use super::tape::{Piece, Tape};
use crate::draft::{Addition, Draft, Position};
use crate::rules::name::ATTENTION;
use xmem_analyzer::{CallKind, DType, Role, TensorArg};
use xmem_types::{Bytes, OpId};

/// How many operators after the backward node a gradient's way to its projection may take.
const WAY: usize = 400;

/// Among how many blocks of the schedule such a gradient is looked for.
const NEAR: usize = 64;

/// The sizes of a call's tensors in the type that the path computes in.
struct Sizes {
    /// Half precision is computed in 32 bits.
    widened: bool,
    query: Bytes,
    key: Bytes,
    value: Bytes,
    /// Key and value with as many heads as the query.
    all_keys: Bytes,
    all_values: Bytes,
    scores: Bytes,
    output: Bytes,
    element: DType,
}

impl Sizes {
    fn of(call: &Call) -> Self {
        let widened = call.query.dtype.is_half();
        let element = if widened { DType::F32 } else { call.query.dtype };
        let bytes = |elements: u64| Bytes(elements * element.size());
        let size = |t: &TensorArg| bytes(t.numel());
        let all = |t: &TensorArg| bytes(t.numel() / t.dims[1].max(1) * call.heads());
        Self {
            widened,
            query: size(&call.query),
            key: size(&call.key),
            value: size(&call.value),
            all_keys: all(&call.key),
            all_values: all(&call.value),
            scores: bytes(call.scores()),
            output: bytes(call.output_elements()),
            element,
        }
    }
}

/// What the forward keeps for the backward; none where an input itself is kept.
struct Saved {
    query: Piece,
    key: Piece,
    value: Option<Piece>,
    softmax: Piece,
}

/// The blocks of the CPU's backward node that live on.
struct Gradients {
    query: usize,
    key: usize,
    value: usize,
    /// The gradient that comes in, freed within the node.
    incoming: Option<usize>,
}

/// Replaces the flash kernel by the math path. Returns the backward node that it has replaced as
/// well; none, with nothing changed, if the CPU's output or gradients cannot be told.
pub(super) fn from_flash(draft: &mut Draft<'_>, call: &Call, op: OpId) -> Option<Vec<OpId>> {
    let escaping = escaping(draft, op);
    let output = escaping.iter().copied().find(|&i| size(draft, i) == call.output_bytes())?;
    let gradients = match node(draft, call, output, &escaping) {
        Some(node) => Some((node, gradients(draft, call, op, node)?)),
        None => None,
    };
    let sizes = Sizes::of(call);
    for i in draft.blocks_in(op) {
        if i != output {
            draft.drop_block(i, ATTENTION);
        }
    }
    if let Some((node, _)) = &gradients {
        release_inputs(draft, call, op, *node);
    }
    let leaves = copy_output(draft, call, op, output, gradients.as_ref().map(|(_, g)| g));
    let start = Position::start(draft.profile.op_start(op));
    let mut tape = Tape::new(draft, start, op, ATTENTION);
    let saved = forward(&mut tape, call, &sizes, output, leaves);
    match &gradients {
        Some((node, gradients)) => {
            let start = Position::start(tape.draft.profile.op_start(*node));
            tape.go_to(start, *node);
            backward(&mut tape, call, &sizes, saved, gradients);
        }
        None => {
            for piece in [Some(saved.query), Some(saved.key), saved.value, Some(saved.softmax)] {
                piece.into_iter().for_each(|p| tape.give(p));
            }
        }
    }
    tape.finish();
    if let Some((node, gradients)) = &gradients {
        let made = [gradients.query, gradients.key, gradients.value];
        for i in draft.blocks_in(*node) {
            if !made.contains(&i) {
                draft.drop_block(i, ATTENTION);
            }
        }
        copy_where_viewed(draft, call, *node);
    }
    Some(gradients.into_iter().map(|(node, _)| node).collect())
}

/// The backward node that used what this call saved: the one in which its row sums go. Autograd's
/// link would name the node of a checkpointed call, whose tensors are those of the recomputation.
fn node(draft: &Draft<'_>, call: &Call, output: usize, escaping: &[usize]) -> Option<OpId> {
    let profile = draft.profile;
    let rows = call.batch() * call.heads() * call.length();
    let element = call.query.dtype.size().max(DType::F32.size());
    let is_sums = |&i: &usize| i != output && size(draft, i) == rows * element;
    let sums = escaping.iter().rev().copied().find(is_sums)?;
    let freed_in = profile.blocks[sums].freed_in?;
    profile.tree.path(freed_in).find(|&o| profile.op_name(o) == CPU_NODE)
}

fn forward(
    tape: &mut Tape<'_, '_>,
    call: &Call,
    sizes: &Sizes,
    output: usize,
    leaves: Option<Position>,
) -> Saved {
    let handed_in = mask::converted(call).map(|size| mask::convert(tape, size, call.query.dtype));
    let cast = sizes.widened.then(|| [sizes.query, sizes.key, sizes.value].map(|s| tape.take(s)));
    let query = tape.take(sizes.query);
    let causal = call.causal.then(|| {
        let cells = Bytes(call.length() * call.key.dims[2]);
        let ones = tape.take(cells);
        let triangle = tape.take(cells);
        tape.give(ones);
        let mask = mask::convert(tape, Bytes(cells.get() * sizes.element.size()), sizes.element);
        tape.give(triangle);
        mask
    });
    let expanded = call.grouped().then(|| [tape.take(sizes.all_keys), tape.take(sizes.all_values)]);
    let key = tape.take(sizes.all_keys);
    // bmm wants batch and heads as one dimension; where the layout forbids it, copies.
    let query_copy = (!merges(&call.query)).then(|| tape.take(sizes.query));
    let key_copy = (expanded.is_none() && !merges(&call.key)).then(|| tape.take(sizes.all_keys));
    let scores = tape.take(sizes.scores);
    if key_copy.is_some() {
        tape.give(key);
    }
    let softmax = tape.take(sizes.scores);
    // `_safe_softmax` asks which rows are masked throughout.
    let infinite = tape.take(Bytes(call.scores()));
    let rows = tape.take(Bytes(call.batch() * call.heads() * call.length()));
    tape.touch(Bytes(sizes.element.size()));
    tape.give(rows);
    tape.give(infinite);
    tape.give(scores);
    let narrow = sizes.widened.then(|| tape.take(Bytes(call.scores() * call.query.dtype.size())));
    let value_copy = (expanded.is_none() && !merges(&call.value)).then(|| tape.take(sizes.value));
    if sizes.widened {
        let wide = tape.take(sizes.output);
        tape.land(output);
        tape.give(wide);
    } else {
        tape.land(output);
    }
    let alloc = tape.draft.items[output].alloc;
    tape.draft.retime(output, alloc, leaves, ATTENTION);
    if let Some([keys, _]) = expanded {
        tape.give(keys);
    }
    if query_copy.is_some() {
        tape.give(query);
    }
    causal.into_iter().for_each(|p| tape.give(p));
    let mut value = expanded.map(|[_, values]| values).or(value_copy);
    if let Some([query, key, cast_value]) = cast {
        match value {
            Some(_) => tape.give(cast_value),
            None => value = Some(cast_value),
        }
        tape.give(key);
        tape.give(query);
    }
    narrow.into_iter().for_each(|p| tape.give(p));
    handed_in.into_iter().for_each(|p| tape.give(p));
    Saved { query: query_copy.unwrap_or(query), key: key_copy.unwrap_or(key), value, softmax }
}

fn backward(
    tape: &mut Tape<'_, '_>,
    call: &Call,
    sizes: &Sizes,
    saved: Saved,
    gradients: &Gradients,
) {
    let wide = sizes.widened.then(|| tape.take(sizes.output));
    if wide.is_some() {
        gradients.incoming.into_iter().for_each(|i| tape.release(i));
    }
    let incoming = tape.take(sizes.output);
    match wide {
        Some(wide) => tape.give(wide),
        None => gradients.incoming.into_iter().for_each(|i| tape.release(i)),
    }
    // The product with the values: their gradient, then the weights'.
    let last = |this: bool| this && !sizes.widened;
    let grouped = call.grouped();
    let mut value = arrive(tape, sizes.all_values, last(!grouped), gradients.value);
    let weights = tape.take(sizes.scores);
    tape.give(incoming);
    saved.value.into_iter().for_each(|p| tape.give(p));
    let scores = tape.take(sizes.scores);
    tape.touch(sizes.scores);
    tape.give(weights);
    tape.give(saved.softmax);
    // The product of query and key.
    let scaled_key = tape.take(sizes.all_keys);
    let scaled_query = tape.take(sizes.query);
    tape.give(scores);
    tape.give(saved.key);
    tape.give(saved.query);
    let mut key = arrive(tape, sizes.all_keys, last(!grouped), gradients.key);
    tape.give(scaled_key);
    if grouped {
        let of_all = [value, key];
        value = arrive(tape, sizes.value, last(true), gradients.value);
        of_all[0].into_iter().for_each(|p| tape.give(p));
        key = arrive(tape, sizes.key, last(true), gradients.key);
        of_all[1].into_iter().for_each(|p| tape.give(p));
    }
    let query = arrive(tape, sizes.query, last(true), gradients.query);
    tape.give(scaled_query);
    // The casts' own backward.
    let casts = [(value, gradients.value), (key, gradients.key), (query, gradients.query)];
    for (wide, gradient) in casts {
        if let Some(wide) = wide {
            tape.land(gradient);
            tape.give(wide);
        }
    }
}

/// A gradient's next form: the recorded block itself if it is the last one, else one more piece.
fn arrive(tape: &mut Tape<'_, '_>, size: Bytes, last: bool, gradient: usize) -> Option<Piece> {
    if last {
        tape.land(gradient);
        return None;
    }
    Some(tape.take(size))
}

/// What the flash kernel kept and the math path does not: the inputs go when the module's call
/// that holds them returns.
fn release_inputs(draft: &mut Draft<'_>, call: &Call, op: OpId, node: OpId) {
    let profile = draft.profile;
    let (start, window) = (profile.op_start(op), profile.op_start(node)..=profile.op_end(node));
    // Without a copy in between, the product keeps the value itself.
    let keeps_value = !call.query.dtype.is_half() && !call.grouped() && merges(&call.value);
    let mut kept = if keeps_value { Some(call.value.bytes()) } else { None };
    let before = profile.blocks.partition_point(|b| b.alloc_time < start);
    for i in draft.recorded.freed_in(&window).into_iter().filter(|&i| i < before) {
        let block = &profile.blocks[i];
        if !draft.live(i) {
            continue;
        }
        if kept == Some(block.size.get()) {
            kept = None;
            continue;
        }
        let returns = profile.return_around(op, CallKind::Module, block.alloc_time);
        let free = Position::end(returns.unwrap_or(profile.op_end(op)));
        draft.retime(i, draft.items[i].alloc, Some(free), ATTENTION);
    }
}

/// The flash kernel's output lies in memory as the projection after it wants it; the math path's
/// is copied. Returns when the output itself goes.
fn copy_output(
    draft: &mut Draft<'_>,
    call: &Call,
    op: OpId,
    output: usize,
    gradients: Option<&Gradients>,
) -> Option<Position> {
    let profile = draft.profile;
    let end = profile.op_end(op);
    let returns = profile.return_around(op, CallKind::Function, profile.op_start(op));
    let leaves = Position::end(returns.unwrap_or(end));
    let free = draft.items[output].free;
    let after = profile.blocks.partition_point(|b| b.alloc_time <= end);
    let copied = (after..profile.blocks.len().min(after + 4)).any(|i| {
        profile.blocks[i].size == profile.blocks[output].size
            && is_copy(draft, i)
            && profile.blocks[i].alloc_time <= leaves.time
    });
    if copied || call.heads() == 1 || call.length() == 1 {
        return if gradients.is_some() { Some(leaves) } else { free };
    }
    // The projection lets its input go when it has made the gradient that comes in.
    let consumer = gradients.and_then(|g| g.incoming).and_then(|i| profile.blocks[i].op);
    let consumer = consumer.and_then(|o| profile.backward_node(o)).map(|n| profile.op_end(n));
    let free = consumer.map(Position::end).or(free);
    let alloc = draft.after_position(Position::end(end));
    let size = profile.blocks[output].size;
    draft.add(Addition { size, alloc, free, role: Role::Activation, op }, ATTENTION);
    Some(free.map_or(leaves, |free| free.min(leaves)))
}

/// The flash kernel's gradients lie sequence first, so that the way back through
/// `view(B, L, H, D).transpose(1, 2)` copies nothing; the math path's lie heads first and are
/// copied where they are viewed as rows.
fn copy_where_viewed(draft: &mut Draft<'_>, call: &Call, node: OpId) {
    let profile = draft.profile;
    let rows = |t: &TensorArg| [t.dims[0], t.dims[2], t.dims[1], t.dims[3]];
    let mut wanted = vec![rows(&call.query), rows(&call.key), rows(&call.value)];
    let after = profile.tree.positions(node).end;
    for &op in profile.tree.preorder()[after..].iter().take(WAY) {
        if wanted.is_empty() || profile.op_name(op) == CPU_BACKWARD {
            return;
        }
        if profile.op_name(op) != "aten::reshape" {
            continue;
        }
        let Some(frame) = profile.backward_node(op) else { continue };
        let Some(viewed) = profile.arguments(op).tensor(0) else { continue };
        let Some(at) = wanted.iter().position(|w| viewed.dims == w) else { continue };
        wanted.swap_remove(at);
        if !contiguous(viewed) || viewed.dims[1] == 1 || viewed.dims[2] == 1 {
            continue;
        }
        let (start, end) = (profile.op_start(frame), profile.op_end(frame));
        let before = profile.blocks.partition_point(|b| b.alloc_time < start);
        let gradient = (0..before)
            .rev()
            .filter(|&i| draft.live(i))
            .take(NEAR)
            .filter(|&i| profile.blocks[i].size.get() == viewed.bytes())
            .filter(|&i| profile.blocks[i].free_time.is_some_and(|f| f > start))
            .min_by_key(|&i| profile.blocks[i].free_time);
        let Some(gradient) = gradient else { continue };
        let free = draft.items[gradient].free;
        let alloc = draft.after_position(Position::start(start));
        let size = profile.blocks[gradient].size;
        draft.add(Addition { size, alloc, free, role: Role::Temporary, op: frame }, ATTENTION);
        let alloc = draft.items[gradient].alloc;
        draft.retime(gradient, alloc, Some(Position::end(end)), ATTENTION);
    }
}

const CPU_NODE: &str =
    "autograd::engine::evaluate_function: ScaledDotProductFlashAttentionForCpuBackward0";
const CPU_BACKWARD: &str = "aten::_scaled_dot_product_flash_attention_for_cpu_backward";

/// The three gradients that the CPU's backward made, in that order, and the one it was given.
fn gradients(draft: &Draft<'_>, call: &Call, op: OpId, node: OpId) -> Option<Gradients> {
    let profile = draft.profile;
    let made = escaping(draft, node);
    let mut left = made.iter().copied();
    let mut next = |t: &TensorArg| left.find(|&i| size(draft, i) == t.bytes());
    let (query, key, value) = (next(&call.query)?, next(&call.key)?, next(&call.value)?);
    let window = profile.op_start(node)..=profile.op_end(node);
    let from = profile.blocks.partition_point(|b| b.alloc_time <= profile.op_end(op));
    let to = profile.blocks.partition_point(|b| b.alloc_time < profile.op_start(node));
    let freed = draft.recorded.freed_in(&window).into_iter().filter(|i| (from..to).contains(i));
    let mut incoming = freed.filter(|&i| draft.live(i) && size(draft, i) == call.output_bytes());
    let incoming = incoming.next();
    Some(Gradients { query, key, value, incoming })
}

/// Whether batch and heads can be viewed as one dimension without a copy, in the dense layout that
/// an elementwise kernel gives its result.
fn merges(tensor: &TensorArg) -> bool {
    let (&[batch, heads, length, _], &[outer, inner, row, _]) =
        (tensor.dims.as_slice(), tensor.strides.as_slice())
    else {
        return true;
    };
    let between = length > 1 && inner < row && row < outer;
    batch == 1 || heads == 1 || (outer >= inner && !between)
}

/// Whether a tensor lies row after row.
fn contiguous(tensor: &TensorArg) -> bool {
    let mut next = 1;
    tensor.dims.iter().zip(&tensor.strides).rev().all(|(&size, &stride)| {
        let fits = size == 1 || stride.unsigned_abs() == next;
        next *= size;
        fits
    })
}

fn size(draft: &Draft<'_>, index: usize) -> u64 {
    draft.profile.blocks[index].size.get()
}

fn escaping(draft: &Draft<'_>, op: OpId) -> Vec<usize> {
    draft.blocks_in(op).into_iter().filter(|&i| draft.live(i) && draft.escapes(i, op)).collect()
}
