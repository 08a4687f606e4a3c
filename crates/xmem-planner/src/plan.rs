//! Plans, and what is known about them.

use crate::list::BlockList;
use crate::planner::Planner;
use std::time::Duration;
use xmem_types::Bytes;

/// An offset for each block of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    offsets: Vec<Bytes>,
    peak: Bytes,
}

/// A plan that was checked, with its planner's word on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The planner.
    pub planner: Planner,
    /// The plan.
    pub plan: Plan,
    /// The most bytes that are live at once.
    pub lower_bound: Bytes,
    /// Why no plan has a lower peak, if that is known.
    pub proof: Option<Proof>,
    /// Steps of a search, or passes of a heuristic that has several; 0 for planners that have neither.
    pub nodes: u64,
    /// The time that it took.
    pub time: Duration,
}

/// The reason why no plan has a lower peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The peak is the lower bound.
    LowerBound,
    /// A complete search found no lower one.
    Search,
}

impl Plan {
    /// The plan of `list` with these offsets.
    ///
    /// # Panics
    /// If there is not one offset for each block.
    #[must_use]
    pub fn new(list: &BlockList, offsets: Vec<Bytes>) -> Self {
        assert_eq!(offsets.len(), list.len(), "one offset for each block");
        let ends = list.blocks().iter().zip(&offsets).map(|(block, &offset)| offset + block.size);
        let peak = ends.max().unwrap_or_default();
        Self { offsets, peak }
    }

    /// The offsets, by the id of the block.
    #[must_use]
    pub fn offsets(&self) -> &[Bytes] {
        &self.offsets
    }

    /// The end of the highest block: the memory that the plan needs.
    #[must_use]
    pub const fn peak(&self) -> Bytes {
        self.peak
    }
}

impl Planned {
    /// The peak in units of the lower bound; 1 if there are no bytes.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        match self.lower_bound {
            Bytes::ZERO => 1.0,
            bound => self.plan.peak().get() as f64 / bound.get() as f64,
        }
    }

    /// True if no plan has a lower peak.
    #[must_use]
    pub const fn is_optimal(&self) -> bool {
        self.proof.is_some()
    }
}
