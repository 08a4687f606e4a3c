//! What a policy does with a training step, as the event loop reads it.

use crate::budget::Budget;
use crate::graph::Graph;
use crate::host_update::HostUpdate;
use crate::prefetch::Window;
use crate::recomputation::Recomputations;
use crate::selection::Selection;
use xmem_types::BlockId;

/// What a policy does with a training step.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// The blocks that are moved to the host.
    pub(crate) selection: Selection,
    /// The blocks that are computed again.
    pub(crate) recomputations: Recomputations,
    /// The stream that copies.
    pub(crate) copies_on: CopiesOn,
    /// The point at which the stream that computes waits for copies.
    pub(crate) barrier: Barrier,
    /// The blocks that are brought back while a layer's backward pass runs, in order.
    pub(crate) prefetch: fn(&Window<'_>) -> Vec<BlockId>,
    /// The reason for moving a block.
    pub(crate) leaves: Leaves,
    /// The limit of saved tensors on the device.
    pub(crate) budget: Option<Budget>,
    /// The step as the policy changes it; none if it leaves it as it is.
    pub(crate) graph: Option<Graph>,
    /// The optimizer on the host.
    pub(crate) host_update: Option<HostUpdate>,
}

/// The stream that copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopiesOn {
    /// The one that computes: nothing overlaps.
    Compute,
    /// A stream of its own.
    OwnStream,
}

/// The point at which the stream that computes waits for copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// It waits only for what it needs.
    Never,
    /// After each layer, for the copies that began with it.
    EachLayer,
    /// After the forward pass, for all copies to the host.
    EndOfForward,
}

/// The reason for moving a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// The policy says so.
    Always,
    /// Memory is short.
    WhereShort,
}

impl Rules {
    /// Everything stays, and nothing waits.
    pub(crate) fn nothing() -> Self {
        Self {
            selection: Selection::default(),
            recomputations: Recomputations::default(),
            copies_on: CopiesOn::OwnStream,
            barrier: Barrier::Never,
            prefetch: |_| Vec::new(),
            leaves: Leaves::Always,
            budget: None,
            graph: None,
            host_update: None,
        }
    }
}
