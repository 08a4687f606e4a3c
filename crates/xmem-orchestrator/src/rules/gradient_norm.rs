//! The norms of all gradients at once (`_foreach_norm(tensors, ord)`), as `torch.nn.utils.clip_grad_norm_`
//! measures them. CUDA has one kernel for the norms 1, 2 and infinity; others go tensor by tensor, as on the
//! CPU. The kernel has a partial result for each chunk of the largest tensor, for every tensor. The partial
//! results come before the norms and go when the kernel has been launched; the norms stay as the CPU makes
//! them, one after the other.

use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::frame::draft::Addition;
use crate::rule::Rule;
use xmem_analyzer::{DType, Role, TensorArg};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "gradient-norm",
        summary: "the norms of all gradients are taken by one kernel, with partial results for each chunk",
        source: "aten/src/ATen/native/cuda/ForeachReduceOp.cu `foreach_tensor_norm_cuda`; torch/nn/utils/clip_grad.py `_get_total_norm`",
        operators: &["aten::_foreach_norm"],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

/// The elements of a tensor that one thread block handles
/// (aten/src/ATen/native/cuda/MultiTensorApply.cuh, `kChunkSize`).
const CHUNK: u64 = 65536;

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    if !has_kernel(call) {
        return Outcome::Unclaimed;
    }
    let profile = call.profile();
    let tensors: Vec<&TensorArg> = profile
        .tree
        .children(call.op)
        .filter(|&o| profile.op_name(o) == "aten::linalg_vector_norm")
        .filter_map(|o| profile.arguments(o).tensor(0))
        .collect();
    if let Some(first) = tensors.first() {
        let chunks = tensors.iter().map(|t| Count::elements(t).div_ceil(CHUNK)).max();
        let partial = if first.dtype == DType::F64 { 8 } else { 4 };
        let size = chunks.unwrap_or_default() * tensors.len() as u64 * partial;
        let op = call.op;
        let (alloc, free) = (call.edits.before(op), call.edits.at_end(op));
        call.edits.add(Addition { size: size.into(), alloc, free, role: Role::Workspace, op });
    }
    Outcome::ReplacedInside
}

/// Returns whether CUDA takes the norms with one kernel (ForeachReduceOp.cu, `foreach_tensor_norm_cuda`).
fn has_kernel(call: &Call<'_, '_, '_>) -> bool {
    let order = call.arguments().value(1).and_then(|v| v.parse::<f64>().ok());
    order.is_none_or(|order| order == 1.0 || order == 2.0 || order == f64::INFINITY)
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
                shows: "partial results for the chunks of the largest gradient, for each gradient",
                script: norms("2."),
                target: target(),
                requests: expect![[r#"
                    partial results for the chunks of the largest gradient, for each gradient
                    on  + gradient-norm#1 48 workspace
                        + of_w 4 temporary
                    off + reduction-buffer#1 172 workspace
                    off + reduction-buffer#2 4 workspace
                    off - reduction-buffer#1
                    off - reduction-buffer#2
                        + of_b 4 temporary
                    on  - gradient-norm#1
                        + norms 8 temporary
                        - of_b
                        - of_w
                        - norms
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "norm 3: tensor by tensor",
                script: norms("3."),
                target: target(),
                requests: expect![[r#"
                    norm 3: tensor by tensor
                        + of_w 4 temporary
                        + reduction-buffer#1 172 workspace
                        + reduction-buffer#2 4 workspace
                        - reduction-buffer#1
                        - reduction-buffer#2
                        + of_b 4 temporary
                        + norms 8 temporary
                        - of_b
                        - of_w
                        - norms
                "#]],
            },
        ]
    }

    /// Gradients of 350000 and 500 elements: six chunks of 65536 and one, as recorded with PyTorch 2.11's
    /// CUDA build, kernels stubbed (with eight gradients, 192 bytes).
    fn norms(order: &str) -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.op("aten::_foreach_norm", &format!("- {order} -"), |t| {
                for (shape, name) in [("f32[500,700]", "of_w"), ("f32[500]", "of_b")] {
                    let arguments = format!("{shape} {order} - False -");
                    t.makes("aten::linalg_vector_norm", &arguments, name, 4);
                }
            });
            t.makes("aten::stack", "- 0", "norms", 8);
            t.free("of_b of_w norms");
        });
        t
    }
}
