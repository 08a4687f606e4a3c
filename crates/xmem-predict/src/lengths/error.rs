//! Recordings that do not show how memory depends on the length.

use super::Dimension;
use thiserror::Error;

/// The reason for which lengths cannot vary.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LengthsError {
    /// All iterations are alike.
    #[error(
        "all {iterations} recorded iterations have {} {length}, and lengths that vary need two: record them \
         with `xmem profile --vary {}=A,B --steps 4 -- COMMAND`, or let the script itself use two",
        dimension.words(), dimension.name()
    )]
    OneLength {
        /// The dimension.
        dimension: Dimension,
        /// Its extent.
        length: u64,
        /// The recorded iterations.
        iterations: usize,
    },
    /// The first one is unlike the others, and the last one does not show what happens to its blocks.
    #[error(
        "{iterations} iterations are recorded, and lengths that vary need three or more: record with \
         `xmem profile --steps 4`"
    )]
    TooFewIterations {
        /// The recorded iterations.
        iterations: usize,
    },
    /// No operator shows a shape with the dimension.
    #[error(
        "no operator of the recording shows the {}: it is read from the tokens of an embedding, else from \
         the first input of the model; record with `xmem profile`, or with record_shapes=True",
        dimension.words()
    )]
    Unknown {
        /// The dimension.
        dimension: Dimension,
    },
    /// Two iterations have few blocks in common.
    #[error(
        "the last two iterations have {matched} of {all} blocks in common, too few to tell how sizes depend \
         on the length: record more iterations with `xmem profile --steps 6`, of which the last two train"
    )]
    TooDifferent {
        /// Blocks of both.
        matched: usize,
        /// Blocks of the last one.
        all: usize,
    },
    /// CUDA graphs and `MemPool`.
    #[error(
        "the iterations use private memory pools (CUDA graphs, MemPool), whose sizes are captured and do not \
         vary with the length"
    )]
    PrivatePools,
    /// More requests than memory has room for.
    #[error(
        "{iterations} iterations of {steps} requests are more than {limit} in one run: choose fewer with \
         --iterations"
    )]
    TooLong {
        /// The requested iterations.
        iterations: usize,
        /// Requests of each.
        steps: usize,
        /// The limit.
        limit: usize,
    },
}
