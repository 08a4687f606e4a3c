//! What CUDA's fused attention kernels keep and take
//! (aten/src/ATen/native/transformers/cuda/attention.cu, attention_backward.cu). Sizes and order
//! recorded with PyTorch 2.11's CUDA build, kernels stubbed.

use super::mask;
use super::select::Call;
use super::tape::Tape;
use crate::draft::{Addition, Draft, Position};
use crate::rules::name::ATTENTION;
use xmem_analyzer::{CallKind, Role, TensorArg};
use xmem_types::{Bytes, OpId};

/// A fused kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fused {
    Flash,
    Efficient,
    Cudnn,
}

impl Fused {
    /// What the forward saves beside the output.
    fn saved(self, call: &Call) -> Vec<Bytes> {
        let rows = call.batch() * call.heads();
        match self {
            Self::Flash => vec![Bytes(rows * call.length() * 4), Bytes(16), Bytes(8)],
            Self::Efficient => vec![Bytes(rows * call.length().next_multiple_of(32) * 4)],
            Self::Cudnn => vec![Bytes(rows * call.length() * 4), Bytes(8), Bytes(8)],
        }
    }

    /// Scratch of the backward, in the order of allocation and free.
    fn backward_scratch(self, call: &Call) -> Vec<Step> {
        let rows = call.batch() * call.heads();
        let length = call.length();
        let padded = length.next_multiple_of(128);
        let expanded = |t: &TensorArg| t.bytes() / t.dims[1].max(1) * call.heads();
        let delta = rows * length * 4;
        // One tile of 64 x 64 partial query gradients, with a header of 16 bytes, per 64 rows and
        // 64 columns of each head.
        let tiles = rows * length.div_ceil(64) * call.width().div_ceil(64) * (64 * 64 * 4 + 16);
        match self {
            Self::Flash => {
                let accumulator = rows * padded * call.width().next_multiple_of(32) * 4;
                let mut sizes = vec![rows * padded * 4, accumulator];
                if call.grouped() {
                    sizes.extend([expanded(&call.key), expanded(&call.value)]);
                }
                let mut steps: Vec<Step> = sizes.iter().map(|&s| Step::Take(s)).collect();
                steps.extend((0..sizes.len()).rev().map(Step::Give));
                steps
            }
            Self::Cudnn => {
                // One workspace: a 32-bit query gradient, a number per row, for grouped queries
                // the gradients of each query head's key and value, and a header.
                let mut size = rows * length * (call.width() + 1) * 4 + 512;
                if call.grouped() {
                    size += expanded(&call.key) + expanded(&call.value);
                }
                vec![Step::Take(size), Step::Give(0)]
            }
            Self::Efficient => {
                // Grouped queries: gradients of each query head's key and value, then summed.
                let mut steps = Vec::new();
                if call.grouped() {
                    steps.extend([&call.key, &call.value].map(|t| Step::Take(expanded(t))));
                }
                let first = steps.len();
                if call.query.dtype.is_half() {
                    // The kernel computes the row sums itself.
                    steps.extend([
                        Step::Take(delta),
                        Step::Take(tiles),
                        Step::Give(first),
                        Step::Give(first + 1),
                    ]);
                } else {
                    let copy = if call.sequence_first() { call.output_bytes() } else { 0 };
                    steps.extend([
                        Step::Take(copy),
                        Step::Take(call.output_bytes()),
                        Step::Take(delta),
                        Step::Take(delta),
                        Step::Give(first + 2),
                        Step::Give(first + 1),
                        Step::Take(tiles),
                        Step::Give(first + 3),
                        Step::Give(first + 4),
                        Step::Give(first),
                    ]);
                }
                steps.extend((0..first).rev().map(Step::Give));
                steps
            }
        }
    }
}

/// Whether a fused kernel's results lie in memory as the code around the call wants them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// The copies that the CPU makes around the math path fall away.
    AsWanted,
    /// They stay.
    Other,
}

