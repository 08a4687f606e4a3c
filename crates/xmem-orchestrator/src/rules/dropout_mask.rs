//! `aten::dropout` in training: on the CPU noise in the input's type (saved for backward), then the product;
//! on CUDA `native_dropout` with a bool mask, one byte an element.

use crate::frame::call::Call;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::rule::Rule;
use xmem_analyzer::DType;
use xmem_types::{BlockId, Bytes};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "dropout-mask",
        summary: "dropout saves a bool mask (1 byte an element) instead of noise in the input's type",
        source: "aten/src/ATen/native/Dropout.cpp `is_fused_kernel_acceptable`; aten/src/ATen/native/cuda/Dropout.cu `native_dropout_cuda`",
        operators: &["aten::dropout"],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    match (noise(call), call.arguments().tensor(0)) {
        (Some((noise, size)), Some(input)) if input.bytes() == size.get() => {
            mask(call, noise, input.dtype)
        }
        // Without recorded shapes, two blocks of one size are noise and product, of 32-bit floats.
        (Some((noise, _)), None) => mask(call, noise, DType::F32),
        _ => Outcome::Unclaimed,
    }
}

fn mask(call: &mut Call<'_, '_, '_>, noise: BlockId, element: DType) -> Outcome {
    let size = call.edits.recorded_size(noise).get() / element.size();
    call.edits.resize(noise, Bytes(size));
    Outcome::Done
}

/// The block of the noise, and its size: the first of two blocks of one size.
fn noise(call: &Call<'_, '_, '_>) -> Option<(BlockId, Bytes)> {
    let size = |block: BlockId| call.edits.recorded_size(block);
    let blocks = call.blocks();
    let escaping: Vec<BlockId> = blocks.iter().copied().filter(|&b| call.escapes(b)).collect();
    let pair = escaping
        .iter()
        .enumerate()
        .find(|&(n, &noise)| escaping[n + 1..].iter().any(|&product| size(product) == size(noise)));
    let noise = match (pair, &escaping[..]) {
        (Some((_, &noise)), _) => noise,
        // Without autograd nothing keeps the noise. One block alone is the output of another variant.
        (None, &[product]) => {
            let mut before = blocks.iter().copied().take_while(|&b| b != product);
            before.find(|&b| size(b) == size(product))?
        }
        _ => return None,
    };
    Some((noise, size(noise)))
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
                shows: "training: the noise becomes a mask of one byte an element",
                script: dropout(),
                target: target(),
                requests: expect![[r#"
                    training: the noise becomes a mask of one byte an element
                    on  + noise 2048 activation dropout-mask
                    off + noise 8192 activation
                        + y 8192 activation
                        + gx 8192 gradient
                        - noise
                        - y
                        - gx
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "a single block (feature dropout): left alone",
                script: dropout_of_one_block(),
                target: target(),
                requests: expect![[r#"
                    a single block (feature dropout): left alone
                        + y 8192 activation
                        - y
                "#]],
            },
        ]
    }

    fn dropout() -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.op_seq(1, "aten::dropout", "f32[64,32] 0.1 True", |t| {
                t.makes("aten::empty_like", "f32[64,32] - - - - 0", "noise", 8192);
                t.op("aten::bernoulli_", "f32[64,32] 0.9 -", |_| ());
                t.op("aten::div_", "f32[64,32] 0.9", |_| ());
                t.makes_seq(1, "aten::mul", "f32[64,32] f32[64,32]", "y", 8192);
            });
            t.node(1, "MulBackward0", |t| {
                t.makes("aten::mul", "f32[64,32] f32[64,32]", "gx", 8192);
                t.free("noise");
            });
            t.free("y gx");
        });
        t
    }

    fn dropout_of_one_block() -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.op_seq(1, "aten::dropout", "f32[64,32] 0.0 True", |t| t.alloc("y", 8192));
            t.node(1, "MulBackward0", |_| ());
            t.free("y");
        });
        t
    }
}
