//! Parameters and buffers are allocated when the model is moved to the device. Where `xmem profile`
//! marked the moves, that is each tensor at its mark; otherwise all together, after the last of them was
//! made on the host, in the order in which they were made. Weights of recurrent layers go into one buffer
//! each (rule `cudnn-recurrent`).

use super::batch_transfer::Moves;
use super::cudnn_recurrent::FlatWeights;
use crate::frame::context::Context;
use crate::frame::definition::{Applies, RuleDefinition};
use crate::frame::draft::{Edits, Place};
use crate::rule::Rule;
use xmem_analyzer::{Phase, Residency, Role, Transfer, TransferKind};
use xmem_types::{BlockId, Bytes};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "model-placement",
        summary: "parameters and buffers are allocated when the model is moved to the device, one after another",
        source: "torch/nn/modules/module.py `Module._apply`; xMem paper, section 3",
        operators: &[],
        covers: &[],
    },
    applies: Applies::AsPass(place_model),
};

fn place_model(cx: &Context<'_>, edits: &mut Edits<'_, '_>) {
    let moves = Moves::of(cx.profile);
    let mut model: Vec<BlockId> = edits
        .blocks()
        .filter(|(id, block)| {
            let of_model = matches!(edits.item(*id).role(), Role::Parameter | Role::Buffer);
            // What the loop makes once and keeps (the scale of a GradScaler) is no part of it.
            edits.live(*id) && of_model && block.phase == Phase::Init
        })
        .map(|(id, _)| id)
        .collect();
    let flat = FlatWeights::of(cx);
    if let Some(first) = moves.first_arrival() {
        let marked = at_marks(edits, &moves, &model, &flat);
        model.retain(|&id| moves.of_block(id).is_none());
        // What is computed from tensors on the GPU is there from birth.
        let made_there = |&id: &BlockId| {
            let block = cx.profile.block(id);
            block.residency == Residency::Device || block.alloc_time > first
        };
        let there: Vec<BlockId> = model.iter().copied().filter(made_there).collect();
        let flattening = flat.among(edits, &there);
        for &id in &there {
            flattening.after(edits, id);
        }
        model.retain(|id| !made_there(id));
        if let Some(last) = marked {
            together(edits, &model, last, &flat);
            return;
        }
    }
    let Some(moved) = model.iter().map(|&id| edits.item(id).alloc().time()).max() else { return };
    together(edits, &model, Place::after(moved), &flat);
}

fn together(edits: &mut Edits<'_, '_>, model: &[BlockId], at: Place, flat: &FlatWeights) {
    let flattening = flat.among(edits, model);
    for &id in model {
        let alloc = edits.next(at);
        edits.move_alloc(id, alloc);
        flattening.after(edits, id);
    }
}