impl Layout {
    fn of(fused: Fused, call: &Call) -> Self {
        let turned = fused == Fused::Efficient && call.sequence_first();
        if turned { Self::Other } else { Self::AsWanted }
    }
}

/// One step of a scratch plan.
enum Step {
    /// Allocates this many bytes.
    Take(u64),
    /// Frees the n-th of the taken.
    Give(usize),
}

/// The CPU ran its flash kernel: outputs carry over, row sums get CUDA's size.
pub(super) fn from_flash(
    draft: &mut Draft<'_>,
    call: &Call,
    fused: Fused,
    op: OpId,
    nodes: &[OpId],
) {
    let escaping = escaping(draft, op);
    let output = escaping.iter().copied().find(|&i| size(draft, i) == call.output_bytes());
    let Some(output) = output else { return };
    let saved = fused.saved(call);
    // The CPU's row sums are 32-bit too.
    let rows = call.batch() * call.heads() * call.length() * 4;
    let sums = escaping.iter().rev().copied().find(|&i| i != output && size(draft, i) == rows);
    pad_mask(draft, call, fused, op, &escaping, nodes);
    if let Some(sums) = sums {
        draft.resize(sums, saved[0], ATTENTION);
        let free = draft.items[sums].free;
        for &size in &saved[1..] {
            add_saved(draft, size, sums, free, op);
        }
    }
    if fused == Fused::Efficient && call.heads_first() {
        // The kernel writes sequence first where the CPU's follows the query.
        keep_output(draft, op, output, None, Layout::AsWanted);
    }
    let backward = nodes.first().map(|&n| Position::start(draft.profile.op_start(n)));
    if Layout::of(fused, call) == Layout::Other {
        let size = Bytes(call.output_bytes());
        let alloc = draft.after_position(Position::end(draft.profile.op_end(op)));
        let free = backward.or(draft.items[output].free);
        draft.add(Addition { size, alloc, free, role: Role::Activation, op }, ATTENTION);
    }
    let Some(&node) = nodes.first() else { return };
    if let Some(&last) = self::escaping(draft, node).last() {
        let at = draft.items[last].alloc;
        add_scratch(draft, fused.backward_scratch(call), at, node);
    }
}

/// The memory-efficient kernel keeps a copy of the mask where its rows are not aligned; the mask
/// that a boolean one became goes then.
fn pad_mask(
    draft: &mut Draft<'_>,
    call: &Call,
    fused: Fused,
    op: OpId,
    escaping: &[usize],
    nodes: &[OpId],
) {
    let Some(padded) = mask::padded(call).filter(|_| fused == Fused::Efficient) else { return };
    let converted = mask::converted(call);
    let converted = escaping.iter().copied().find(|&i| Some(draft.items[i].size) == converted);
    let done = nodes.iter().map(|&n| draft.profile.op_end(n)).max();
    let end = Position::end(draft.profile.op_end(op));
    let free = done.map_or(end, Position::end);
    let start = Position::start(draft.profile.op_start(op));
    let alloc = match converted {
        Some(i) => draft.after(i),
        None => draft.after_position(start),
    };
    let role = Role::Activation;
    draft.add(Addition { size: padded, alloc, free: Some(free), role, op }, ATTENTION);
    if let Some(i) = converted {
        draft.retime(i, draft.items[i].alloc, Some(end), ATTENTION);
    }
}

/// The CPU ran the math path: the whole window gives way to the fused kernel's.
///
/// False, with nothing changed, if the output cannot be told.
pub(super) fn from_math(
    draft: &mut Draft<'_>,
    call: &Call,
    fused: Fused,
    op: OpId,
    nodes: &[OpId],
) -> bool {
    let Some(&output) =
        escaping(draft, op).iter().rev().find(|&&i| size(draft, i) == call.output_bytes())
    else {
        return false;
    };
    for i in draft.blocks_in(op) {
        if i != output {
            draft.drop_block(i, ATTENTION);
        }
    }
    draft.items[output].settled = true;
    let done = nodes.iter().map(|&n| draft.profile.op_end(n)).max().map(Position::end);
    let layout = Layout::of(fused, call);
    keep_output(draft, op, output, done, layout);
    let Some(done) = done else { return true };
    for size in fused.saved(call) {
        add_saved(draft, size, output, Some(done), op);
    }
    keep_inputs(draft, call, op, nodes[0], done);
    keep_mask(draft, call, fused, op, done);
    replace_backward(draft, call, fused, nodes, done);
    true
}

