//! The math path where the CPU took its flash kernel.
//!
//! `_scaled_dot_product_attention_math` (aten/src/ATen/native/transformers/attention.cpp) is made
//! of ordinary operators: scaled copies of query and key, scores, softmax, and in half precision
//! 32-bit copies of all three inputs. Order and sizes recorded with PyTorch 2.11's CUDA build,
//! kernels stubbed.

use super::mask;
use super::output::{self, size};
use super::select::AttentionCall;
use crate::frame::count::Count;
use crate::frame::cuda::layout::is_contiguous;
use crate::frame::draft::{Addition, Draft, Edits, Piece, Place, Plan};
use xmem_analyzer::{CallKind, DType, Role, TensorArg};
use xmem_types::{BlockId, OpId};

/// The number of operators after the backward node among which a gradient is viewed as rows. In the
/// recorded traces, the farthest of 459 such views was operator 314 (norms and rotary embeddings lie in
/// between).
const VIEW_WINDOW: usize = 400;

/// The sizes of a call's tensors in the type that the path computes in.
struct Sizes {
    /// Half precision is computed in 32 bits.
    widened: bool,
    query: Count,
    key: Count,
    value: Count,
    /// Key and value with as many heads as the query.
    all_keys: Count,
    all_values: Count,
    scores: Count,
    output: Count,
    element: DType,
}

impl Sizes {
    fn of(call: &AttentionCall) -> Self {
        let widened = call.query.dtype.is_half();
        let element = if widened { DType::F32 } else { call.query.dtype };
        let size = |t: &TensorArg| Count::elements(t).of(element);
        let all = |t: &TensorArg| (Count::elements(t) / t.dims[1] * call.heads()).of(element);
        Self {
            widened,
            query: size(&call.query),
            key: size(&call.key),
            value: size(&call.value),
            all_keys: all(&call.key),
            all_values: all(&call.value),
            scores: call.scores().of(element),
            output: call.output_elements().of(element),
            element,
        }
    }
}

/// The pieces that the forward keeps for the backward; `None` where an input itself is kept.
struct Saved {
    query: Piece,
    key: Piece,
    value: Option<Piece>,
    softmax: Piece,
}

/// The blocks of the CPU's backward node that live on.
struct Gradients {
    query: BlockId,
    key: BlockId,
    value: BlockId,
    /// The gradient that comes in, freed within the node.
    incoming: Option<BlockId>,
}

/// Replaces the flash kernel by the math path. Returns the backward node that it has replaced as well;
/// `None`, with nothing changed, if the CPU's output or gradients cannot be told.
pub(super) fn from_flash(
    edits: &mut Edits<'_, '_>,
    call: &AttentionCall,
    op: OpId,
) -> Option<Vec<OpId>> {
    let escaping = edits.escaping(op);
    let output = escaping.iter().copied().find(|&b| size(edits, b) == call.output_bytes())?;
    let gradients = match node(edits, call, output, &escaping) {
        Some(node) => Some((node, gradients(edits, call, op, node)?)),
        None => None,
    };
    let sizes = Sizes::of(call);
    for block in edits.blocks_in(op) {
        if block != output {
            edits.drop_block(block);
        }
    }
    if let Some((node, _)) = &gradients {
        release_inputs(edits, call, op, *node);
    }
    let leaves = copy_output(edits, call, op, output, gradients.as_ref().map(|(_, g)| g));
    let start = edits.before(op);
    let backward_start = gradients.as_ref().map(|(node, _)| edits.before(*node));
    let mut plan = edits.plan(op, start, Role::Temporary);
    let saved = forward(&mut plan, call, &sizes, output, leaves);
    match gradients.as_ref().zip(backward_start) {
        Some(((node, gradients), start)) => {
            plan.go_to(start, *node);
            backward(&mut plan, call, &sizes, saved, gradients);
        }
        None => {
            let Saved { query, key, value, softmax } = saved;
            plan.free_all([query, key].into_iter().chain(value).chain([softmax]));
        }
    }
    plan.finish();
    if let Some((node, gradients)) = &gradients {
        let made = [gradients.query, gradients.key, gradients.value];
        for block in edits.blocks_in(*node) {
            if !made.contains(&block) {
                edits.drop_block(block);
            }
        }
        copy_where_viewed(edits, call, *node);
    }
    Some(gradients.into_iter().map(|(node, _)| node).collect())
}

/// The backward node that used what this call saved: the one in which its row sums go. Autograd's
/// link would name the node of a checkpointed call, whose tensors are those of the recomputation.
fn node(
    draft: &Draft<'_>,
    call: &AttentionCall,
    output: BlockId,
    escaping: &[BlockId],
) -> Option<OpId> {
    let profile = draft.profile();
    let element = call.query.dtype.size().max(DType::F32.size());
    let is_sums = |&b: &BlockId| b != output && size(draft, b) == call.rows() * element;
    let sums = escaping.iter().rev().copied().find(is_sums)?;
    let freed_in = profile.block(sums).freed_in?;
    profile.tree.path(freed_in).find(|&o| profile.op_name(o) == CPU_NODE)
}

