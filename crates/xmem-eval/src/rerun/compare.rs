//! What the simulator did in a step, against what PyTorch did.

use super::places::{Deed, Names};
use crate::recording::{Recording, Step};
use xmem_simulator::{Event, EventAction};

/// In what way the two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// One got a block where the other failed.
    Outcome,
    /// Segments or pages were got or given back otherwise.
    Segments,
    /// The block is elsewhere.
    Placement,
}

impl Difference {
    /// All of them, the gravest first.
    pub const ALL: [Self; 3] = [Self::Outcome, Self::Segments, Self::Placement];

    /// The name in machine-readable output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Outcome => "outcome",
            Self::Segments => "segments",
            Self::Placement => "placement",
        }
    }
}

/// Both sides of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sides {
    pub(super) recorded: Vec<Deed>,
    pub(super) simulated: Vec<Deed>,
}

/// How the two sides name places.
#[derive(Clone, Debug)]
pub(super) struct Naming {
    pub(super) recorded: Names,
    pub(super) simulated: Names,
}

impl Naming {
    /// Both sides of a step. Frees are left out: where they are is decided by the allocations, when
    /// they are by the program.
    pub(super) fn sides(
        &mut self,
        recording: &Recording<'_>,
        step: &Step,
        simulated: &[Event],
    ) -> Sides {
        let entries = recording.trace()[step.entries.clone()].iter();
        let recorded = entries.filter_map(|entry| recording.event(entry)).filter(is_compared);
        let simulated = simulated.iter().copied().filter(is_compared);
        Sides {
            recorded: settled(recorded.map(|event| self.recorded.deed(event)).collect()),
            simulated: settled(simulated.map(|event| self.simulated.deed(event)).collect()),
        }
    }
}

fn is_compared(event: &Event) -> bool {
    !matches!(event.action, EventAction::FreeRequested | EventAction::FreeCompleted)
}

/// Segments that are given back together are so in the order of their streams' handles and of
/// their addresses, which is nothing that an allocator decides.
fn settled(mut deeds: Vec<Deed>) -> Vec<Deed> {
    let gives_back =
        |deed: &Deed| matches!(deed.action, EventAction::SegmentFree | EventAction::SegmentUnmap);
    for run in deeds.chunk_by_mut(|a, b| gives_back(a) && gives_back(b)) {
        run.sort_by_key(|deed| (deed.place, deed.size));
    }
    deeds
}

impl Sides {
    /// The gravest difference, if there is one.
    pub(super) fn difference(&self) -> Option<Difference> {
        if self.recorded == self.simulated {
            return None;
        }
        let is_block = |deed: &&Deed| matches!(deed.action, EventAction::Alloc | EventAction::Oom);
        let outcome = |deeds: &[Deed]| deeds.iter().find(is_block).map(|deed| deed.action);
        let segments = |deeds: &[Deed]| -> Vec<Deed> {
            deeds.iter().filter(|deed| !is_block(deed)).copied().collect()
        };
        Some(if outcome(&self.recorded) != outcome(&self.simulated) {
            Difference::Outcome
        } else if segments(&self.recorded) != segments(&self.simulated) {
            Difference::Segments
        } else {
            Difference::Placement
        })
    }
}