/// Where the fused output lies in memory as the code after it wants it, no copy follows, and what
/// the CPU copied is the output itself.
fn keep_output(
    draft: &mut Draft<'_>,
    op: OpId,
    output: usize,
    done: Option<Position>,
    layout: Layout,
) {
    let profile = draft.profile;
    let mut free = draft.items[output].free;
    if layout == Layout::AsWanted {
        let after = profile.blocks.partition_point(|b| b.alloc_time <= profile.op_end(op));
        let copy = (after..profile.blocks.len().min(after + 4)).find(|&i| {
            let block = &profile.blocks[i];
            block.size == profile.blocks[output].size
                && profile.blocks[output].free_time.is_some_and(|f| f > block.alloc_time)
                && is_copy(draft, i)
        });
        if let Some(copy) = copy {
            free = later(free, draft.items[copy].free);
            draft.drop_block(copy, ATTENTION);
        }
    }
    let free = match done {
        Some(done) => {
            draft.items[output].role = Role::Activation;
            later(free, Some(done))
        }
        None => free,
    };
    let alloc = draft.items[output].alloc;
    draft.retime(output, alloc, free, ATTENTION);
}

/// Whether a block is the residual stream or its norm, as its operator tells where the
/// recorder left Python calls out: of `[B, L, H * D]`. What becomes of heads (`[B, H, L, D]`) is none.
fn is_stream(draft: &Draft<'_>, block: usize) -> bool {
    let profile = draft.profile;
    let Some(op) = profile.outermost_op(&profile.blocks[block]) else { return false };
    let dims = profile.arguments(op).tensor(0).map(|t| t.dims.len());
    matches!(profile.op_name(op), "aten::add" | "aten::layer_norm" | "aten::dropout")
        && dims == Some(3)
}

/// Autograd keeps query, key and value until the fused backward; the math path kept copies of
/// them instead and let them go.
fn keep_inputs(draft: &mut Draft<'_>, call: &Call, op: OpId, first: OpId, done: Position) {
    let profile = draft.profile;
    let (start, backward) = (profile.op_start(op), profile.op_start(first));
    let mut wanted = vec![call.query.bytes(), call.key.bytes(), call.value.bytes()];
    let packed: u64 = wanted.iter().sum();
    let mut home = None;
    let without_calls = profile.recording().is_some_and(|r| r.stacks == Some(false));
    let before = profile.blocks.partition_point(|b| b.alloc_time < start);
    for i in (before.saturating_sub(256)..before).rev() {
        let block = &profile.blocks[i];
        if !draft.live(i) || block.free_time.is_some_and(|f| f < start) {
            continue;
        }
        // What is there until backward anyway may be another tensor of the same size.
        let bytes = block.size.get();
        let goes = block.free_time.is_some_and(|f| f < backward);
        let whole = bytes == packed && wanted.len() == 3;
        let part = wanted.iter().position(|&w| w == bytes && goes);
        if !whole && part.is_none() {
            continue;
        }
        // They come out of one module; a residual stream of the same size does not.
        let module = profile.return_around(op, CallKind::Module, block.alloc_time);
        if *home.get_or_insert(module) != module || without_calls && is_stream(draft, i) {
            continue;
        }
        match part {
            Some(at) if !whole => {
                wanted.swap_remove(at);
            }
            _ => wanted.clear(),
        }
        if goes {
            let alloc = draft.items[i].alloc;
            draft.retime(i, alloc, Some(done), ATTENTION);
        }
        if wanted.is_empty() {
            break;
        }
    }
}

