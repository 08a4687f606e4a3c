//! Every rule, one file each.
//!
//! A rule is registered by one line in [`register!`]. The order is that of reports; the order in which
//! rules are applied is that of [`crate::passes`] and, for rules about operators, of the program.

use crate::frame::definition::RuleDefinition;
use crate::rule::Rule;

/// Declares the modules of rules and lists their `RULE`s.
macro_rules! register {
    ($($file:ident,)*) => {
        $(pub(crate) mod $file;)*

        /// The definition of every rule, in the order of reports.
        pub(crate) static DEFINITIONS: &[&RuleDefinition] = &[$(&$file::RULE),*];

        /// Every rule, in the order of reports.
        pub(crate) static RULES: &[&Rule] = &[$(&$file::RULE.rule),*];

        /// The source of each rule, by the name of its module.
        #[cfg(test)]
        pub(crate) const SOURCES: &[(&str, &str)] =
            &[$((stringify!($file), include_str!(concat!("rules/", stringify!($file), ".rs")))),*];

        /// The cases of each rule, by its name.
        #[cfg(test)]
        pub(crate) fn cases() -> Vec<(&'static str, Vec<crate::testing::Case>)> {
            vec![$(($file::RULE.name, $file::tests::cases())),*]
        }
    };
}

register! {
    host_only,
    host_scalars,
    promoted_operands,
    model_placement,
    batch_transfer,
    host_copy,
    preexisting,
    leaf_scratch,
    dropout_mask,
    cublas_workspace,
    cublaslt_workspace,
    product_operands,
    cudnn_convolution,
    reduction_buffer,
    attention,
    half_softmax,
    softmax_backward,
    embedding_backward,
    batch_norm,
    group_norm,
    layer_norm_statistics,
    rms_norm,
    index_backward,
    interpolation,
    sort_buffers,
    loss_buffers,
    cdist_backward,
    gru_cell,
    lstm_cell,
    cudnn_recurrent,
    autocast_loss,
    autocast_wide,
    bitsandbytes,
    gradient_norm,
    optimizer_step,
    zero_grad,
    set_to_none,
}

/// Every rule, in the order of reports.
#[must_use]
pub fn rules() -> &'static [&'static Rule] {
    RULES
}

#[cfg(test)]
mod documentation;
#[cfg(test)]
mod tests;
