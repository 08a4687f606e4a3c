//! When batches go to the GPU.
//!
//! On the CPU, `batch.to(device)` returns the same tensor, but the call is recorded. On the GPU that
//! call is where the batch is allocated (torch/csrc/autograd/python_variable_methods.cpp,
//! `THPVariable_to`; aten/src/ATen/native/TensorConversions.cpp, `to_will_alias`): what the loader made
//! before stays on the host. A recording of `xmem profile` marks these calls, whatever they are.

use crate::draft::{Addition, Draft, Item, Position};
use crate::rules::name::TRANSFER;
use crate::scratch::SCALAR;
use std::collections::BTreeMap;
use xmem_analyzer::{Phase, Profile, Residency, Role, Transfer, TransferKind};
use xmem_types::{Addr, BlockId, Bytes, IterationId, Nanos, OpId};

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
    let moves = Moves::of(draft.profile);
    if moves.first_arrival().is_some() {
        marked(draft, &moves);
        return;
    }
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
        let calls = calls.get_mut(&block.size).map_or(&mut [][..], Vec::as_mut_slice);
        let first = calls.partition_point(|c| c.start < block.alloc_time);
        let mut alive = calls[first..].iter_mut().take_while(|c| block.lasts_beyond(c.start));
        if let Some(call) = alive.find(|c| !c.taken) {
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
    let copies: Vec<Copy> = calls
        .iter()
        .enumerate()
        .map(|(n, call)| Copy {
            at: call.start,
            iteration: call.iteration,
            block: blocks.get(n).copied(),
            op: Some(call.op),
        })
        .collect();
    in_turn(draft, size, &copies);
}

/// What the recorder marked as going to the GPU.
pub(crate) struct Moves {
    first: Option<Nanos>,
    /// Per block, when it first goes there.
    blocks: BTreeMap<usize, Nanos>,
    /// What lies at addresses of which the trace has no block.
    tensors: BTreeMap<Addr, (Role, Nanos)>,
}

impl Moves {
    pub(crate) fn of(profile: &Profile) -> Self {
        let arrivals = || profile.transfers.iter().filter(|t| t.kind != TransferKind::ToHost);
        let moved = || arrivals().filter(|t| t.kind == TransferKind::ToDevice);
        let mut blocks = BTreeMap::new();
        for transfer in moved() {
            if let Some(id) = transfer.block {
                blocks.entry(id.index()).or_insert(transfer.time);
            }
        }
        let mut unseen = moved().filter(|t| t.block.is_none()).peekable();
        let mut listed: BTreeMap<Addr, Role> = BTreeMap::new();
        if unseen.peek().is_some() {
            for (address, role) in profile.listed() {
                listed.entry(address).or_insert(role);
            }
        }
        let mut tensors = BTreeMap::new();
        for transfer in unseen {
            if let Some(&role) = listed.get(&transfer.address) {
                tensors.entry(transfer.address).or_insert((role, transfer.time));
            }
        }
        Self { first: arrivals().next().map(|t| t.time), blocks, tensors }
    }

    /// When something first is on the GPU; none where nothing is marked.
    pub(crate) const fn first_arrival(&self) -> Option<Nanos> {
        self.first
    }

    /// When a block goes to the GPU.
    pub(crate) fn of_block(&self, block: usize) -> Option<Nanos> {
        self.blocks.get(&block).copied()
    }

    /// The role of a tensor of the model, or of the optimizer's state, that `transfer` is the first to
    /// move and that the trace does not see on the host.
    pub(crate) fn tensor(&self, transfer: &Transfer) -> Option<Role> {
        let &(role, time) = self.tensors.get(&transfer.address)?;
        (transfer.block.is_none() && time == transfer.time).then_some(role)
    }

    fn is_tensor(&self, transfer: &Transfer) -> bool {
        transfer.block.is_none() && self.tensors.contains_key(&transfer.address)
    }
}

/// A copy that the loop makes on the GPU of what stays on the host.
struct Copy {
    at: Nanos,
    iteration: Option<IterationId>,
    /// The block, for its first copy.
    block: Option<usize>,
    /// The call that makes it, if it was recorded.
    op: Option<OpId>,
}