/// The fused backward needs the additive mask too: a boolean one as converted within the call, any
/// other as it was handed in.
fn keep_mask(draft: &mut Draft<'_>, call: &Call, fused: Fused, op: OpId, done: Position) {
    let Some(mask) = &call.mask else { return };
    let padded = mask::padded(call).filter(|_| fused == Fused::Efficient);
    let start = Position::start(draft.profile.op_start(op));
    let mut tape = Tape::new(draft, start, op, ATTENTION);
    let converted =
        mask::converted(call).map(|size| mask::convert(&mut tape, size, call.query.dtype));
    let kept = padded.map(|size| tape.take(size)).or(converted);
    if let Some(converted) = converted.filter(|_| padded.is_some()) {
        tape.give_at(converted, Position::end(tape.draft.profile.op_end(op)));
    }
    if let Some(kept) = kept {
        tape.give_at(kept, done);
    }
    tape.finish();
    if kept.is_some() {
        return;
    }
    let profile = draft.profile;
    let start = profile.op_start(op);
    let before = profile.blocks.partition_point(|b| b.alloc_time < start);
    let found = (before.saturating_sub(512)..before).rev().find(|&i| {
        let block = &profile.blocks[i];
        draft.live(i)
            && block.size.get() == mask.storage_bytes()
            && block.free_time.is_none_or(|f| f > start)
    });
    if let Some(i) = found {
        let (alloc, free) = (draft.items[i].alloc, draft.items[i].free);
        let free = later(free, Some(done));
        draft.retime(i, alloc, free, ATTENTION);
    }
}

/// The nodes of the math path's backward become one: gradients first, then the scratch; what the
/// nodes released on the way is released at the end.
fn replace_backward(
    draft: &mut Draft<'_>,
    call: &Call,
    fused: Fused,
    nodes: &[OpId],
    done: Position,
) {
    let profile = draft.profile;
    let layout = Layout::of(fused, call);
    let start = profile.op_start(nodes[0]);
    let mut at = Position::start(start);
    let windows: Vec<_> = nodes.iter().map(|&n| (profile.op_start(n), profile.op_end(n))).collect();
    let inside = |time| windows.iter().any(|&(s, e)| s <= time && time <= e);
    let mut gradients = Vec::new();
    for &node in nodes {
        for i in draft.blocks_in(node) {
            let kept = profile.blocks[i].free_time.is_none_or(|f| Position::start(f) > done);
            if kept {
                gradients.push(i);
            } else {
                draft.drop_block(i, ATTENTION);
            }
        }
    }
    let bias = gradients.iter().copied().find(|&i| is_mask_gradient(draft, call, i));
    for i in gradients.into_iter().filter(|&i| Some(i) != bias) {
        let free = match layout {
            Layout::AsWanted => skip_copy(draft, i),
            Layout::Other => draft.items[i].free,
        };
        at = draft.after_position(at);
        draft.retime(i, at, free, ATTENTION);
        draft.items[i].settled = true;
    }
    if let Some(bias) = bias {
        at = draft.after_position(at);
        mask_gradient(draft, call, bias, at, done, nodes[0]);
    }
    add_scratch(draft, fused.backward_scratch(call), at, nodes[0]);
    // Incoming gradients and other inputs that the CPU's nodes released one by one.
    let from = profile.blocks.partition_point(|b| b.alloc_time < start);
    for i in from.saturating_sub(512)..from {
        if draft.live(i) && profile.blocks[i].free_time.is_some_and(inside) {
            let alloc = draft.items[i].alloc;
            draft.retime(i, alloc, Some(done), ATTENTION);
        }
    }
}

