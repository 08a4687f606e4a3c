//! `scaled_dot_product_attention` takes the kernel that CUDA would take: flash, memory-efficient, cuDNN's or
//! the math path.
//!
//! The CPU takes its flash kernel unless dropout is on; then it takes the math path, which keeps the softmax
//! result, the dropout mask and their product (three times batch x heads x length²). CUDA's fused kernels keep
//! the output and one number per row. Where CUDA takes the math path and the CPU did, too, the operators
//! inside are what CUDA runs.

mod efficient;
mod fused;
mod kernel;
mod mask;
mod math;
mod output;
mod select;
#[cfg(test)]
pub(super) mod tests;

use crate::frame::call::Call;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::rule::Rule;
use kernel::Fused;
use select::AttentionCall;

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "attention",
        summary: "scaled_dot_product_attention takes the kernel that CUDA would take (flash, memory-efficient, cuDNN, math)",
        source: "aten/src/ATen/native/transformers/cuda/sdp_utils.cpp `select_sdp_backend`, attention.cu, attention_backward.cu, mem_eff_attention/kernel_forward.h, kernel_backward.h; aten/src/ATen/native/transformers/attention.cpp `_scaled_dot_product_attention_math`, `preprocess_mask`",
        operators: &["aten::scaled_dot_product_attention"],
        covers: &[
            "aten::_scaled_dot_product_attention_math",
            "aten::_scaled_dot_product_flash_attention_for_cpu",
            "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
        ],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

/// The kernel that the CPU ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CpuPath {
    Flash,
    Math,
}

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    // Autocast calls the operator again within itself, with the cast inputs.
    if call.calls_itself() {
        return Outcome::Unclaimed;
    }
    let profile = call.profile();
    let path = call.inside().iter().find_map(|&o| match profile.op_name(o) {
        "aten::_scaled_dot_product_flash_attention_for_cpu" => Some(CpuPath::Flash),
        "aten::_scaled_dot_product_attention_math" => Some(CpuPath::Math),
        _ => None,
    });
    let (Some(path), Some(attention)) = (path, AttentionCall::read(call.arguments())) else {
        return Outcome::Unclaimed;
    };
    let target = call.target();
    let backend = select::backend(&attention, target);
    let fused = Fused::of(backend, &attention, target.device.compute_capability);
    let (op, nodes, edits) = (call.op, call.nodes(), &mut call.edits);
    match (path, fused) {
        (CpuPath::Flash, Some(fused)) => {
            fused::from_flash(edits, &attention, fused, op, &nodes);
            Outcome::ReplacedInside
        }
        (CpuPath::Flash, None) => match math::from_flash(edits, &attention, op) {
            Some(nodes) => Outcome::ReplacedNodes(nodes),
            None => Outcome::Unclaimed,
        },
        (CpuPath::Math, Some(fused)) => {
            if fused::from_math(edits, &attention, fused, op, &nodes) {
                Outcome::ReplacedNodes(nodes)
            } else {
                Outcome::Unclaimed
            }
        }
        // The operators that the CPU ran are those that CUDA runs.
        (CpuPath::Math, None) => Outcome::Unclaimed,
    }
}
