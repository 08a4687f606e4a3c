//! The memory that convolutions use while they run: as recorded, or less.
//!
//! A convolution has several algorithms, and those that need no workspace are slower (vDNN, section III.C). A recording has
//! the workspace of one of them; what the others need, and how much slower they are, it does not say. A pass whose
//! workspace is cut takes [`SLOWDOWN`] as long.

use crate::event_loop::Memory;
use crate::graph::{BlockRole, Graph, StepId};
use crate::placement::Placement;
use crate::policy::Policy;
use crate::simulation::simulate;
use crate::transfer::Link;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use xmem_types::Bytes;

const MIB: u64 = 1 << 20;

/// The time of a convolution with less workspace than recorded, in units of its time with it: convolutions without
/// workspaces took 60 % longer on average in the measurements of Dymem (HPDC 2020).
pub const SLOWDOWN: f64 = 1.6;

/// The workspaces of the convolutions of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceRule {
    /// As recorded.
    #[default]
    Recorded,
    /// None.
    Without,
    /// As recorded, but at most this large.
    AtMost(Bytes),
    /// At most as large as the memory allows: a limit that grows in steps of 1 MiB while the step still runs (Dymem,
    /// section 3.3).
    Grow,
}

/// Text that names no rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "unknown workspace rule `{0}`: expected recorded, none, grow or fixed:SIZE, for example fixed:16MiB"
)]
pub struct ParseWorkspaceRuleError(String);

/// What became of the workspaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceCounts {
    /// Passes of convolutions that have the recorded workspace.
    pub whole: usize,
    /// Those that have a smaller one.
    pub smaller: usize,
    /// Those that have none.
    pub without: usize,
    /// The largest workspace of a pass.
    pub largest: Bytes,
}

impl FromStr for WorkspaceRule {
    type Err = ParseWorkspaceRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || ParseWorkspaceRuleError(text.to_owned());
        match text.strip_prefix("fixed:") {
            Some(size) => size.parse().map(Self::AtMost).map_err(|_| unknown()),
            None => match text {
                "recorded" => Ok(Self::Recorded),
                "none" => Ok(Self::Without),
                "grow" => Ok(Self::Grow),
                _ => Err(unknown()),
            },
        }
    }
}

impl fmt::Display for WorkspaceRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recorded => f.pad("recorded"),
            Self::Without => f.pad("none"),
            Self::AtMost(size) => write!(f, "fixed:{}", size.get()),
            Self::Grow => f.pad("grow"),
        }
    }
}

impl WorkspaceCounts {
    /// The passes of convolutions by what `used` leaves of the workspaces of `recorded`, the same step.
    #[must_use]
    pub fn of(recorded: &Graph, used: &Graph) -> Self {
        let mut counts = Self::default();
        for step in recorded.workspace_steps() {
            let (before, after) = (recorded.workspace(step), used.workspace(step));
            let count = match after {
                Bytes::ZERO => &mut counts.without,
                after if after < before => &mut counts.smaller,
                _ => &mut counts.whole,
            };
            *count += 1;
            counts.largest = counts.largest.max(after);
        }
        counts
    }
}

impl Graph {
    /// The same step with other workspaces: `size` gives the bytes of a block from the step that allocates it and its
    /// recorded bytes. A pass that gets less than it had takes [`SLOWDOWN`] as long.
    #[must_use]
    pub fn with_workspaces(&self, size: impl Fn(StepId, Bytes) -> Bytes) -> Self {
        let mut graph = self.resized(|id, block| match block.role {
            BlockRole::Workspace => size(self.lifetime(id).alloc, block.size).min(block.size),
            _ => block.size,
        });
        for step in self.workspace_steps() {
            if graph.workspace(step) < self.workspace(step) {
                graph.slow_down(step, SLOWDOWN);
            }
        }
        graph
    }

    /// The same step without the memory that convolutions use while they run.
    #[must_use]
    pub fn without_workspaces(&self) -> Self {
        self.with_workspaces(|_, _| Bytes::ZERO)
    }

    /// The steps that allocate workspaces with bytes, ascending.
    #[must_use]
    pub fn workspace_steps(&self) -> Vec<StepId> {
        let has_workspace = |&id: &xmem_types::BlockId| {
            let block = self.block(id);
            block.role == BlockRole::Workspace && block.size > Bytes::ZERO
        };
        let steps = self.ids().filter(has_workspace).map(|id| self.lifetime(id).alloc);
        let steps: BTreeSet<StepId> = steps.collect();
        steps.into_iter().collect()
    }

    /// The bytes of the workspaces that a step allocates.
    fn workspace(&self, step: StepId) -> Bytes {
        let of_step = |&id: &xmem_types::BlockId| {
            self.block(id).role == BlockRole::Workspace && self.lifetime(id).alloc == step
        };
        self.ids().filter(of_step).map(|id| self.block(id).size).sum()
    }
}

/// True if the step runs in a memory.
pub(crate) fn runs(
    graph: &Graph,
    policy: Policy,
    link: &Link,
    placement: Placement,
    capacity: Bytes,
) -> bool {
    let mut space = placement.space(Some(capacity));
    simulate(graph, policy, link, Memory::Limited(space.as_mut())).out_of_memory.is_none()
}

/// The step with workspaces up to the largest limit, in whole MiB, with which it runs in the memory; without workspaces if
/// it runs with none.
///
/// More workspace may change where blocks lie, so that the step may run with more and not with less: the limit is found
/// by bisection.
#[must_use]
pub fn grown(
    graph: &Graph,
    policy: Policy,
    link: &Link,
    placement: Placement,
    capacity: Bytes,
) -> Graph {
    if runs(graph, policy, link, placement, capacity) {
        return graph.clone();
    }
    let cut = |mebibytes: u64| graph.with_workspaces(|_, size| size.min(Bytes(mebibytes * MIB)));
    let workspaces = graph.blocks().iter().filter(|block| block.role == BlockRole::Workspace);
    let largest = workspaces.map(|block| block.size.get()).max().unwrap_or(0);
    let (mut fits, mut fails) = (0, largest.div_ceil(MIB));
    while fails - fits > 1 {
        let middle = fits + (fails - fits) / 2;
        if runs(&cut(middle), policy, link, placement, capacity) {
            fits = middle;
        } else {
            fails = middle;
        }
    }
    cut(fits)
}
