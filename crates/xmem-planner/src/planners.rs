//! The planners, one file each: an [`Instance`](crate::instance::Instance) goes in, offsets come out.

pub(crate) mod auto;
pub(crate) mod bestfit;
pub(crate) mod breadth;
pub(crate) mod bump;
mod conflicts;
pub(crate) mod exact;
pub(crate) mod flow;
pub(crate) mod gergov;
pub(crate) mod greedy;
pub(crate) mod ils;
#[cfg(feature = "mip")]
pub(crate) mod mip;
pub(crate) mod multi;
mod peaks;
pub(crate) mod shelf;
pub(crate) mod skyline;

pub use greedy::GreedyOrder;
pub use shelf::Fit;

/// Offsets, by the number of the block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// The offsets.
    pub(crate) offsets: Vec<u64>,
    /// True if a complete search found no lower peak.
    pub(crate) searched: bool,
}

impl Placed {
    /// Offsets about which nothing is proved.
    pub(crate) const fn heuristic(offsets: Vec<u64>) -> Self {
        Self { offsets, searched: false }
    }
}
