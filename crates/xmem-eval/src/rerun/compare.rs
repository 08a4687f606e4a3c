//! The actions of the simulator in a step, compared with those of PyTorch.

use super::place::{AllocatorAction, Names};
use crate::recording::{HistoryStep, Recording};
use xmem_simulator::{Event, EventAction};

/// In what way the two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// One got a block where the other failed.
    Outcome,
    /// Segments or pages were obtained or released differently.
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
    pub(super) recorded: Vec<AllocatorAction>,
    pub(super) simulated: Vec<AllocatorAction>,
}

/// The names of places on the two sides.
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
        step: &HistoryStep,
        simulated: &[Event],
    ) -> Sides {
        let entries = recording.trace()[step.entries.clone()].iter();
        let recorded = entries.filter_map(|entry| recording.event(entry)).filter(is_compared);
        let simulated = simulated.iter().copied().filter(is_compared);
        Sides {
            recorded: in_normal_order(recorded.map(|event| self.recorded.action(event)).collect()),
            simulated: in_normal_order(
                simulated.map(|event| self.simulated.action(event)).collect(),
            ),
        }
    }
}

fn is_compared(event: &Event) -> bool {
    !matches!(event.action, EventAction::FreeRequested | EventAction::FreeCompleted)
}

/// Segments that are released together are so in the order of their streams' handles and of
/// their addresses, which is nothing that an allocator decides.
fn in_normal_order(mut actions: Vec<AllocatorAction>) -> Vec<AllocatorAction> {
    let is_release = |action: &AllocatorAction| {
        matches!(action.kind, EventAction::SegmentFree | EventAction::SegmentUnmap)
    };
    for run in actions.chunk_by_mut(|a, b| is_release(a) && is_release(b)) {
        run.sort_by_key(|action| (action.place, action.size));
    }
    actions
}

impl Sides {
    /// The gravest difference, if there is one.
    pub(super) fn difference(&self) -> Option<Difference> {
        if self.recorded == self.simulated {
            return None;
        }
        let is_block = |action: &&AllocatorAction| {
            matches!(action.kind, EventAction::Alloc | EventAction::Oom)
        };
        let outcome =
            |actions: &[AllocatorAction]| actions.iter().find(is_block).map(|action| action.kind);
        let segments = |actions: &[AllocatorAction]| -> Vec<AllocatorAction> {
            actions.iter().filter(|action| !is_block(action)).copied().collect()
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