/// The kernel writes the mask's gradient for every batch entry and head, with longer rows; the
/// nodes of the mask's own way into the kernel (expanded, padded) make the CPU's of it.
fn mask_gradient(
    draft: &mut Draft<'_>,
    call: &Call,
    gradient: usize,
    at: Position,
    done: Position,
    node: OpId,
) {
    let Some(mask) = &call.mask else { return };
    let bytes = Bytes(size(draft, gradient));
    let mut forms = Vec::new();
    if mask.numel() < call.scores() {
        forms.push(bytes);
    }
    if let Some(padded) = mask::padded(call) {
        forms.extend([padded, bytes]);
    }
    let written = mask::written(call);
    if forms.pop().is_none() {
        draft.resize(gradient, written, ATTENTION);
        draft.retime(gradient, at, draft.items[gradient].free, ATTENTION);
        return;
    }
    let mut tape = Tape::new(draft, at, node, ATTENTION);
    let mut held = tape.take(written);
    tape.go_to(done, node);
    for form in forms {
        let next = tape.take(form);
        tape.give(held);
        held = next;
    }
    tape.land(gradient);
    tape.give(held);
    tape.finish();
}

/// Whether a gradient that leaves the window is the additive mask's (a learned position bias).
fn is_mask_gradient(draft: &Draft<'_>, call: &Call, index: usize) -> bool {
    let Some(mask) = &call.mask else { return false };
    let bytes = size(draft, index);
    let like_input = [&call.query, &call.key, &call.value].iter().any(|t| t.bytes() == bytes);
    let scores = call.score_bytes();
    !like_input
        && (bytes == mask.storage_bytes() || bytes == scores || bytes * call.batch() == scores)
}

/// A gradient that the next view node copied into the layout it wants: the fused kernel's already
/// has it, so it lives on in the copy's stead. Returns when it is freed.
fn skip_copy(draft: &mut Draft<'_>, gradient: usize) -> Option<Position> {
    let profile = draft.profile;
    let free = draft.items[gradient].free;
    let Some(node) = profile.blocks[gradient].freed_in else { return free };
    let copy = draft.blocks_in(node).into_iter().find(|&i| {
        draft.live(i)
            && i != gradient
            && profile.blocks[i].size == profile.blocks[gradient].size
            && draft.escapes(i, node)
            && is_copy(draft, i)
    });
    let Some(copy) = copy else { return free };
    let later = draft.items[copy].free;
    draft.drop_block(copy, ATTENTION);
    later
}

pub(super) fn is_copy(draft: &Draft<'_>, index: usize) -> bool {
    let profile = draft.profile;
    profile.blocks[index].op.is_some_and(|op| {
        profile.tree.path(op).take(4).any(|o| profile.op_name(o) == "aten::clone")
    })
}

/// The later of two frees, where none means never.
fn later(a: Option<Position>, b: Option<Position>) -> Option<Position> {
    a.zip(b).map(|(a, b)| a.max(b))
}

fn size(draft: &Draft<'_>, index: usize) -> u64 {
    draft.profile.blocks[index].size.get()
}

fn escaping(draft: &Draft<'_>, op: OpId) -> Vec<usize> {
    draft.blocks_in(op).into_iter().filter(|&i| draft.live(i) && draft.escapes(i, op)).collect()
}

fn add_saved(draft: &mut Draft<'_>, size: Bytes, near: usize, free: Option<Position>, op: OpId) {
    let alloc = draft.after(near);
    draft.add(Addition { size, alloc, free, role: Role::Activation, op }, ATTENTION);
}

fn add_scratch(draft: &mut Draft<'_>, steps: Vec<Step>, at: Position, op: OpId) {
    let mut taken: Vec<Addition> = Vec::new();
    for step in steps {
        let now = draft.after_position(at);
        match step {
            Step::Take(size) => taken.push(Addition {
                size: Bytes(size),
                alloc: now,
                free: None,
                role: Role::Workspace,
                op,
            }),
            Step::Give(n) => taken[n].free = Some(now),
        }
    }
    for addition in taken {
        draft.add(addition, ATTENTION);
    }
}
