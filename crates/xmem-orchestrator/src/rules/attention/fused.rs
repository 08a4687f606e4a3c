//! CUDA's fused kernels in place of what the CPU ran.

use super::kernel::Fused;
use super::mask;
use super::output::{self, is_copy, size};
use super::select::AttentionCall;
use crate::frame::count::Count;
use crate::frame::draft::{Addition, Draft, Edits, Place};
use xmem_analyzer::{CallKind, Role, TensorArg};
use xmem_types::{BlockId, Bytes, Nanos, OpId};

/// The layout of a fused kernel's results in memory, compared with what the code around the call wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// The copies that the CPU makes around the math path fall away.
    AsWanted,
    /// They stay.
    Other,
}

impl Layout {
    fn of(fused: Fused, call: &AttentionCall) -> Self {
        let turned = fused.is_efficient() && call.sequence_first();
        if turned { Self::Other } else { Self::AsWanted }
    }
}

/// The CPU ran its flash kernel: outputs carry over, row sums get CUDA's size.
pub(super) fn from_flash(
    edits: &mut Edits<'_, '_>,
    call: &AttentionCall,
    fused: Fused,
    op: OpId,
    nodes: &[OpId],
) {
    let escaping = edits.escaping(op);
    let output = escaping.iter().copied().find(|&b| size(edits, b) == call.output_bytes());
    let Some(output) = output else { return };
    let saved = fused.saved(call);
    // The CPU's row sums are 32-bit too.
    let is_sums = |&b: &BlockId| b != output && size(edits, b) == call.rows() * 4;
    let sums = escaping.iter().rev().copied().find(is_sums);
    pad_mask(edits, call, fused, op, &escaping, nodes);
    if let Some(sums) = sums {
        edits.resize(sums, saved[0]);
        let free = edits.item(sums).free();
        for &size in &saved[1..] {
            add_saved(edits, size, sums, free, op);
        }
    }
    forward_scratch(edits, call, fused, op, sums.unwrap_or(output));
    if fused.is_efficient() && call.heads_first() {
        // The kernel writes sequence first where the CPU's follows the query.
        keep_output(edits, op, output, None, Layout::AsWanted);
    }
    let backward = nodes.first().map(|&node| edits.before(node));
    if Layout::of(fused, call) == Layout::Other {
        let alloc = edits.next(edits.after_op(op));
        let free = backward.unwrap_or(edits.item(output).free());
        let (size, role) = (call.output_bytes().into(), Role::Activation);
        edits.add(Addition { size, alloc, free, role, op });
    }
    let Some(&node) = nodes.first() else { return };
    if let Some(&last) = edits.escaping(node).last() {
        let at = edits.item(last).alloc();
        let mut plan = edits.plan(node, at, Role::Workspace);
        fused.backward_scratch(&mut plan, call);
        plan.finish();
    }
}

/// The memory-efficient kernel keeps a copy of the mask where its rows are not aligned; the mask that a
/// boolean one became goes then.
fn pad_mask(
    edits: &mut Edits<'_, '_>,
    call: &AttentionCall,
    fused: Fused,
    op: OpId,
    escaping: &[BlockId],
    nodes: &[OpId],
) {
    let Some(padded) = mask::padded(call).filter(|_| fused.is_efficient()) else { return };
    let converted = mask::converted(call);
    let converted = escaping.iter().copied().find(|&b| Some(edits.item(b).size()) == converted);
    let end = edits.after_op(op);
    let free = nodes.iter().map(|&node| edits.after_op(node)).max().unwrap_or(end);
    let alloc = match converted {
        Some(block) => edits.after(block),
        None => edits.next(edits.before(op)),
    };
    let role = Role::Activation;
    edits.add(Addition { size: padded, alloc, free, role, op });
    if let Some(block) = converted {
        edits.move_free(block, end);
    }
}

