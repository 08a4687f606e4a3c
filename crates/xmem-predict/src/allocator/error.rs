//! Settings that cannot be simulated.

use super::{AllocatorKind, Origin};
use thiserror::Error;
use xmem_simulator::{ConfError, oldest_release};
use xmem_types::TorchVersion;

/// The reason why no allocator can be simulated.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum AllocatorError {
    /// The release is older than all that are known.
    #[error(
        "the allocator of PyTorch {release} is not simulated: the oldest known release is {}",
        oldest_release()
    )]
    TooOld {
        /// The requested release.
        release: TorchVersion,
    },
    /// The release would not accept the options, or they are not simulated.
    #[error("the allocator options `{conf}` cannot be used with PyTorch {release}{}", release_from.release_origin())]
    Conf {
        /// The options as written.
        conf: String,
        /// Who gave them.
        from: Origin,
        /// The release that they are for.
        release: TorchVersion,
        /// Who chose the release.
        release_from: Origin,
        /// The problem with them.
        source: ConfError,
    },
    /// The options choose one allocator, and the caller another.
    #[error("{} was requested, but `{conf}` chooses cudaMallocAsync: remove one of them", kind.name())]
    Contradiction {
        /// The allocator that was requested.
        kind: AllocatorKind,
        /// The options as written.
        conf: String,
    },
    /// TensorFlow's allocator has none of PyTorch's options.
    #[error(
        "TensorFlow's allocator does not accept PyTorch's options, but `{conf}` was given: remove \
         one of them"
    )]
    ConfForTensorFlow {
        /// The options as written.
        conf: String,
    },
    /// More than all memory, less than none, or no number.
    #[error("a memory fraction of {fraction} is not valid: give a number from 0 to 1")]
    Fraction {
        /// As given.
        fraction: f64,
    },
}

impl Origin {
    /// The origin of the release, where the reader could not know it.
    fn release_origin(self) -> &'static str {
        match self {
            Self::Given => "",
            Self::Input => ", the release stated by the input",
            Self::Default => ", the release assumed",
        }
    }
}
