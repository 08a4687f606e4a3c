//! A step in limited memory, with where its pieces were.

use crate::event_loop::Memory;
use crate::graph::Graph;
use crate::placement::{NotedSpace, Placed, Placement, place};
use crate::policy::Policy;
use crate::run::Run;
use crate::simulation::simulate;
use crate::transfer::Link;
use xmem_planner::{Limits, Refused};
use xmem_types::Bytes;

/// Runs a step with a policy in `capacity` bytes, and gives where its pieces were: an allocator that gives cached memory
/// back where memory is short, or a pool that ends there, places them otherwise than without a limit.
///
/// A static plan is made when all is known, for the run in which nothing but live bytes counts: it may need more.
///
/// # Errors
/// If a planner gives no plan.
pub fn simulate_within(
    graph: &Graph,
    policy: Policy,
    link: &Link,
    placement: Placement,
    capacity: Bytes,
    limits: &Limits,
) -> Result<(Run, Placed), Refused> {
    let mut space = NotedSpace::new(placement.space(Some(capacity)));
    let run = simulate(graph, policy, link, Memory::Limited(&mut space));
    let placed = match placement {
        Placement::Planned(_) => place(&run, placement, limits)?,
        online => space.placed(run.live(), online),
    };
    Ok((run, placed))
}