/// The CPU ran the math path: the whole window gives way to the fused kernel's.
///
/// False, with nothing changed, if the output cannot be told.
pub(super) fn from_math(
    edits: &mut Edits<'_, '_>,
    call: &AttentionCall,
    fused: Fused,
    op: OpId,
    nodes: &[OpId],
) -> bool {
    let escaping = edits.escaping(op);
    let output = escaping.into_iter().rev().find(|&b| size(edits, b) == call.output_bytes());
    let Some(output) = output else { return false };
    for block in edits.blocks_in(op) {
        if block != output {
            edits.drop_block(block);
        }
    }
    edits.keep(output);
    let done = nodes.iter().map(|&node| edits.after_op(node)).max();
    let layout = Layout::of(fused, call);
    keep_output(edits, op, output, done, layout);
    if let Some(done) = done {
        for size in fused.saved(call) {
            add_saved(edits, size, output, done, op);
        }
    }
    forward_scratch(edits, call, fused, op, output);
    let Some(done) = done else { return true };
    keep_inputs(edits, call, op, start_of(edits, op, nodes[0]).time(), done);
    keep_mask(edits, call, fused, op, done);
    replace_backward(edits, call, fused, (op, nodes), done);
    true
}

/// Keeps the output: if it lies in memory as the code after it wants it, no copy follows, and the copy
/// that the CPU made is the output itself.
fn keep_output(
    edits: &mut Edits<'_, '_>,
    op: OpId,
    output: BlockId,
    done: Option<Place>,
    layout: Layout,
) {
    let profile = edits.profile();
    let mut free = edits.item(output).free();
    if layout == Layout::AsWanted {
        let size = edits.recorded_size(output);
        let freed = profile.block(output).free_time;
        let copy = output::copies_after(edits, op, size)
            .find(|&copy| freed.is_some_and(|f| f > profile.block(copy).alloc_time));
        if let Some(copy) = copy {
            free = free.max(edits.item(copy).free());
            edits.drop_block(copy);
        }
    }
    if let Some(done) = done {
        edits.set_role(output, Role::Activation);
        free = free.max(done);
    }
    edits.move_free(output, free);
}

/// Returns whether a block is the residual stream or its norm, as its operator tells where the recorder left
/// Python calls out: of `[B, L, H * D]`. Heads are `[B, H, L, D]`.
fn is_stream(draft: &Draft<'_>, block: BlockId) -> bool {
    let profile = draft.profile();
    let Some(op) = profile.outermost_op(profile.block(block)) else { return false };
    let dims = profile.arguments(op).tensor(0).map(|t| t.dims.len());
    matches!(profile.op_name(op), "aten::add" | "aten::layer_norm" | "aten::dropout")
        && dims == Some(3)
}

/// The place at which backward begins: a checkpointed call may run again within its first node.
fn start_of(edits: &Edits<'_, '_>, op: OpId, node: OpId) -> Place {
    let profile = edits.profile();
    let contains = profile.tree.path(op).any(|around| around == node);
    if contains { edits.after_op(op) } else { edits.before(node) }
}

/// The bytes of the block that an input is a part of, by its strides: a query that is split off a layer's
/// output lies in rows as wide as that. `None` for an input that fills its block, or without strides.
fn surrounding(tensor: &TensorArg) -> Option<Count> {
    let extents = tensor.dims.iter().zip(&tensor.strides).filter(|(dim, _)| **dim > 1);
    let extents = extents.map(|(&dim, stride)| Count(stride.unsigned_abs()) * dim);
    let bytes = extents.max()?.of(tensor.dtype);
    (bytes > Count::bytes(tensor)).then_some(bytes)
}

