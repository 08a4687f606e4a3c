//! Operators whose CUDA kernels ask for other blocks than the CPU's: one row an operator.

use crate::draft::Draft;
use crate::rules::name;
use crate::target::Target;
use crate::{distance, embedding, indexing, losses, normalisation, sorting};
use xmem_types::OpId;

/// How one operator is lowered.
#[derive(Clone, Copy)]
pub(crate) struct Kernel {
    /// The operator, as the profiler calls it.
    pub(crate) op: &'static str,
    /// The rule that it belongs to.
    pub(crate) rule: &'static str,
    /// Puts in what CUDA asks for; operators within it are not looked at again.
    pub(crate) lower: fn(&mut Draft<'_>, &Target, OpId),
}

const fn row(
    op: &'static str,
    rule: &'static str,
    lower: fn(&mut Draft<'_>, &Target, OpId),
) -> Kernel {
    Kernel { op, rule, lower }
}

/// Every operator of the kind, by name.
pub(crate) const KERNELS: &[Kernel] = &[
    row("aten::_cdist_backward", name::CDIST, distance::cdist_backward),
    row("aten::_ctc_loss", name::LOSS_BUFFERS, losses::ctc),
    row("aten::_ctc_loss_backward", name::LOSS_BUFFERS, losses::ctc_backward),
    row("aten::_embedding_bag", name::EMBEDDING, embedding::bag),
    row("aten::_embedding_bag_backward", name::EMBEDDING, embedding::bag_backward),
    row("aten::_index_put_impl_", name::INDEX_BACKWARD, indexing::accumulate),
    row("aten::embedding_dense_backward", name::EMBEDDING, embedding::backward),
    row("aten::embedding_renorm_", name::EMBEDDING, embedding::renorm),
    row("aten::kthvalue", name::SORT, sorting::selection),
    row("aten::log_sigmoid_forward", name::LOSS_BUFFERS, losses::log_sigmoid),
    row("aten::median", name::SORT, sorting::median),
    row("aten::mse_loss", name::LOSS_BUFFERS, losses::reduced),
    row("aten::native_batch_norm", name::BATCH_NORM, normalisation::batch),
    row("aten::native_batch_norm_backward", name::BATCH_NORM, normalisation::batch_backward),
    row("aten::native_group_norm", name::GROUP_NORM, normalisation::group),
    row("aten::native_group_norm_backward", name::GROUP_NORM, normalisation::group_backward),
    row("aten::native_layer_norm", name::LAYER_NORM, normalisation::layer),
    row("aten::smooth_l1_loss", name::LOSS_BUFFERS, losses::reduced),
    row("aten::sort", name::SORT, sorting::sort),
    row("aten::topk", name::SORT, sorting::topk),
];

/// The row of the operator `name`, if there is one.
pub(crate) fn find(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|k| k.op == name)
}
