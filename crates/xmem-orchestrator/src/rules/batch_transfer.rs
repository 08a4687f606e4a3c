//! A batch is allocated where it is moved to the device.
//!
//! On the CPU, `batch.to(device)` returns the same tensor, but the call is recorded. On the GPU that
//! call allocates the batch (torch/csrc/autograd/python_variable_methods.cpp, `THPVariable_to`;
//! aten/src/ATen/native/TensorConversions.cpp, `to_will_alias`); the tensors that the loader made before
//! stay on the host. A recording of `xmem profile` marks these calls, whatever they are.

use super::host_scalars::SCALAR;
use crate::frame::context::Context;
use crate::frame::definition::{Applies, RuleDefinition};
use crate::frame::draft::{Addition, Edits, Item, Place};
use crate::rule::Rule;
use std::collections::BTreeMap;
use xmem_analyzer::{Phase, Profile, Residency, Role, Transfer, TransferKind};
use xmem_types::{Addr, BlockId, Bytes, IterationId, Nanos, OpId};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "batch-transfer",
        summary: "a batch is allocated where it is moved to the device; what the loader prepared before stays on the host",
        source: "aten/src/ATen/native/TensorConversions.cpp `to_will_alias`; torch/utils/data/dataloader.py",
        operators: &[],
        covers: &[],
    },
    applies: Applies::AsPass(batches),
};

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
fn batches(cx: &Context<'_>, edits: &mut Edits<'_, '_>) {
    let moves = Moves::of(cx.profile);
    if moves.first_arrival().is_some() {
        marked(edits, &moves);
        return;
    }
    data_set(edits);
    let mut calls = calls(edits, Phase::Data);
    if calls.is_empty() {
        return;
    }
    let mut ready: BTreeMap<Bytes, Vec<BlockId>> = BTreeMap::new();
    for (id, block) in edits.blocks() {
        if block.residency != Residency::Batch || !edits.live(id) {
            continue;
        }
        if block.phase == Phase::Init {
            ready.entry(block.size).or_default().push(id);
            continue;
        }
        let calls = calls.get_mut(&block.size).map_or(&mut [][..], Vec::as_mut_slice);
        let first = calls.partition_point(|c| c.start < block.alloc_time);
        let mut alive = calls[first..].iter_mut().take_while(|c| block.lasts_beyond(c.start));
        if let Some(call) = alive.find(|c| !c.taken) {
            call.taken = true;
            let alloc = edits.next(Place::before(call.start));
            edits.move_alloc(id, alloc);
        }
    }
    for (size, blocks) in ready {
        let mut calls = calls.remove(&size).unwrap_or_default();
        calls.retain(|c| !c.taken);
        from_a_list(edits, size, &blocks, &calls);
    }
}

/// Batches that were all made before the loop: each call makes a copy, which lives until the next
/// iteration's has been made.
fn from_a_list(edits: &mut Edits<'_, '_>, size: Bytes, blocks: &[BlockId], calls: &[Call]) {
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
    in_turn(edits, size, &copies);
}

/// The marks of tensors that go to the GPU.
pub(crate) struct Moves {
    first: Option<Nanos>,
    /// Per block, the time of its first move.
    blocks: BTreeMap<BlockId, Nanos>,
    /// Tensors at addresses of which the trace has no block.
    tensors: BTreeMap<Addr, (Role, Nanos)>,
}