fn forward(
    plan: &mut Plan<'_, '_, '_>,
    call: &AttentionCall,
    sizes: &Sizes,
    output: BlockId,
    leaves: Place,
) -> Saved {
    let handed_in = mask::converted(call).map(|size| mask::convert(plan, size, call.query.dtype));
    let cast = sizes.widened.then(|| [sizes.query, sizes.key, sizes.value].map(|s| plan.take(s)));
    let query = plan.take(sizes.query);
    let causal = call.causal.then(|| {
        let cells = Count(call.length()) * call.key.dims[2];
        let ones = plan.take(cells);
        let triangle = plan.take(cells);
        plan.free(ones);
        let mask = mask::convert(plan, cells.of(sizes.element), sizes.element);
        plan.free(triangle);
        mask
    });
    let expanded = call.grouped().then(|| [plan.take(sizes.all_keys), plan.take(sizes.all_values)]);
    let key = plan.take(sizes.all_keys);
    // bmm wants batch and heads as one dimension; where the layout forbids it, copies.
    let query_copy = (!merges(&call.query)).then(|| plan.take(sizes.query));
    let key_copy = (expanded.is_none() && !merges(&call.key)).then(|| plan.take(sizes.all_keys));
    let scores = plan.take(sizes.scores);
    if key_copy.is_some() {
        plan.free(key);
    }
    let softmax = plan.take(sizes.scores);
    // `_safe_softmax` asks which rows are masked throughout.
    let infinite = plan.take(call.scores());
    let rows = plan.take(call.rows());
    plan.touch(Count(sizes.element.size()));
    plan.free(rows);
    plan.free(infinite);
    plan.free(scores);
    let narrow = sizes.widened.then(|| plan.take(call.score_bytes()));
    let value_copy = (expanded.is_none() && !merges(&call.value)).then(|| plan.take(sizes.value));
    if sizes.widened {
        let wide = plan.take(sizes.output);
        plan.land(output);
        plan.free(wide);
    } else {
        plan.land(output);
    }
    plan.release_at(output, leaves);
    if let Some([keys, _]) = expanded {
        plan.free(keys);
    }
    if query_copy.is_some() {
        plan.free(query);
    }
    plan.free_all(causal);
    let mut value = expanded.map(|[_, values]| values).or(value_copy);
    if let Some([query, key, cast_value]) = cast {
        match value {
            Some(_) => plan.free(cast_value),
            None => value = Some(cast_value),
        }
        plan.free(key);
        plan.free(query);
    }
    plan.free_all(narrow);
    plan.free_all(handed_in);
    Saved { query: query_copy.unwrap_or(query), key: key_copy.unwrap_or(key), value, softmax }
}

fn backward(
    plan: &mut Plan<'_, '_, '_>,
    call: &AttentionCall,
    sizes: &Sizes,
    saved: Saved,
    gradients: &Gradients,
) {
    let wide = sizes.widened.then(|| plan.take(sizes.output));
    if wide.is_some() {
        gradients.incoming.into_iter().for_each(|i| plan.release(i));
    }
    let incoming = plan.take(sizes.output);
    match wide {
        Some(wide) => plan.free(wide),
        None => gradients.incoming.into_iter().for_each(|i| plan.release(i)),
    }
    // The product with the values: their gradient, then the weights'.
    let last = |this: bool| this && !sizes.widened;
    let grouped = call.grouped();
    let mut value = arrive(plan, sizes.all_values, last(!grouped), gradients.value);
    let weights = plan.take(sizes.scores);
    plan.free(incoming);
    plan.free_all(saved.value);
    let scores = plan.take(sizes.scores);
    plan.touch(sizes.scores);
    plan.free(weights);
    plan.free(saved.softmax);
    // The product of query and key.
    let scaled_key = plan.take(sizes.all_keys);
    let scaled_query = plan.take(sizes.query);
    plan.free(scores);
    plan.free(saved.key);
    plan.free(saved.query);
    let mut key = arrive(plan, sizes.all_keys, last(!grouped), gradients.key);
    plan.free(scaled_key);
    if grouped {
        let of_all = [value, key];
        value = arrive(plan, sizes.value, last(true), gradients.value);
        plan.free_all(of_all[0]);
        key = arrive(plan, sizes.key, last(true), gradients.key);
        plan.free_all(of_all[1]);
    }
    let query = arrive(plan, sizes.query, last(true), gradients.query);
    plan.free(scaled_query);
    // The casts' own backward.
    let casts = [(value, gradients.value), (key, gradients.key), (query, gradients.query)];
    for (wide, gradient) in casts {
        if let Some(wide) = wide {
            plan.land(gradient);
            plan.free(wide);
        }
    }
}

/// A gradient's next form: the recorded block itself if it is the last one, else one more piece.
fn arrive(
    plan: &mut Plan<'_, '_, '_>,
    size: Count,
    last: bool,
    gradient: BlockId,
) -> Option<Piece> {
    if last {
        plan.land(gradient);
        return None;
    }
    Some(plan.take(size))
}

