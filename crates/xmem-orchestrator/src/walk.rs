//! One pass over the operators in program order; each operator that a rule knows is handed to it.

use crate::attention::NodesOf;
use crate::convolution::Convolutions;
use crate::draft::Draft;
use crate::gemm::Workspaces;
use crate::kernels::{self, Kernel};
use crate::optimizer::Known;
use crate::rules::name;
use crate::target::Target;
use crate::{
    attention, autocast, cell, clipping, convolution, dropout, gemm, optimizer, recurrent,
    reduction, rms_norm, softmax,
};
use rustc_hash::{FxHashMap, FxHashSet};
use xmem_convolutions::FittedModel;
use xmem_types::{Bytes, Diagnostics, Location, OpId, Severity, Sym};

/// From here on a workspace's uncertainty is worth a note.
const NOTEWORTHY: Bytes = Bytes::mib(64);

/// What a name stands for.
#[derive(Clone, Copy)]
enum Kind {
    Product,
    Dropout,
    CrossEntropy,
    Reduction,
    GradientNorms,
    Attention,
    Convolution,
    GruCell,
    Recurrent,
    ConvolutionBackward,
    Kernel(&'static Kernel),
    RmsNorm,
    SoftmaxBackward,
}

/// Applies every rule that belongs to operators.
pub(crate) fn operators(
    draft: &mut Draft<'_>,
    target: &Target,
    nodes_of: &NodesOf,
    notes: &mut Diagnostics,
) {
    let profile = draft.profile;
    let kinds = kinds(draft);
    let mut have = Workspaces::default();
    let mut layers = recurrent::Made::default();
    let mut met = Convolutions::default();
    let mut optimizers = optimizer::Optimizers::of(profile);
    // Backward nodes whose window an earlier rule has replaced as a whole.
    let mut replaced: FxHashSet<OpId> = FxHashSet::default();
    let enabled = |rule: &str| !target.disabled.contains(rule);
    if enabled(name::AUTOCAST_WIDE) {
        autocast::widen(draft, nodes_of);
    }
    let order = profile.tree.preorder();
    let mut at = 0;
    while let Some(&op) = order.get(at) {
        at += 1;
        if profile.is_annotation(op) {
            if optimizer::is_step(profile.op_name(op)) && enabled(name::OPTIMIZER) {
                let known = optimizer::step(draft, target, &mut optimizers, op);
                if known == Known::No {
                    let at = Some(Location::Op(op));
                    notes.report("optimizer-as-recorded", Severity::Warning, at, || {
                        format!(
                            "{} has no rule: its step is kept as the CPU ran it. If it inherits \
                             the loop of a torch.optim class, CUDA runs that over whole lists and \
                             may take a copy of all parameters more",
                            profile.op_name(op)
                        )
                    });
                }
            }
            continue;
        }
        if replaced.contains(&op) {
            at += profile.tree.descendants(op).len();
            continue;
        }
        let Some(&kind) = kinds.get(&profile.op_symbol(op)) else { continue };
        match kind {
            Kind::Product => {
                let in_backward = profile.autograd.node_of(op).is_some();
                gemm::product(draft, target, &mut have, op, in_backward);
            }
            Kind::CrossEntropy if enabled(name::AUTOCAST_LOSS) => {
                autocast::cross_entropy(draft, nodes_of, op);
            }
            Kind::Dropout if enabled(name::DROPOUT) => dropout::dropout(draft, op),
            Kind::GradientNorms
                if enabled(name::GRADIENT_NORM) && clipping::has_kernel(profile, op) =>
            {
                clipping::norms(draft, op);
                at += profile.tree.descendants(op).len();
            }
            Kind::Reduction if enabled(name::REDUCTION) => {
                reduction::reduce(draft, target, op);
                // The CPU's mean is a sum and a division; CUDA's is one kernel.
                at += profile.tree.descendants(op).len();
            }
            Kind::Attention if enabled(name::ATTENTION) => {
                if let Some(nodes) = attention::lower(draft, target, nodes_of, op) {
                    replaced.extend(nodes);
                    at += profile.tree.descendants(op).len();
                }
            }
            Kind::GruCell if enabled(name::GRU_CELL) => cell::gru(draft, op),
            Kind::Recurrent if enabled(name::RECURRENT) => {
                match recurrent::lower(draft, target, nodes_of, &mut layers, op) {
                    Some(nodes) => {
                        replaced.extend(nodes);
                        at += profile.tree.descendants(op).len();
                    }
                    None => notes.report(
                        "recurrent-as-recorded",
                        Severity::Warning,
                        Some(Location::Op(op)),
                        || {
                            format!(
                                "{} runs through cuDNN on CUDA, but its shapes were not recorded: its \
                                 memory is kept as the CPU ran it",
                                profile.op_name(op)
                            )
                        },
                    ),
                }
            }
            Kind::Convolution if enabled(name::CUDNN_CONV) => {
                convolution::forward(draft, target, op, &mut met);
            }
            Kind::ConvolutionBackward if enabled(name::CUDNN_CONV) => {
                convolution::backward(draft, target, op, &mut met);
            }
            Kind::Kernel(kernel) if enabled(kernel.rule) => {
                let inside = profile.tree.descendants(op);
                // Autocast and overloads call the operator again within itself: that call counts.
                if !inside.iter().any(|&o| profile.op_symbol(o) == profile.op_symbol(op)) {
                    (kernel.lower)(draft, target, op);
                    at += inside.len();
                }
            }
            Kind::RmsNorm if enabled(name::RMS_NORM) => {
                replaced.extend(rms_norm::fuse(draft, nodes_of, op));
                at += profile.tree.descendants(op).len();
            }
            Kind::SoftmaxBackward if enabled(name::SOFTMAX_BACKWARD) => {
                softmax::backward(draft, op);
            }
            _ => {}
        }
    }
    if let Some(complaint) = target.convolutions.complaint() {
        notes.report("cudnn-not-asked", Severity::Warning, None, || {
            format!("{complaint}; {} answers in its place", FittedModel::NAME)
        });
    }
    if met.more >= NOTEWORTHY {
        notes.report_many("cudnn-workspace-uncertain", Severity::Note, None, met.doubtful, || {
            format!(
                "the workspaces of some convolutions are estimated from cuDNN's answers for other \
                 shapes; one of them may take up to {} more than assumed",
                met.more
            )
        });
    }
}

fn kinds(draft: &Draft<'_>) -> FxHashMap<Sym, Kind> {
    let mut kinds = FxHashMap::default();
    for (sym, text) in draft.profile.symbols() {
        let kind = if gemm::PRODUCTS.contains(&text) {
            Kind::Product
        } else if reduction::REDUCTIONS.contains(&text) {
            Kind::Reduction
        } else if text == cell::GRU_CELL {
            Kind::GruCell
        } else if recurrent::LAYERS.contains(&text) {
            Kind::Recurrent
        } else if let Some(kernel) = kernels::find(text) {
            Kind::Kernel(kernel)
        } else {
            match text {
                "aten::_foreach_norm" => Kind::GradientNorms,
                "aten::dropout" => Kind::Dropout,
                "aten::cross_entropy_loss" => Kind::CrossEntropy,
                "aten::scaled_dot_product_attention" => Kind::Attention,
                "aten::_convolution" => Kind::Convolution,
                "aten::convolution_backward" => Kind::ConvolutionBackward,
                "aten::_fused_rms_norm" => Kind::RmsNorm,
                "aten::_softmax_backward_data" => Kind::SoftmaxBackward,
                _ => continue,
            }
        };
        kinds.insert(sym, kind);
    }
    kinds
}
