//! The layers whose inputs are moved: equal sets for all policies, or those of each paper.

use crate::graph::LayerKind;

/// The layers whose inputs the policies of papers move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moves {
    /// The same ones for every policy but `vdnn-conv`: convolutions, pooling, activation and normalization, and in
    /// Transformers attention and MLP. Dymem (HPDC 2020, figure 12) attributes the difference between it and vDNN to
    /// barriers and fragmentation alone, which holds if both move the same tensors.
    #[default]
    Same,
    /// Those that the paper of each policy names.
    Paper,
}

impl Moves {
    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Paper => "paper",
        }
    }

    /// True if the inputs of layers of a kind are moved, by a policy whose paper names `in_paper`.
    pub(crate) fn includes(self, kind: LayerKind, in_paper: &[LayerKind]) -> bool {
        use LayerKind::{Act, Attention, Conv, Mlp, Norm, Pool};
        match self {
            Self::Same => matches!(kind, Conv | Pool | Act | Norm | Attention | Mlp),
            Self::Paper => in_paper.contains(&kind),
        }
    }
}
