//! Losses by name.

use xmem_graph::Loss;

/// A loss of the model's first result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossChoice {
    /// Cross entropy with classes as targets.
    CrossEntropy,
    /// Mean squared error.
    Mse,
    /// Binary cross entropy with logits.
    BinaryCrossEntropy,
    /// The sum of the result.
    Sum,
}

impl LossChoice {
    /// Every loss.
    pub const ALL: [Self; 4] = [Self::CrossEntropy, Self::Mse, Self::BinaryCrossEntropy, Self::Sum];

    /// The name on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CrossEntropy => "cross-entropy",
            Self::Mse => "mse",
            Self::BinaryCrossEntropy => "bce",
            Self::Sum => "sum",
        }
    }

    /// The loss of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|loss| loss.name() == name)
    }

    pub(crate) const fn loss(self) -> Loss {
        match self {
            Self::CrossEntropy => Loss::CrossEntropy,
            Self::Mse => Loss::Mse,
            Self::BinaryCrossEntropy => Loss::BinaryCrossEntropy,
            Self::Sum => Loss::Sum,
        }
    }
}