impl Moves {
    pub(crate) fn of(profile: &Profile) -> Self {
        let arrivals = || profile.transfers.iter().filter(|t| t.kind != TransferKind::ToHost);
        let moved = || arrivals().filter(|t| t.kind == TransferKind::ToDevice);
        let mut blocks = BTreeMap::new();
        for transfer in moved() {
            if let Some(id) = transfer.block {
                blocks.entry(id).or_insert(transfer.time);
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

    /// The time at which the first tensor is on the GPU; `None` if nothing is marked.
    pub(crate) const fn first_arrival(&self) -> Option<Nanos> {
        self.first
    }

    /// The time at which a block goes to the GPU.
    pub(crate) fn of_block(&self, block: BlockId) -> Option<Nanos> {
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
    block: Option<BlockId>,
    /// The call that makes it, if it was recorded.
    op: Option<OpId>,
}

/// Allocates at the marks. A block that the loop made itself is on the GPU from its mark on; of what
/// was there before the loop, each iteration makes a copy.
fn marked(edits: &mut Edits<'_, '_>, moves: &Moves) {
    let profile = edits.profile();
    let begin = profile.iterations.first().map_or(Nanos::MAX, |i| i.start);
    let mut copies: BTreeMap<Bytes, Vec<Copy>> = BTreeMap::new();
    let mut last: BTreeMap<Addr, Option<IterationId>> = BTreeMap::new();
    for transfer in profile.transfers.iter().filter(|t| t.kind == TransferKind::ToDevice) {
        let &Transfer { time, bytes, address, .. } = transfer;
        let iteration = profile.phase_at(time).and_then(|s| s.iteration);
        let first = match transfer.block {
            Some(id) => moves.of_block(id) == Some(time),
            None => !last.contains_key(&address),
        };
        let (kept, size) = match transfer.block {
            Some(id) => {
                let block = profile.block(id);
                if block.residency != Residency::Batch || !edits.live(id) {
                    continue;
                }
                let before = block.phase == Phase::Init && moves.of_block(id) >= Some(begin);
                (before, block.size)
            }
            None if moves.is_tensor(transfer) || bytes == Bytes::ZERO => continue,
            None => (time >= begin, bytes),
        };
        // A tensor that is there already is not copied again (`x.to(device)` within the model).
        let again = last.insert(address, iteration) == Some(iteration);
        if kept && (first || !again) {
            let block = transfer.block.filter(|_| first);
            copies.entry(size).or_default().push(Copy { at: time, iteration, block, op: None });
        } else if first {
            let alloc = edits.next(Place::before(time));
            match transfer.block {
                Some(id) => edits.move_alloc(id, alloc),
                None => edits.add_unseen(size, Role::Input, alloc, Place::NEVER),
            }
        }
    }
    for (size, copies) in copies {
        in_turn(edits, size, &copies);
    }
}

/// Copies of one size: each lives until the next iteration's has been made.
fn in_turn(edits: &mut Edits<'_, '_>, size: Bytes, copies: &[Copy]) {
    let each = copies.iter().filter(|c| c.iteration == copies[0].iteration).count();
    let allocs: Vec<Place> = copies.iter().map(|c| edits.next(Place::before(c.at))).collect();
    for (n, copy) in copies.iter().enumerate() {
        let last = copy.block.map_or(Place::NEVER, |id| edits.item(id).free());
        let next = allocs.get(n + each).map(|&at| edits.next(at));
        let free = next.unwrap_or(last);
        let (alloc, role) = (allocs[n], Role::Input);
        match (copy.block, copy.op) {
            (Some(id), _) => edits.retime(id, alloc, free),
            (None, Some(op)) => {
                edits.add(Addition { size, alloc, free, role, op });
            }
            (None, None) => edits.add_unseen(size, role, alloc, free),
        }
    }
}

/// A whole data set that is moved before the loop: a host tensor that is there to stay, and a call of
/// its size which no parameter accounts for.
fn data_set(edits: &mut Edits<'_, '_>) {
    let profile = edits.profile();
    let Some(begin) = profile.iterations.first().map(|i| i.start) else { return };
    let mut calls = calls(edits, Phase::Init);
    let mut of_model: BTreeMap<Bytes, usize> = BTreeMap::new();
    let is_model =
        |item: &&Item| item.is_live() && matches!(item.role(), Role::Parameter | Role::Buffer);
    for item in edits.items().map(|(_, item)| item).filter(is_model) {
        *of_model.entry(item.size()).or_default() += 1;
    }
    calls.retain(|size, calls| calls.len() > of_model.get(size).copied().unwrap_or(0));
    let mut host: BTreeMap<Bytes, Vec<BlockId>> = BTreeMap::new();
    for (id, block) in edits.blocks() {
        let stays = block.residency == Residency::HostOnly && block.lasts_beyond(begin);
        if stays && calls.contains_key(&block.size) {
            host.entry(block.size).or_default().push(id);
        }
    }
    for (size, blocks) in host {
        let calls = calls.remove(&size).unwrap_or_default();
        // Each takes the last call that is left, if that comes after it.
        for (id, call) in blocks.into_iter().zip(calls.into_iter().rev()) {
            if call.start <= profile.block(id).alloc_time {
                break;
            }
            let alloc = edits.next(Place::before(call.start));
            let free = edits.item(id).free();
            edits.add(Addition { size, alloc, free, role: Role::Input, op: call.op });
        }
    }
}

/// The calls of a phase that are no part of another operator. Single numbers (an optimizer's step
/// counters) are none.
fn calls(edits: &Edits<'_, '_>, phase: Phase) -> Calls {
    let profile = edits.profile();
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
        if tensor.bytes() > SCALAR && edits.blocks_in(op).is_empty() {
            let call = Call { op, start, iteration: span.iteration, taken: false };
            calls.entry(Bytes(tensor.bytes())).or_default().push(call);
        }
    }
    // Pre-order is that of time within a thread only.
    calls.values_mut().for_each(|calls| calls.sort_by_key(|c| c.start));
    calls
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::testing::{Case, Script, target};
    use expect_test::expect;

    pub(crate) fn cases() -> Vec<Case> {
        vec![
            Case {
                rule: RULE.name,
                shows: "a batch is on the GPU from its mark on, however often it is asked there",
                script: marked_loader(),
                target: target(),
                requests: expect![[r#"
                    a batch is on the GPU from its mark on, however often it is asked there
                        + w 8192 parameter model-placement
                    on  + x0 8192 input batch-transfer
                    off + x0 8192 input
                        + y 8192 activation
                        + gw0 8192 gradient
                        - y
                        - gw0
                    off + x1 8192 input
                        - x0
                    on  + x1 8192 input batch-transfer
                        + y 8192 activation
                        + gw1 8192 gradient
                        - y
                        - gw1
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "of what was there before the loop, each iteration makes a copy",
                script: marked_list(),
                target: target(),
                requests: expect![[r#"
                    of what was there before the loop, each iteration makes a copy
                        + w 8192 parameter model-placement
                    on  + x0 8192 input batch-transfer
                    off + x0 8192 input
                    off + x1 8192 input
                        + y 8192 activation
                        + gw0 8192 gradient
                        - y
                        - gw0
                    on  + x1 8192 input batch-transfer
                    on  - x0
                        + y 8192 activation
                        + gw1 8192 gradient
                        - y
                        - gw1
                    on  + batch-transfer#1 8192 input
                    on  - x1
                        + y 8192 activation
                        + gw2 8192 gradient
                        - y
                        - gw2
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "batches of other processes are seen by their marks alone",
                script: shared(),
                target: target(),
                requests: expect![[r#"
                    batches of other processes are seen by their marks alone
                        + w 8192 parameter model-placement
                    on  + batch-transfer#1 8192 input
                        + y 8192 activation
                        + gw0 8192 gradient
                        - y
                        - gw0
                    on  + batch-transfer#2 8192 input
                    on  - batch-transfer#1
                        + y 8192 activation
                        + gw1 8192 gradient
                        - y
                        - gw1
                    on  + batch-transfer#3 8192 input
                    on  - batch-transfer#2
                        + y 8192 activation
                        + gw2 8192 gradient
                        - y
                        - gw2
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "a data set that is moved before the loop stays; its host copy is left out",
                script: marked_data_set(),
                target: target(),
                requests: expect![[r#"
                    a data set that is moved before the loop stays; its host copy is left out
                        + w 8192 parameter model-placement
                    on  + all 16384 input batch-transfer
                    on  + batch-transfer#1 4096 input
                    off + all 16384 input
                        + x0 8192 input
                        + y 8192 activation
                        + gw0 8192 gradient
                        - y
                        - gw0
                        + x1 8192 input
                        + y 8192 activation
                        + gw1 8192 gradient
                        - y
                        - gw1
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "the loader makes the next batch while the last is there: one at a time on the GPU",
                script: loader(Moved::Yes),
                target: target(),
                requests: expect![[r#"
                    the loader makes the next batch while the last is there: one at a time on the GPU
                        + w 8192 parameter model-placement
                    on  + x0 8192 input batch-transfer
                    off + x0 8192 input
                        + y 8192 activation
                        + gw0 8192 gradient
                        - y
                    off + x1 8192 input
                        - x0
                    on  + x1 8192 input batch-transfer
                        - gw0
                        + y 8192 activation
                        + gw1 8192 gradient
                        - y
                    off + x2 8192 input
                        - x1
                    on  + x2 8192 input batch-transfer
                        - gw1
                        + y 8192 activation
                        + gw2 8192 gradient
                        - y
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "no call that moves them: left where they were made",
                script: loader(Moved::No),
                target: target(),
                requests: expect![[r#"
                    no call that moves them: left where they were made
                        + w 8192 parameter model-placement
                        + x0 8192 input
                        + y 8192 activation
                        + gw0 8192 gradient
                        - y
                        + x1 8192 input
                        - x0
                        - gw0
                        + y 8192 activation
                        + gw1 8192 gradient
                        - y
                        + x2 8192 input
                        - x1
                        - gw1
                        + y 8192 activation
                        + gw2 8192 gradient
                        - y
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "a list made before the loop: each batch while its iteration lasts",
                script: list(),
                target: target(),
                requests: expect![[r#"
                    a list made before the loop: each batch while its iteration lasts
                        + w 8192 parameter model-placement
                    on  + x0 8192 input batch-transfer
                    off + x0 8192 input
                    off + x1 8192 input
                        + y 8192 activation
                        + gw0 8192 gradient
                        - y
                    on  + x1 8192 input batch-transfer
                    on  - x0
                        - gw0
                        + y 8192 activation
                        + gw1 8192 gradient
                        - y
                    off - x0
                        - x1
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "a whole data set that is moved before the loop",
                script: data_set(),
                target: target(),
                requests: expect![[r#"
                    a whole data set that is moved before the loop
                        + w 8192 parameter model-placement
                    on  + batch-transfer#1 32768 input
                        + y 8192 activation
                        + gw0 8192 gradient
                        - y
                        - gw0
                        + y 8192 activation
                        + gw1 8192 gradient
                        - y
                "#]],
            },
        ]
    }

    fn marked_loader() -> Script {
        let mut t = parameter();
        for i in 0..2 {
            let (x, raw) = (format!("x{i}"), format!("raw{i}"));
            t.makes("aten::stack", "{32;32} 0", &raw, 512);
            t.makes("aten::stack", "{32;32} 0", &x, 8192);
            if i > 0 {
                t.free(&format!("x{} raw{}", i - 1, i - 1));
            }
            t.marked("to_device", &x);
            t.marked("to_device", &x);
            train(&mut t, i);
        }
        t
    }

    fn marked_list() -> Script {
        let mut t = parameter();
        t.makes("aten::randn", "(64,32)", "x0", 8192);
        t.makes("aten::randn", "(64,32)", "x1", 8192);
        for i in 0..3 {
            t.makes("aten::randperm", "2", &format!("order{i}"), 32);
            t.marked("to_device", &format!("x{}", i % 2));
            t.marked("to_device", &format!("x{}", i % 2));
            train(&mut t, i);
        }
        t
    }

    fn shared() -> Script {
        let mut t = parameter();
        for i in 0..3 {
            t.makes("aten::randperm", "2", &format!("order{i}"), 32);
            t.marked_at("to_device", 0x10 * u64::from(i % 2 + 1), 8192);
            train(&mut t, i);
        }
        t
    }

    fn marked_data_set() -> Script {
        let mut t = parameter();
        t.makes("aten::randn", "(256,32)", "read", 32768);
        t.makes("aten::_to_copy", "f32[256,32]", "all", 16384);
        t.marked("to_device", "all");
        t.marked_at("to_device", 0x10, 4096);
        for i in 0..2 {
            t.makes("aten::index", "f32[256,32]", &format!("x{i}"), 8192);
            train(&mut t, i);
        }
        t
    }

    fn parameter() -> Script {
        let mut t = Script::default();
        t.parameter("w", &[64, 32]);
        t.marked("to_device", "w");
        t
    }

    fn train(t: &mut Script, i: u32) {
        pass(t, i);
        t.mark(&format!("xmem::iteration {}", i + 1), |_| ());
        t.mark("Optimizer.zero_grad#SGD.zero_grad", |t| t.free(&format!("gw{i}")));
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Moved {
        Yes,
        No,
    }

    /// Two batches, made first; two iterations.
    fn list() -> Script {
        let mut t = Script::default();
        t.parameter("w", &[64, 32]);
        t.makes("aten::randn", "(64,32)", "x0", 8192);
        t.makes("aten::randn", "(64,32)", "x1", 8192);
        for i in 0..2 {
            t.iteration(i, |t| {
                t.op("aten::to", "f32[64,32] 0 - - - False False -", |_| ());
                step(t, i);
            });
        }
        t.free("x0 x1");
        t
    }

    fn data_set() -> Script {
        let mut t = Script::default();
        t.parameter("w", &[64, 32]);
        t.makes("aten::randn", "(256,32)", "all", 32768);
        t.op("aten::to", "f32[256,32] 0 - - - False False -", |_| ());
        for i in 0..2 {
            t.iteration(i, |t| step(t, i));
        }
        t
    }

    /// Three iterations; each makes its batch before it drops the last.
    fn loader(moved: Moved) -> Script {
        let mut t = Script::default();
        t.parameter("w", &[64, 32]);
        for i in 0..3 {
            t.iteration(i, |t| {
                let x = format!("x{i}");
                t.makes("aten::stack", "{32;32} 0", &x, 8192);
                if i > 0 {
                    t.free(&format!("x{}", i - 1));
                }
                if moved == Moved::Yes {
                    t.op("aten::to", "f32[64,32] 0 - - - False False -", |_| ());
                }
                step(t, i);
            });
        }
        t
    }

    fn step(t: &mut Script, i: u32) {
        t.mark("Optimizer.zero_grad#SGD.zero_grad", |t| {
            if i > 0 {
                t.free(&format!("gw{}", i - 1));
            }
        });
        pass(t, i);
    }

    /// Forward, backward and a step.
    pub(crate) fn pass(t: &mut Script, i: u32) {
        t.makes_seq(i + 1, "aten::mul", "f32[64,32] f32[64,32]", "y", 8192);
        t.node(i + 1, "MulBackward0", |t| {
            t.makes("aten::mul", "f32[64,32] f32[64,32]", &format!("gw{i}"), 8192);
            t.free("y");
        });
        t.accumulate("f32[64,32]");
        t.mark("Optimizer.step#SGD.step", |t| {
            t.op("aten::add_", "f32[64,32] f32[64,32] -0.1", |_| ());
        });
    }
}
