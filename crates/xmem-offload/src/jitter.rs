//! Steps whose sizes vary: how much more memory they need than the one that was recorded.
//!
//! A pool is as large as one step needed it, with a margin for steps that differ (Dymem, section 3.3 and table 2). A replay
//! has none that does, so that sizes are varied here.

use crate::event_loop::Memory;
use crate::graph::{BlockRole, Graph, GraphError};
use crate::placement::{Placement, place};
use crate::policy::Policy;
use crate::simulation::simulate;
use crate::transfer::Link;
use fastrand::Rng;
use xmem_planner::Limits;
use xmem_types::Bytes;

/// Sizes of blocks are multiples of this.
const UNIT: Bytes = Bytes(512);

/// The variation of sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// The part of its size by which a tensor is larger or smaller, at most: from 0 to 1.
    pub share: f64,
    /// The number of steps that are tried.
    pub runs: usize,
    /// The seed.
    pub seed: u64,
}

/// What steps with other sizes need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jittered {
    /// The memory that each of them needs, ascending.
    pub needs: Vec<Bytes>,
    /// Those that run out of memory, where it is limited.
    pub out_of_memory: usize,
}

impl Jittered {
    /// The number of steps that need more than a pool has.
    #[must_use]
    pub fn failures(&self, pool: Bytes) -> usize {
        self.needs.len() - self.needs.partition_point(|&need| need <= pool)
    }

    /// What half of the steps need at most.
    #[must_use]
    pub fn median(&self) -> Bytes {
        self.needs.get(self.needs.len().saturating_sub(1) / 2).copied().unwrap_or_default()
    }

    /// The most that a step needs.
    #[must_use]
    pub fn most(&self) -> Bytes {
        self.needs.last().copied().unwrap_or_default()
    }
}

impl Graph {
    /// The same step with tensors and workspaces of other sizes; memory of the model and the optimizer stays.
    ///
    /// # Errors
    /// If the blocks are larger than any memory then.
    fn jittered(&self, share: f64, random: &mut Rng) -> Result<Self, GraphError> {
        let factors: Vec<f64> =
            self.ids().map(|_| 1.0 + share * (2.0 * random.f64() - 1.0)).collect();
        let graph = self.resized(|id, block| match block.role {
            BlockRole::Persistent | BlockRole::Gradient | BlockRole::OptimizerState => block.size,
            BlockRole::Data | BlockRole::Workspace => {
                Bytes((block.size.get() as f64 * factors[id.index()]) as u64).round_up(UNIT)
            }
        });
        graph.check_size().map(|()| graph)
    }
}

/// Runs steps with other sizes. None for a static plan, which is made for one step.
///
/// # Errors
/// If the blocks of one are larger than any memory.
pub fn jitter(
    graph: &Graph,
    policy: Policy,
    link: &Link,
    placement: Placement,
    capacity: Option<Bytes>,
    jitter: &Jitter,
) -> Result<Option<Jittered>, GraphError> {
    if matches!(placement, Placement::Planned(_)) {
        return Ok(None);
    }
    let mut random = Rng::with_seed(jitter.seed);
    let (mut needs, mut out_of_memory) = (Vec::with_capacity(jitter.runs), 0);
    for _ in 0..jitter.runs {
        let graph = graph.jittered(jitter.share, &mut random)?;
        let run = simulate(&graph, policy, link, Memory::Unlimited);
        let placed = place(&run, placement, &Limits::default());
        needs.push(placed.expect("an online placement needs no planner").peak);
        if let Some(capacity) = capacity {
            let mut space = placement.space(Some(capacity));
            let run = simulate(&graph, policy, link, Memory::Limited(space.as_mut()));
            out_of_memory += usize::from(run.out_of_memory.is_some());
        }
    }
    needs.sort_unstable();
    Ok(Some(Jittered { needs, out_of_memory }))
}
