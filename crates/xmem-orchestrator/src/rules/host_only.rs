//! Memory that never reaches the GPU is left out: temporaries of initialization, data on the host, step
//! counters of optimizers, and the state of the CPU's random numbers that checkpointing keeps for each
//! segment.

use crate::frame::context::Context;
use crate::frame::definition::{Applies, RuleDefinition};
use crate::frame::draft::Edits;
use crate::rule::Rule;
use xmem_analyzer::Residency;

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "host-only",
        summary: "memory that never reaches the GPU is left out: initialization temporaries, data on the host, optimizer step counters",
        source: "torch/nn/modules/module.py `Module.to`; torch/optim/optimizer.py `_get_scalar_dtype`; xMem paper, section 3 (orchestrator)",
        operators: &[],
        covers: &[],
    },
    applies: Applies::AsPass(drop_host_memory),
};

/// Bytes of the state of the CPU's random numbers, as `torch.get_rng_state` returns it
/// (aten/src/ATen/CPUGeneratorImpl.cpp, `CPUGeneratorImplState`).
const GENERATOR_STATE: u64 = 5056;

fn drop_host_memory(cx: &Context<'_>, edits: &mut Edits<'_, '_>) {
    let profile = cx.profile;
    for (id, block) in edits.blocks() {
        let by_python = || block.op.is_none_or(|o| !profile.op_name(o).starts_with("aten::"));
        let generator = block.size.get() == GENERATOR_STATE && by_python();
        if block.residency == Residency::HostOnly || generator {
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
            shows: "a random initialization, data that stays on the host, a step counter",
            script: host_memory(),
            target: target(),
            requests: expect![[r#"
                    a random initialization, data that stays on the host, a step counter
                    off + noise 4096 temporary
                        + w 4096 parameter model-placement
                    off - noise
                    off + sampled 512 temporary
                        + x0 8192 input
                    off - sampled
                        + y 8192 activation
                        + seed 4 temporary
                        + gw0 4096 gradient
                        - y
                        - seed
                        - x0
                    off + step 4 optimizer_state
                        - gw0
                    off + sampled 512 temporary
                        + x1 8192 input
                    off - sampled
                        + y 8192 activation
                        + seed 4 temporary
                        + gw1 4096 gradient
                        - y
                        - seed
                        - x1
                        - gw1
                "#]],
        }]
    }

    fn host_memory() -> Script {
        let mut t = Script::default();
        t.makes("aten::randn", "(32,32)", "noise", 4096);
        t.parameter("w", &[32, 32]);
        t.free("noise");
        for i in 0..2 {
            t.iteration(i, |t| {
                t.makes("aten::randint", "0 10 (64) - - - False", "sampled", 512);
                t.makes("aten::index", "f32[1000,32] -", &format!("x{i}"), 8192);
                t.free("sampled");
                t.makes_seq(i, "aten::mul", "f32[64,32] f32[32,32]", "y", 8192);
                t.makes("aten::ones_like", "f32[] - - - False 1", "seed", 4);
                t.node(i, "MulBackward0", |t| {
                    t.makes("aten::mul", "f32[64,32] f32[64,32]", &format!("gw{i}"), 4096);
                });
                t.accumulate("f32[32,32]");
                t.free(&format!("y seed x{i}"));
                t.mark("Optimizer.step#SGD.step", |t| {
                    if i == 0 {
                        t.counter("step");
                    }
                    t.op("aten::add_", "f32[32,32] f32[32,32] -0.1", |_| ());
                });
                t.mark("Optimizer.zero_grad#SGD.zero_grad", |t| t.free(&format!("gw{i}")));
            });
        }
        t
    }
}
