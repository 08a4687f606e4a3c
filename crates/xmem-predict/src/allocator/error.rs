//! Settings that cannot be simulated.

use super::{AllocatorKind, Origin};
use thiserror::Error;
use xmem_simulator::{ConfError, oldest_release};
use xmem_types::TorchVersion;

/// Why there is no allocator to simulate.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum AllocatorError {
    /// The release is older than all that are known.
    #[error(
        "the allocator of PyTorch {release} is not known here: the oldest known release is {}",
        oldest_release()
    )]
    TooOld {
        /// The release that was asked for.
        release: TorchVersion,
    },
    /// The release would not accept the options, or they are not simulated.
    #[error("the allocator options `{conf}` cannot be used with PyTorch {release}{}", release_from.aside())]
    Conf {
        /// The options as written.
        conf: String,
        /// Who gave them.
        from: Origin,
        /// The release that they are for.
        release: TorchVersion,
        /// Who chose the release.
        release_from: Origin,
        /// What is wrong with them.
        source: ConfError,
    },
    /// The options choose one allocator, and the caller another.
    #[error("{} was asked for, but `{conf}` chooses cudaMallocAsync: leave one of them out", kind.name())]
    Contradiction {
        /// What was asked for.
        kind: AllocatorKind,
        /// The options as written.
        conf: String,
    },
    /// TensorFlow's allocator has none of PyTorch's options.
    #[error(
        "TensorFlow's allocator takes none of PyTorch's options, but `{conf}` was given: leave one \
         of them out"
    )]
    ConfForTensorFlow {
        /// The options as written.
        conf: String,
    },
    /// More than all memory, less than none, or no number.
    #[error("a memory fraction of {fraction} makes no sense: it is a number from 0 to 1")]
    Fraction {
        /// As given.
        fraction: f64,
    },
}

impl Origin {
    /// Where the release comes from, where the reader could not know.
    fn aside(self) -> &'static str {
        match self {
            Self::Given => "",
            Self::Input => ", which the input says it ran with",
            Self::Default => ", the release assumed",
        }
    }
}