/// Allocates at the marks. A block that the loop made itself is on the GPU from its mark on; of what
/// was there before the loop, each iteration makes a copy.
fn marked(draft: &mut Draft<'_>, moves: &Moves) {
    let profile = draft.profile;
    let begin = profile.iterations.first().map_or(Nanos::MAX, |i| i.start);
    let mut copies: BTreeMap<Bytes, Vec<Copy>> = BTreeMap::new();
    let mut last: BTreeMap<Addr, Option<IterationId>> = BTreeMap::new();
    for transfer in profile.transfers.iter().filter(|t| t.kind == TransferKind::ToDevice) {
        let &Transfer { time, bytes, address, .. } = transfer;
        let iteration = profile.phase_at(time).and_then(|s| s.iteration);
        let block = transfer.block.map(BlockId::index);
        let first = match block {
            Some(i) => moves.of_block(i) == Some(time),
            None => !last.contains_key(&address),
        };
        let (kept, size) = match block {
            Some(i) => {
                let block = &profile.blocks[i];
                if block.residency != Residency::Batch || !draft.live(i) {
                    continue;
                }
                let before = block.phase == Phase::Init && moves.of_block(i) >= Some(begin);
                (before, block.size)
            }
            None if moves.is_tensor(transfer) || bytes == Bytes::ZERO => continue,
            None => (time >= begin, bytes),
        };
        // What is there already is not copied again (`x.to(device)` within the model).
        let again = last.insert(address, iteration) == Some(iteration);
        if kept && (first || !again) {
            let block = block.filter(|_| first);
            copies.entry(size).or_default().push(Copy { at: time, iteration, block, op: None });
        } else if first {
            let alloc = draft.after_position(Position::start(time));
            match block {
                Some(i) => draft.retime(i, alloc, draft.items[i].free, TRANSFER),
                None => draft.add_unseen(size, Role::Input, (alloc, None), TRANSFER),
            }
        }
    }
    for (size, copies) in copies {
        in_turn(draft, size, &copies);
    }
}

/// Copies of one size: each lives until the next iteration's has been made.
fn in_turn(draft: &mut Draft<'_>, size: Bytes, copies: &[Copy]) {
    let each = copies.iter().filter(|c| c.iteration == copies[0].iteration).count();
    let allocs: Vec<Position> =
        copies.iter().map(|c| draft.after_position(Position::start(c.at))).collect();
    for (n, copy) in copies.iter().enumerate() {
        let last = copy.block.and_then(|i| draft.items[i].free);
        let next = allocs.get(n + each).map(|&at| draft.after_position(at));
        let free = next.or(last);
        let (alloc, role) = (allocs[n], Role::Input);
        match (copy.block, copy.op) {
            (Some(i), _) => draft.retime(i, alloc, free, TRANSFER),
            (None, Some(op)) => draft.add(Addition { size, alloc, free, role, op }, TRANSFER),
            (None, None) => draft.add_unseen(size, role, (alloc, free), TRANSFER),
        }
    }
}

/// A whole data set that is moved before the loop: a host tensor that is there to stay, and a call of
/// its size which no parameter accounts for.
fn data_set(draft: &mut Draft<'_>) {
    let profile = draft.profile;
    let Some(begin) = profile.iterations.first().map(|i| i.start) else { return };
    let mut calls = calls(draft, Phase::Init);
    let mut of_model: BTreeMap<Bytes, usize> = BTreeMap::new();
    let of_role = |i: &&Item| !i.dropped && matches!(i.role, Role::Parameter | Role::Buffer);
    for item in draft.items.iter().filter(of_role) {
        *of_model.entry(item.size).or_default() += 1;
    }
    calls.retain(|size, calls| calls.len() > of_model.get(size).copied().unwrap_or(0));
    let mut host: BTreeMap<Bytes, Vec<usize>> = BTreeMap::new();
    for (i, block) in profile.blocks.iter().enumerate() {
        let stays = block.residency == Residency::HostOnly && block.lasts_beyond(begin);
        if stays && calls.contains_key(&block.size) {
            host.entry(block.size).or_default().push(i);
        }
    }
    for (size, blocks) in host {
        let calls = calls.remove(&size).unwrap_or_default();
        // Each takes the last call that is left, if that comes after it.
        for (i, call) in blocks.into_iter().zip(calls.into_iter().rev()) {
            if call.start <= profile.blocks[i].alloc_time {
                break;
            }
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
    // Pre-order is that of time within a thread only.
    calls.values_mut().for_each(|calls| calls.sort_by_key(|c| c.start));
    calls
}
