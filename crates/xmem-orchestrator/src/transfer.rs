//! When batches go to the GPU.
//!
//! On the CPU, `batch.to(device)` returns the same tensor, but the call is recorded. On the GPU that
//! call is where the batch is allocated (torch/csrc/autograd/python_variable_methods.cpp,
//! `THPVariable_to`; aten/src/ATen/native/TensorConversions.cpp, `to_will_alias`): what the loader made
//! before stays on the host.

use crate::draft::{Addition, Draft, Item, Position};
use crate::rules::name::TRANSFER;
use crate::scratch::SCALAR;
use std::collections::BTreeMap;
use xmem_analyzer::{Phase, Residency, Role};
use xmem_types::{Bytes, IterationId, Nanos, OpId};

/// A call of `to` that returned what it was given.
#[derive(Clone, Copy)]
struct Call {
    op: OpId,
    start: Nanos,
    iteration: Option<IterationId>,
    taken: bool,
}

/// Calls in order of time, by the bytes of their tensor.
type Calls = BTreeMap<Bytes, Vec<Call>>;

/// Allocates batches where they are moved.
pub(crate) fn batches(draft: &mut Draft<'_>) {
    data_set(draft);
    let mut calls = calls(draft, Phase::Data);
    if calls.is_empty() {
        return;
    }
    let mut ready: BTreeMap<Bytes, Vec<usize>> = BTreeMap::new();
    for i in 0..draft.profile.blocks.len() {
        let block = &draft.profile.blocks[i];
        if block.residency != Residency::Batch || !draft.live(i) {
            continue;
        }
        if block.phase == Phase::Init {
            ready.entry(block.size).or_default().push(i);
            continue;
        }
        let alive = |at: Nanos| block.alloc_time <= at && block.lasts_beyond(at);
        let found = calls
            .get_mut(&block.size)
            .and_then(|calls| calls.iter_mut().find(|c| !c.taken && alive(c.start)));
        if let Some(call) = found {
            call.taken = true;
            let alloc = draft.after_position(Position::start(call.start));
            let free = draft.items[i].free;
            draft.retime(i, alloc, free, TRANSFER);
        }
    }
    for (size, blocks) in ready {
        let mut calls = calls.remove(&size).unwrap_or_default();
        calls.retain(|c| !c.taken);
        from_a_list(draft, size, &blocks, &calls);
    }
}

/// Batches that were all made before the loop: each call makes a copy, which lives until the next
/// iteration's has been made.
fn from_a_list(draft: &mut Draft<'_>, size: Bytes, blocks: &[usize], calls: &[Call]) {
    if calls.len() < blocks.len() {
        return;
    }
    let each = calls.iter().filter(|c| c.iteration == calls[0].iteration).count();
    let allocs: Vec<Position> =
        calls.iter().map(|c| draft.after_position(Position::start(c.start))).collect();
    for (n, call) in calls.iter().enumerate() {
        let next = allocs.get(n + each).copied();
        let block = blocks.get(n).copied();
        let last = block.and_then(|i| draft.items[i].free);
        let free = next.map(|at| draft.after_position(at)).or(last);
        match block {
            Some(i) => draft.retime(i, allocs[n], free, TRANSFER),
            None => {
                let new = Addition { size, alloc: allocs[n], free, role: Role::Input, op: call.op };
                draft.add(new, TRANSFER);
            }
        }
    }
}

/// A whole data set that is moved before the loop: a host tensor that is there to stay, and a call of
/// its size which no parameter accounts for.
fn data_set(draft: &mut Draft<'_>) {
    let profile = draft.profile;
    let Some(begin) = profile.iterations.first().map(|i| i.start) else { return };
    for (size, mut calls) in calls(draft, Phase::Init) {
        let of_model = |i: &&Item| {
            i.size == size && !i.dropped && matches!(i.role, Role::Parameter | Role::Buffer)
        };
        let of_model = draft.items.iter().filter(of_model).count();
        if calls.len() <= of_model {
            continue;
        }
        for i in 0..profile.blocks.len() {
            let block = &profile.blocks[i];
            let host = block.size == size
                && block.residency == Residency::HostOnly
                && block.lasts_beyond(begin);
            let moved = calls.iter_mut().rfind(|c| !c.taken && c.start > block.alloc_time);
            let (true, Some(call)) = (host, moved) else { continue };
            call.taken = true;
            let alloc = draft.after_position(Position::start(call.start));
            let free = draft.items[i].free;
            draft.add(Addition { size, alloc, free, role: Role::Input, op: call.op }, TRANSFER);
        }
    }
}

/// The calls of a phase that are no part of another operator. Single numbers (an optimizer's step
/// counters) are none.
fn calls(draft: &Draft<'_>, phase: Phase) -> Calls {
    let profile = draft.profile;
    let mut calls = Calls::new();
    let Some(name) = profile.symbol("aten::to") else { return calls };
    for &op in profile.tree.preorder() {
        let outermost = || profile.tree.path(op).skip(1).all(|o| profile.is_annotation(o));
        if profile.op_symbol(op) != name || !outermost() {
            continue;
        }
        let start = profile.op_start(op);
        let span = profile.phase_at(start).filter(|s| s.phase == phase);
        let Some(span) = span else { continue };
        let Some(tensor) = profile.arguments(op).tensor(0) else { continue };
        if tensor.bytes() > SCALAR && draft.blocks_in(op).is_empty() {
            let call = Call { op, start, iteration: span.iteration, taken: false };
            calls.entry(Bytes(tensor.bytes())).or_default().push(call);
        }
    }
    calls
}
