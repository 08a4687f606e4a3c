//! What xmem writes about an allocation into the snapshot of a predicted run: frames of a file of its own.

use crate::{Snapshot, StackId};

/// The file of these frames.
pub const FILE: &str = "xmem";

/// What precedes the name of a phase.
pub const PHASE: &str = "phase: ";

/// What precedes the number of an iteration.
pub const ITERATION: &str = "iteration ";

/// What precedes the name of a role.
pub const ROLE: &str = "role: ";

/// What the snapshot of a predicted run says about an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purpose<'s> {
    /// The name of the role.
    pub role: &'s str,
    /// The name of the phase, if there is one.
    pub phase: Option<&'s str>,
    /// The number of the iteration, if it is in one.
    pub iteration: Option<u32>,
}

impl<'s> Purpose<'s> {
    /// What the stack `id` of `snapshot` says; none if xmem did not write it.
    #[must_use]
    pub fn of(snapshot: &'s Snapshot, id: StackId) -> Option<Self> {
        let frames = snapshot.frames.stack(id).iter().map(|&frame| snapshot.frames.frame(frame));
        let texts = || {
            let own =
                frames.clone().filter(|frame| snapshot.strings.resolve(frame.filename) == FILE);
            own.map(|frame| snapshot.strings.resolve(frame.name))
        };
        Some(Self {
            role: texts().find_map(|text| text.strip_prefix(ROLE))?,
            phase: texts().find_map(|text| text.strip_prefix(PHASE)),
            iteration: texts().find_map(|text| text.strip_prefix(ITERATION)?.parse().ok()),
        })
    }
}