/// Autograd keeps query, key and value until the fused backward; the math path kept copies of them
/// instead and let them go.
fn keep_inputs(
    edits: &mut Edits<'_, '_>,
    call: &AttentionCall,
    op: OpId,
    backward: Nanos,
    done: Place,
) {
    let profile = edits.profile();
    let start = profile.op_start(op);
    let inputs = [&call.query, &call.key, &call.value];
    let packed = inputs.iter().fold(Count(0), |sum, t| sum + Count::bytes(t));
    let mut wanted = inputs.map(|t| (Count::bytes(t), surrounding(t))).to_vec();
    let mut home = None;
    let without_calls = profile.recording().is_some_and(|r| r.stacks == Some(false));
    let mut kept = Vec::new();
    for id in edits.recent(op) {
        let block = profile.block(id);
        if block.free_time.is_some_and(|f| f < start) {
            continue;
        }
        // A tensor that lives until backward anyway may be another one of the same size.
        let bytes = Count::from(block.size);
        let goes = block.free_time.is_some_and(|f| f < backward);
        let whole = bytes == packed && wanted.len() == 3;
        let around = wanted.iter().any(|&(_, around)| around == Some(bytes));
        let part = wanted.iter().position(|&w| w == (bytes, None) && goes);
        if !whole && !around && part.is_none() {
            continue;
        }
        // They come out of one module; a residual stream of the same size does not.
        let module = profile.return_around(op, CallKind::Module, block.alloc_time);
        if *home.get_or_insert(module) != module || without_calls && is_stream(edits, id) {
            continue;
        }
        match part {
            _ if whole => wanted.clear(),
            Some(at) if !around => {
                wanted.swap_remove(at);
            }
            _ => wanted.retain(|&(_, around)| around != Some(bytes)),
        }
        if goes {
            kept.push(id);
        }
        if wanted.is_empty() {
            break;
        }
    }
    for id in kept {
        edits.move_free(id, done);
    }
}

/// The fused backward needs the additive mask too: a boolean one as converted within the call, any
/// other as it was handed in.
fn keep_mask(edits: &mut Edits<'_, '_>, call: &AttentionCall, fused: Fused, op: OpId, done: Place) {
    let Some(mask) = &call.mask else { return };
    let padded = mask::padded(call).filter(|_| fused.is_efficient());
    let (start, end) = (edits.before(op), edits.after_op(op));
    let mut plan = edits.plan(op, start, Role::Temporary);
    let converted =
        mask::converted(call).map(|size| mask::convert(&mut plan, size, call.query.dtype));
    let kept = padded.map(|size| plan.take(size)).or(converted);
    if let Some(converted) = converted.filter(|_| padded.is_some()) {
        plan.free_at(converted, end);
    }
    if let Some(kept) = kept {
        plan.free_at(kept, done);
    }
    plan.finish();
    if kept.is_some() {
        return;
    }
    let profile = edits.profile();
    let start = profile.op_start(op);
    let found = edits.recent(op).find(|&id| {
        let block = profile.block(id);
        block.size.get() == mask.storage_bytes() && block.lasts_beyond(start)
    });
    if let Some(block) = found {
        edits.move_free(block, edits.item(block).free().max(done));
    }
}

/// The nodes of the math path's backward become one: gradients first, then the scratch; blocks that
/// the nodes released on the way are released at the end.
fn replace_backward(
    edits: &mut Edits<'_, '_>,
    call: &AttentionCall,
    fused: Fused,
    (op, nodes): (OpId, &[OpId]),
    done: Place,
) {
    let profile = edits.profile();
    let layout = Layout::of(fused, call);
    let mut at = start_of(edits, op, nodes[0]);
    let start = at.time();
    let mut gradients = Vec::new();
    for &node in nodes {
        for block in edits.blocks_in(node) {
            if profile.block(block).alloc_time < start {
                continue;
            }
            if profile.block(block).lasts_beyond(done.time()) {
                gradients.push(block);
            } else {
                edits.drop_block(block);
            }
        }
    }
    let bias = gradients.iter().copied().find(|&block| is_mask_gradient(edits, call, block));
    for block in gradients.into_iter().filter(|&block| Some(block) != bias) {
        let free = match layout {
            Layout::AsWanted => skip_copy(edits, block),
            Layout::Other => edits.item(block).free(),
        };
        at = edits.next(at);
        edits.retime(block, at, free);
    }
    if let Some(bias) = bias {
        at = edits.next(at);
        mask_gradient(edits, call, bias, (at, done), nodes[0]);
    }
    let mut plan = edits.plan(nodes[0], at, Role::Workspace);
    fused.backward_scratch(&mut plan, call);
    plan.finish();
    // Incoming gradients and other inputs that the CPU's nodes released one by one.
    for &node in nodes {
        for block in edits.freed_in(node) {
            if profile.block(block).alloc_time < start {
                edits.move_free(block, done);
            }
        }
    }
}