/// Allocates each tensor of the model at its mark, in that order; also those that the trace does not see
/// on the host (a mapped file). Returns the place of the last one.
fn at_marks(
    edits: &mut Edits<'_, '_>,
    moves: &Moves,
    model: &[BlockId],
    flat: &FlatWeights,
) -> Option<Place> {
    let profile = edits.profile();
    let mut last = None;
    let moved = || profile.transfers.iter().filter(|t| t.kind == TransferKind::ToDevice);
    let of_model = |transfer: &Transfer| {
        let here = |id: &BlockId| moves.of_block(*id) == Some(transfer.time);
        transfer.block.filter(here).filter(|id| model.binary_search(id).is_ok())
    };
    let order: Vec<BlockId> = moved().filter_map(of_model).collect();
    let flattening = flat.among(edits, &order);
    for transfer in moved() {
        let at = Place::before(transfer.time);
        match transfer.block {
            Some(_) => {
                if let Some(id) = of_model(transfer) {
                    let alloc = edits.next(at);
                    edits.move_alloc(id, alloc);
                    flattening.after(edits, id);
                    last = Some(alloc);
                }
            }
            None => {
                let Some(role) = moves.tensor(transfer) else { continue };
                if transfer.bytes > Bytes::ZERO {
                    let alloc = edits.next(at);
                    edits.add_unseen(transfer.bytes, role, alloc, Place::NEVER);
                    last = Some(alloc);
                }
            }
        }
    }
    last
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::rules::batch_transfer::tests::pass;
    use crate::testing::{Case, Script, target};
    use expect_test::expect;

    pub(crate) fn cases() -> Vec<Case> {
        vec![
            Case {
                rule: RULE.name,
                shows: "a batch that was made between two parameters comes before both",
                script: interleaved_model(),
                target: target(),
                requests: expect![[r#"
                    a batch that was made between two parameters comes before both
                    off + w 4096 parameter
                        + x 8192 input
                    on  + w 4096 parameter model-placement
                    on  + b 128 parameter model-placement
                    off + b 128 parameter
                        + h 8192 temporary
                        + y 8192 activation
                        - h
                        + seed 4 temporary
                        + gb 128 gradient
                        + gw 4096 gradient
                        - y
                        - seed
                        - gw
                        - gb
                        + h 8192 temporary
                        + y 8192 activation
                        - h
                        + seed 4 temporary
                        + gb 128 gradient
                        + gw 4096 gradient
                        - y
                        - seed
                        - gw
                        - gb
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "each parameter goes to the GPU at its mark, in the order of the marks",
                script: model(),
                target: target(),
                requests: expect![[r#"
                    each parameter goes to the GPU at its mark, in the order of the marks
                    on  + v 4096 buffer model-placement
                    on  + w 8192 parameter model-placement
                    off + w 8192 parameter
                    off + v 4096 buffer
                        + x 8192 input batch-transfer
                        + y 8192 activation
                        + gw0 8192 gradient
                        - y
                        - gw0
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "weights of a mapped file are allocated where they are moved",
                script: mapped(),
                target: target(),
                requests: expect![[r#"
                    weights of a mapped file are allocated where they are moved
                    on  + model-placement#1 8192 parameter
                    on  + x 8192 parameter model-placement
                    off + x 8192 parameter
                        + y 8192 activation
                        + gw0 8192 gradient
                        - y
                        - gw0
                "#]],
            },
        ]
    }

    fn interleaved_model() -> Script {
        let mut t = Script::default();
        t.python("train.py(3): main", |t| {
            t.parameter("w", &[32, 32]);
            t.makes("aten::ones", "(64,32)", "x", 8192);
            t.parameter("b", &[32]);
        });
        for i in 0..2 {
            t.iteration(i, |t| {
                t.makes_seq(2 * i, "aten::mul", "f32[64,32] f32[32,32]", "h", 8192);
                t.makes_seq(2 * i + 1, "aten::add", "f32[64,32] f32[32] 1", "y", 8192);
                t.free("h");
                t.makes("aten::ones_like", "f32[] - - - False 1", "seed", 4);
                t.node(2 * i + 1, "AddBackward0", |t| t.alloc("gb", 128));
                t.accumulate("f32[32]");
                t.node(2 * i, "MulBackward0", |t| t.alloc("gw", 4096));
                t.accumulate("f32[32,32]");
                t.free("y seed");
                t.mark("Optimizer.step#SGD.step", |t| {
                    t.op("aten::add_", "f32[32,32] f32[32,32] -0.1", |_| ());
                    t.op("aten::add_", "f32[32] f32[32] -0.1", |_| ());
                });
                t.mark("Optimizer.zero_grad#SGD.zero_grad", |t| t.free("gw gb"));
            });
        }
        t
    }

    fn model() -> Script {
        let mut t = Script::default();
        t.model(&[("w", &[64, 32]), ("v", &[64, 16])]);
        t.marked("to_device", "v");
        t.marked("to_device", "w");
        t.makes("aten::randn", "(64,32)", "between", 8192);
        t.makes("aten::randn", "(64,32)", "x", 8192);
        t.marked("to_device", "x");
        let (w, v) = (t.storage("w"), t.storage("v"));
        train(&mut t, 0);
        t.recording(&format!(
            r#""tensors": [
                {{"name": "w", "model": 0, "kind": "parameter", "storage": {{{w}}}}},
                {{"name": "v", "model": 0, "kind": "buffer", "storage": {{{v}}}}}]"#
        ));
        t
    }

    fn mapped() -> Script {
        let mut t = Script::default();
        t.marked_at("to_device", 0x10, 8192);
        t.makes("aten::randn", "(64,32)", "x", 8192);
        t.marked("to_device", "x");
        train(&mut t, 0);
        t.recording(
            r#""tensors": [{"name": "w", "model": 0, "kind": "parameter",
                "storage": {"address": "0x10", "bytes": 8192}}]"#,
        );
        t
    }

    fn train(t: &mut Script, i: u32) {
        pass(t, i);
        t.mark(&format!("xmem::iteration {}", i + 1), |_| ());
        t.mark("Optimizer.zero_grad#SGD.zero_grad", |t| t.free(&format!("gw{i}")));
    }
}
