//! The smallest memory in which a policy runs.

use crate::event_loop::Memory;
use crate::graph::Graph;
use crate::placement::Placement;
use crate::policy::Policy;
use crate::simulation::simulate;
use crate::transfer::Link;
use xmem_types::Bytes;

const MIB: u64 = 1 << 20;

/// The smallest memory found, in whole MiB, in which the policy runs with the placement. None for a static plan, which
/// is made when all is known, and if it does not run at all.
///
/// More memory changes what waits and where blocks lie, so that a policy may fail in some memory and run in less. The
/// search goes up in steps of a fiftieth to the first memory in which it runs, and bisects the last step.
#[must_use]
pub fn smallest_capacity(
    graph: &Graph,
    policy: Policy,
    link: &Link,
    placement: Placement,
) -> Option<Bytes> {
    if matches!(placement, Placement::Planned(_)) {
        return None;
    }
    let runs = |mebibytes: u64| {
        let mut space = placement.space(Some(Bytes(mebibytes * MIB)));
        simulate(graph, policy, link, Memory::Limited(space.as_mut())).out_of_memory.is_none()
    };
    let largest = graph.blocks().iter().map(|block| block.size.get()).max().unwrap_or(0);
    let all: u64 = graph.blocks().iter().map(|block| block.size.get()).sum();
    // In twice the sum of all blocks, each has room.
    let most = (2 * all).div_ceil(MIB) + 64;
    let mut fails = (largest / MIB).saturating_sub(1);
    let mut fits = fails + 1;
    while !runs(fits) {
        if fits >= most {
            return None;
        }
        fails = fits;
        fits = (fits + (fits / 50).max(1)).min(most);
    }
    while fits - fails > 1 {
        let middle = fails + (fits - fails) / 2;
        if runs(middle) { fits = middle } else { fails = middle }
    }
    Some(Bytes(fits * MIB))
}
