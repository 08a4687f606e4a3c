//! Scratch that a CPU kernel allocates and frees within one leaf operator is left out, unless another
//! rule has decided about it. Operators that are the same code on every device keep theirs.

use crate::coverage;
use crate::frame::context::Context;
use crate::frame::conversions::Owners;
use crate::frame::definition::{Applies, RuleDefinition};
use crate::frame::draft::Edits;
use crate::rule::Rule;

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "leaf-scratch",
        summary: "scratch that a CPU kernel allocates and frees within one leaf operator is left out",
        source: "c10/core/CPUAllocator.cpp; aten/src/ATen/native/mkldnn/IDeepRegistration.cpp",
        operators: &[],
        covers: &[],
    },
    applies: Applies::AsPass(drop_scratch),
};

/// Operators that are the same code on every device: the memory that they hold themselves is no scratch
/// of a CPU kernel (aten/src/ATen/native/Loss.cpp, Im2Col.cpp; recorded with PyTorch 2.11's CUDA build,
/// kernels stubbed).
const COMPOSITES: &[&str] = &[
    "aten::abs",
    "aten::binary_cross_entropy_with_logits",
    "aten::cosine_embedding_loss",
    "aten::hinge_embedding_loss",
    "aten::huber_loss",
    "aten::im2col",
];

fn drop_scratch(cx: &Context<'_>, edits: &mut Edits<'_, '_>) {
    let owners = Owners::of(cx.profile);
    for (id, _) in edits.blocks() {
        if edits.item(id).is_settled() || !edits.live(id) {
            continue;
        }
        let Some(owner) = owners.owner(id) else { continue };
        let name = cx.profile.op_name(owner);
        if COMPOSITES.contains(&name) || coverage::is_autograd(name) {
            continue;
        }
        if !edits.escapes(id, owner) {
            edits.drop_block(id);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::testing::{Case, Script, target};
    use expect_test::expect;

    pub(crate) fn cases() -> Vec<Case> {
        vec![Case {
            rule: RULE.name,
            shows: "a kernel's scratch goes, its outputs stay; what a factory makes is its caller's",
            script: scratch(),
            target: target(),
            requests: expect![[r#"
                    a kernel's scratch goes, its outputs stay; what a factory makes is its caller's
                        + y 8192 activation
                        + mean 256 activation
                        + rstd 256 activation
                        + dx 8192 gradient
                    off + partial_sums 512 temporary
                        + dgamma 128 gradient
                    off - partial_sums
                        - y
                        - mean
                        - rstd
                        - dx
                        - dgamma
                "#]],
        }]
    }

    fn scratch() -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.op_seq(1, "aten::layer_norm", "f32[64,32] (32) f32[32] f32[32] 1e-05 True", |t| {
                t.op_seq(
                    1,
                    "aten::native_layer_norm",
                    "f32[64,32] (32) f32[32] f32[32] 1e-05",
                    |t| {
                        t.makes("aten::empty", "(64,32)", "y", 8192);
                        t.makes("aten::empty", "(64)", "mean", 256);
                        t.makes("aten::empty", "(64)", "rstd", 256);
                    },
                );
            });
            t.node(1, "NativeLayerNormBackward0", |t| {
                t.op("aten::native_layer_norm_backward", "f32[64,32] f32[64,32] (32)", |t| {
                    t.makes("aten::empty", "(64,32)", "dx", 8192);
                    t.op("aten::zeros", "(4,32)", |t| {
                        t.makes("aten::empty", "(4,32)", "partial_sums", 512);
                    });
                    t.alloc("dgamma", 128);
                    t.free("partial_sums");
                });
                t.free("y mean rstd");
            });
            t.free("dx dgamma");
        });
        t
    }
}
