//! `cross_entropy_loss` on 16-bit logits under autocast.
//!
//! The CPU's autocast lists the whole operator as float32 (aten/src/ATen/autocast_mode.cpp): the logits are
//! cast first, everything after is 32 bits wide. CUDA's list has its parts: the log-softmax is requested in
//! the logits' own type and stays 16 bits wide, and `nll_loss` casts its result, which it keeps for
//! backward.

use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::frame::draft::Addition;
use crate::rule::Rule;
use xmem_analyzer::Role;
use xmem_types::{BlockId, Bytes, OpId};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "autocast-loss",
        summary: "under autocast CUDA keeps cross_entropy's log-softmax in 16 bits and casts for nll_loss; the CPU casts the logits",
        source: "aten/src/ATen/autocast_mode.cpp (CPU and CUDA lists); aten/src/ATen/native/LossNLL.cpp `cross_entropy_loss_prob_target`, `cross_entropy_loss`",
        operators: &["aten::cross_entropy_loss"],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    match narrow(call) {
        Some(()) => Outcome::Done,
        None => Outcome::Unclaimed,
    }
}

fn narrow(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let profile = call.profile();
    let op = call.op;
    let logits = call.arguments().tensor(0).filter(|t| t.dtype.is_half())?;
    // Autocast calls the operator again within itself, with the cast inputs.
    if !call.calls_itself() {
        return None;
    }
    let (half, wide) =
        (Bytes::from(Count::bytes(logits)), Bytes::from(Count::elements(logits) * 4));
    let find = |call: &Call<'_, '_, '_>, within: OpId, size: Bytes, operator: &str| {
        let made_by = |block: BlockId| {
            let mut path = profile.op_path(profile.block(block)).take(3);
            path.any(|o| profile.op_name(o) == operator)
        };
        let mut blocks = call.edits.blocks_in(within).into_iter();
        blocks.find(|&block| call.edits.recorded_size(block) == size && made_by(block))
    };
    let cast = find(call, op, wide, "aten::_to_copy")?;
    let kept = find(call, op, wide, "aten::_log_softmax")?;
    let nodes = call.nodes();
    let node = |name: &str| nodes.iter().copied().find(|&n| profile.op_name(n).contains(name));
    let (loss, softmax, to) = (node("NllLoss"), node("LogSoftmax"), node("ToCopy"));
    call.edits.drop_block(cast);
    call.edits.resize(kept, half);
    let alloc = call.edits.after(kept);
    let free = call.edits.after_op(loss.unwrap_or(op));
    call.edits.add(Addition { size: wide, alloc, free, role: Role::Activation, op });
    let (loss, softmax, to) = (loss?, softmax?, to?);
    let of_loss = find(call, loss, wide, "aten::nll_loss_backward")?;
    let of_softmax = find(call, softmax, wide, "aten::_log_softmax_backward_data")?;
    let of_cast = find(call, to, half, "aten::_to_copy")?;
    // The cast's backward moves before that of the softmax.
    let start = call.edits.before(softmax);
    let alloc = call.edits.next(start);
    let free = call.edits.after_op(softmax);
    let role = Role::Temporary;
    call.edits.add(Addition { size: half, alloc, free, role, op: softmax });
    let free = call.edits.next(start);
    call.edits.move_free(of_loss, free);
    call.edits.resize(of_softmax, half);
    let free = call.edits.item(of_cast).free();
    call.edits.move_free(of_softmax, free);
    call.edits.drop_block(of_cast);
    Some(())
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
                shows: "16-bit logits: log-softmax stays narrow, nll_loss keeps a wide cast",
                script: cross_entropy(),
                target: target(),
                requests: expect![[r#"
                    16-bit logits: log-softmax stays narrow, nll_loss keeps a wide cast
                        + logits 1024 activation
                    on  + logp 1024 activation autocast-loss
                    on  + autocast-loss#1 2048 activation
                    off + cast 2048 temporary
                    off + logp 2048 activation
                        + loss 4 activation
                        + total_weight 4 activation
                    off - cast
                        + seed 4 temporary
                    on  + g_logp 2048 temporary autocast-loss
                    off + g_logp 2048 temporary
                        - total_weight
                    on  - autocast-loss#1
                    on  + autocast-loss#2 1024 temporary
                    on  - g_logp
                    on  + g_cast 1024 temporary autocast-loss
                    off + g_cast 2048 temporary
                        - logp
                    on  - autocast-loss#2
                    off - g_logp
                    off + g_logits 1024 temporary
                        - g_cast
                    off - g_logits
                        - logits
                        - loss
                        - seed
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "32-bit logits: nothing differs",
                script: plain_cross_entropy(),
                target: target(),
                requests: expect![[r#"
                    32-bit logits: nothing differs
                        + logits 2048 input
                        + logp 2048 activation
                        + loss 4 activation
                        + total_weight 4 activation
                        + g_logp 2048 temporary
                        + g_logits 2048 gradient
                        - logp
                        - g_logp
                        - total_weight
                        - logits
                        - loss
                        - g_logits
                "#]],
            },
        ]
    }

    /// 32 rows of 16 bfloat16 logits: 1024 bytes, 2048 in 32 bits.
    fn cross_entropy() -> Script {
        let mut t = Script::default();
        let rest = "i64[32] - 1 -100 0.0";
        t.iteration(0, |t| {
            t.makes_seq(1, "aten::add", "bf16[32,16] bf16[16] 1", "logits", 1024);
            t.op_seq(2, "aten::cross_entropy_loss", &format!("bf16[32,16] {rest}"), |t| {
                t.op_seq(2, "aten::to", "bf16[32,16] 6 False False -", |t| {
                    t.makes_seq(2, "aten::_to_copy", "bf16[32,16] 6 - - - False -", "cast", 2048);
                });
                t.op_seq(3, "aten::cross_entropy_loss", &format!("f32[32,16] {rest}"), |t| {
                    t.op_seq(3, "aten::log_softmax", "f32[32,16] 1 -", |t| {
                        t.makes_seq(3, "aten::_log_softmax", "f32[32,16] 1 False", "logp", 2048);
                    });
                    t.op_seq(4, "aten::nll_loss_forward", "f32[32,16] i64[32] - 1 -100", |t| {
                        t.alloc("loss", 4);
                        t.alloc("total_weight", 4);
                    });
                    t.free("cast");
                });
            });
            t.makes("aten::ones_like", "f32[] - - - False 1", "seed", 4);
            t.node(4, "NllLossBackward0", |t| {
                t.makes("aten::nll_loss_backward", "f32[] f32[32,16] i64[32]", "g_logp", 2048);
                t.free("total_weight");
            });
            t.node(3, "LogSoftmaxBackward0", |t| {
                let arguments = "f32[32,16] f32[32,16] 1 6";
                t.makes("aten::_log_softmax_backward_data", arguments, "g_cast", 2048);
                t.free("logp g_logp");
            });
            t.node(2, "ToCopyBackward0", |t| {
                t.op("aten::to", "f32[32,16] 15 False False -", |t| {
                    t.makes("aten::_to_copy", "f32[32,16] 15 - - - False -", "g_logits", 1024);
                });
                t.free("g_cast");
            });
            t.node(1, "AddBackward0", |t| t.free("g_logits"));
            t.free("logits loss seed");
        });
        t
    }

    fn plain_cross_entropy() -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.makes_seq(1, "aten::add", "f32[32,16] f32[16] 1", "logits", 2048);
            t.op_seq(2, "aten::cross_entropy_loss", "f32[32,16] i64[32] - 1 -100 0.0", |t| {
                t.makes_seq(2, "aten::_log_softmax", "f32[32,16] 1 False", "logp", 2048);
                t.op_seq(3, "aten::nll_loss_forward", "f32[32,16] i64[32] - 1 -100", |t| {
                    t.alloc("loss", 4);
                    t.alloc("total_weight", 4);
                });
            });
            t.node(3, "NllLossBackward0", |t| t.alloc("g_logp", 2048));
            t.node(2, "LogSoftmaxBackward0", |t| {
                t.alloc("g_logits", 2048);
                t.free("logp g_logp total_weight");
            });
            t.free("logits loss g_logits");
        });
        t
    }
}
