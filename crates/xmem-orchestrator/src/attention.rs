//! scaled_dot_product_attention: the kernel that CUDA takes instead of the CPU's.
//!
//! The CPU takes its flash kernel unless dropout is on; then it takes the math path, which keeps
//! the softmax result, the dropout mask and their product (three times batch x heads x length²).
//! CUDA's fused kernels keep the output and one number per row.

mod fused;
mod mask;
mod math;
mod select;
mod tape;

use crate::draft::Draft;
use crate::target::Target;
use fused::Fused;
use rustc_hash::FxHashMap;
use select::{Backend, Call};
use xmem_analyzer::Profile;
use xmem_types::OpId;

const CALL: &str = "aten::scaled_dot_product_attention";

/// What the CPU ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CpuPath {
    Flash,
    Math,
}

/// Backward nodes by the forward operator that made them.
pub(crate) type NodesOf = FxHashMap<OpId, Vec<OpId>>;

/// Turns each link around.
pub(crate) fn nodes_of(profile: &Profile) -> NodesOf {
    let mut nodes = NodesOf::default();
    for (node, forward) in profile.autograd.pairs() {
        nodes.entry(forward).or_default().push(node);
    }
    nodes
}

/// Lowers one call. Returns the backward nodes that it has replaced as a whole; none where the
/// call is left to the general rules.
pub(crate) fn lower(
    draft: &mut Draft<'_>,
    target: &Target,
    nodes_of: &NodesOf,
    op: OpId,
) -> Option<Vec<OpId>> {
    let profile = draft.profile;
    let inside = profile.tree.descendants(op);
    // Autocast calls the operator again within itself, with the cast inputs.
    if inside.iter().any(|&o| profile.op_name(o) == CALL) {
        return None;
    }
    let path = inside.iter().find_map(|&o| match profile.op_name(o) {
        "aten::_scaled_dot_product_flash_attention_for_cpu" => Some(CpuPath::Flash),
        "aten::_scaled_dot_product_attention_math" => Some(CpuPath::Math),
        _ => None,
    })?;
    let call = Call::read(profile.arguments(op))?;
    let fused = match select::backend(&call, target) {
        Backend::Flash => Some(Fused::Flash),
        Backend::Efficient => Some(Fused::Efficient),
        Backend::Cudnn => Some(Fused::Cudnn),
        Backend::Math => None,
    };
    let mut nodes: Vec<OpId> = std::iter::once(op)
        .chain(inside.iter().copied())
        .filter_map(|o| nodes_of.get(&o))
        .flatten()
        .copied()
        .collect();
    nodes.sort_unstable_by_key(|&n| (profile.op_start(n), n));
    match (path, fused) {
        (CpuPath::Flash, Some(fused)) => {
            fused::from_flash(draft, &call, fused, op, &nodes);
            Some(Vec::new())
        }
        (CpuPath::Flash, None) => math::from_flash(draft, &call, op),
        (CpuPath::Math, Some(fused)) => {
            fused::from_math(draft, &call, fused, op, &nodes).then_some(nodes)
        }
        // What the CPU ran, operator by operator, is what CUDA runs.
        (CpuPath::Math, None) => None,
    }
}