/// The kernel writes the mask's gradient for every batch entry and head, with longer rows; the nodes of
/// the mask's own way into the kernel (expanded, padded) make the CPU's of it.
fn mask_gradient(
    edits: &mut Edits<'_, '_>,
    call: &AttentionCall,
    gradient: BlockId,
    (at, done): (Place, Place),
    node: OpId,
) {
    let Some(mask) = &call.mask else { return };
    let bytes = edits.recorded_size(gradient);
    let mut forms = Vec::new();
    if Count::elements(mask) < call.scores() {
        forms.push(bytes);
    }
    if let Some(padded) = mask::padded(call) {
        forms.extend([padded, bytes]);
    }
    let written = mask::written(call);
    if forms.pop().is_none() {
        edits.resize(gradient, written);
        edits.move_alloc(gradient, at);
        return;
    }
    let mut plan = edits.plan(node, at, Role::Temporary);
    let mut held = plan.take(written);
    plan.move_to(done);
    for form in forms {
        let next = plan.take(form);
        plan.free(held);
        held = next;
    }
    plan.land(gradient);
    plan.free(held);
    plan.finish();
}

/// Returns whether a gradient that leaves the window is the additive mask's (a learned position bias).
fn is_mask_gradient(draft: &Draft<'_>, call: &AttentionCall, block: BlockId) -> bool {
    let Some(mask) = &call.mask else { return false };
    let bytes = size(draft, block);
    let like_input = [&call.query, &call.key, &call.value].iter().any(|t| Count::bytes(t) == bytes);
    let scores = call.score_bytes();
    !like_input
        && (bytes == Count(mask.storage_bytes())
            || bytes == scores
            || bytes * call.batch() == scores)
}

/// A gradient that the next view node copied into the layout it wants: the fused kernel's already has
/// it, so it lives on in the copy's stead. Returns the place of its free.
fn skip_copy(edits: &mut Edits<'_, '_>, gradient: BlockId) -> Place {
    let profile = edits.profile();
    let free = edits.item(gradient).free();
    let Some(node) = profile.block(gradient).freed_in else { return free };
    let copy = edits.escaping(node).into_iter().find(|&block| {
        block != gradient
            && profile.block(block).size == profile.block(gradient).size
            && is_copy(edits, block)
    });
    let Some(copy) = copy else { return free };
    let later = edits.item(copy).free();
    edits.drop_block(copy);
    later
}

/// Adds what the forward holds for the length of the call, after its output and what it saves.
fn forward_scratch(
    edits: &mut Edits<'_, '_>,
    call: &AttentionCall,
    fused: Fused,
    op: OpId,
    last: BlockId,
) {
    let Some(size) = fused.forward_scratch(call) else { return };
    let alloc = edits.after(last);
    let free = edits.next(edits.after_op(op));
    edits.add(Addition { size, alloc, free, role: Role::Workspace, op });
}

fn add_saved(edits: &mut Edits<'_, '_>, size: Bytes, near: BlockId, free: Place, op: OpId) {
    let alloc = edits.after(near);
    edits.add(Addition { size, alloc, free, role: Role::Activation, op });
}