/// Releases the inputs that the flash kernel kept and the math path does not: they go when the module's
/// call that holds them returns.
fn release_inputs(edits: &mut Edits<'_, '_>, call: &AttentionCall, op: OpId, node: OpId) {
    let profile = edits.profile();
    let start = profile.op_start(op);
    // Without a copy in between, the product keeps the value itself.
    let keeps_value = !call.query.dtype.is_half() && !call.grouped() && merges(&call.value);
    let mut kept = keeps_value.then(|| Count::bytes(&call.value));
    for id in edits.freed_in(node) {
        let block = profile.block(id);
        if block.alloc_time >= start || !edits.live(id) {
            continue;
        }
        if kept == Some(block.size.into()) {
            kept = None;
            continue;
        }
        let returns = profile.return_around(op, CallKind::Module, block.alloc_time);
        let free = returns.map_or(edits.after_op(op), Place::after);
        edits.move_free(id, free);
    }
}

/// The flash kernel's output lies in memory as the projection after it wants it; the math path's is
/// copied. Returns the place at which the output itself is freed.
fn copy_output(
    edits: &mut Edits<'_, '_>,
    call: &AttentionCall,
    op: OpId,
    output: BlockId,
    gradients: Option<&Gradients>,
) -> Place {
    let profile = edits.profile();
    let returns = profile.return_around(op, CallKind::Function, profile.op_start(op));
    let leaves = returns.map_or(edits.after_op(op), Place::after);
    let free = edits.item(output).free();
    let size = edits.recorded_size(output);
    let copied = output::copies_after(edits, op, size)
        .any(|block| profile.block(block).alloc_time <= leaves.time());
    if copied || call.heads() == 1 || call.length() == 1 {
        return if gradients.is_some() { leaves } else { free };
    }
    // The projection lets its input go when it has made the gradient that comes in.
    let consumer = gradients.and_then(|g| g.incoming).and_then(|id| profile.block(id).op);
    let consumer = consumer.and_then(|o| profile.backward_node(o));
    let free = consumer.map_or(free, |node| edits.after_op(node));
    let alloc = edits.next(edits.after_op(op));
    edits.add(Addition { size, alloc, free, role: Role::Activation, op });
    free.min(leaves)
}

/// The flash kernel's gradients lie sequence first, so that the way back through
/// `view(B, L, H, D).transpose(1, 2)` copies nothing; the math path's lie heads first and are
/// copied where they are viewed as rows.
fn copy_where_viewed(edits: &mut Edits<'_, '_>, call: &AttentionCall, node: OpId) {
    let profile = edits.profile();
    let rows = |t: &TensorArg| [t.dims[0], t.dims[2], t.dims[1], t.dims[3]];
    let mut wanted = vec![rows(&call.query), rows(&call.key), rows(&call.value)];
    let after = profile.tree.positions(node).end;
    for &op in profile.tree.preorder()[after..].iter().take(VIEW_WINDOW) {
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
        if !is_contiguous(viewed) || viewed.dims[1] == 1 || viewed.dims[2] == 1 {
            continue;
        }
        let start = profile.op_start(frame);
        let gradient = edits
            .recent(frame)
            .filter(|&id| size(edits, id) == Count::bytes(viewed))
            .filter(|&id| profile.block(id).free_time.is_some_and(|f| f > start))
            .min_by_key(|&id| profile.block(id).free_time);
        let Some(gradient) = gradient else { continue };
        let (size, free) = (edits.recorded_size(gradient), edits.item(gradient).free());
        let alloc = edits.next(edits.before(frame));
        edits.add(Addition { size, alloc, free, role: Role::Temporary, op: frame });
        let free = edits.after_op(frame);
        edits.move_free(gradient, free);
    }
}

const CPU_NODE: &str =
    "autograd::engine::evaluate_function: ScaledDotProductFlashAttentionForCpuBackward0";
const CPU_BACKWARD: &str = "aten::_scaled_dot_product_flash_attention_for_cpu_backward";

/// The three gradients that the CPU's backward made, in that order, and the one it was given.
fn gradients(draft: &Draft<'_>, call: &AttentionCall, op: OpId, node: OpId) -> Option<Gradients> {
    let profile = draft.profile();
    let made = draft.escaping(node);
    let mut left = made.iter().copied();
    let mut next = |t: &TensorArg| left.find(|&block| size(draft, block) == Count::bytes(t));
    let (query, key, value) = (next(&call.query)?, next(&call.key)?, next(&call.value)?);
    let (from, to) = (profile.op_end(op), profile.op_start(node));
    let incoming = draft.freed_in(node).into_iter().find(|&id| {
        let born = profile.block(id).alloc_time;
        from < born && born < to && draft.live(id) && size(draft, id) == call.output_bytes()
    });
    Some(Gradients { query, key, value, incoming })
}

/// Returns whether batch and heads can be viewed as one dimension without a copy, in the dense layout that
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
