//! The reasons why a planner gives no plan.

use crate::check::Violation;
use crate::planner::Planner;
use thiserror::Error;

/// The reason why a planner gives no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// The list is too long for the planner.
    #[error(
        "{planner} takes at most {most} blocks, and the list has {blocks}: use another planner, as auto{}",
        or_highs(*.planner, *.blocks)
    )]
    TooManyBlocks {
        /// The planner.
        planner: Planner,
        /// The blocks that it takes.
        most: usize,
        /// The blocks of the list.
        blocks: usize,
    },
    /// It found none within its limits.
    #[error(
        "{planner} found no plan within its limits: give it more time, or use another planner, as auto"
    )]
    NotFound {
        /// The planner.
        planner: Planner,
    },
    /// It needs to know the operators.
    #[error("{planner} needs the operator of each block, which the list does not have")]
    NoOperators {
        /// The planner.
        planner: Planner,
    },
    /// The plan does not pass the check.
    #[error("the plan of {planner} is wrong")]
    Wrong {
        /// The planner.
        planner: Planner,
        /// The check's finding.
        #[source]
        violation: Violation,
    },
}

/// How a list that is too long for microlp can be planned by `mip` all the same.
#[cfg(all(feature = "mip", not(feature = "highs")))]
fn or_highs(planner: Planner, blocks: usize) -> &'static str {
    use crate::planners::mip::MAX_BLOCKS_OF_HIGHS;
    if planner == Planner::Mip && blocks <= MAX_BLOCKS_OF_HIGHS {
        ", or xmem built with the feature highs (docs/planning.md)"
    } else {
        ""
    }
}

#[cfg(not(all(feature = "mip", not(feature = "highs"))))]
const fn or_highs(_: Planner, _: usize) -> &'static str {
    ""
}
