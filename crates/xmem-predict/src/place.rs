//! The places of blocks, requests and diagnostics in the program, in words.

use crate::finding::Finding;
use xmem_analyzer::{Phase, Profile, ScriptPart};
use xmem_orchestrator::{Schedule, ScheduledBlock};
use xmem_types::{Diagnostic, IterationId, Location, OpId, Request, RequestKind, Sym};

/// A place in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Iteration; none before the first.
    pub iteration: Option<IterationId>,
    /// Phase.
    pub phase: Phase,
    /// The part of the script, behind the recorded iterations.
    pub part: Option<ScriptPart>,
    /// Operators and annotations from the outermost in, up to the one that asked for the memory; empty where unknown.
    pub op_path: Vec<String>,
    /// Module path (`GPT2_0 > Block_3 > MLP_0`).
    pub module: Option<String>,
    /// Python line (`train.py(12): forward`).
    pub line: Option<String>,
}

impl Place {
    /// The innermost operator, or the one around it that asked for the memory.
    #[must_use]
    pub fn op(&self) -> Option<&str> {
        self.op_path.last().map(String::as_str)
    }
}

/// Puts the rows of a profile into words.
#[derive(Clone, Copy, Debug)]
pub struct Locator<'a> {
    pub(crate) profile: &'a Profile,
}

impl<'a> Locator<'a> {
    /// The words of `profile`.
    #[must_use]
    pub fn new(profile: &'a Profile) -> Self {
        Self { profile }
    }

    /// The place at which a scheduled block is allocated.
    pub(crate) fn of_block(self, block: &ScheduledBlock) -> Place {
        let place = block.origin.place(self.profile);
        Place {
            iteration: place.iteration,
            phase: place.phase,
            part: block
                .origin
                .recorded()
                .and_then(|id| self.profile.part_in_rest(self.profile.block(id).alloc_time)),
            op_path: place.op.map(|op| self.op_path(op)).unwrap_or_default(),
            module: self.text(place.module),
            line: self.text(place.line),
        }
    }

    /// The place of a request: for an allocation its block's origin. The peak of anything is
    /// always at an allocation.
    pub(crate) fn of_request(self, schedule: &Schedule, request: usize) -> Option<Place> {
        let Request { block, kind } = *schedule.requests.get(request)?;
        matches!(kind, RequestKind::Alloc { .. }).then(|| self.of_block(schedule.block(block)))
    }

    /// A diagnostic in words.
    #[must_use]
    pub fn finding(self, diagnostic: &Diagnostic) -> Finding {
        let place = diagnostic.first.map(|at| match at {
            Location::ByteOffset(offset) => format!("byte {offset}"),
            Location::MemoryEvent(row) => format!("memory event {row}"),
            Location::Op(op) => format!("operator {} ({})", op.0, self.profile.op_name(op)),
        });
        Finding { place, ..Finding::anywhere(diagnostic) }
    }

    fn op_path(self, op: OpId) -> Vec<String> {
        let op = self.profile.asking_op(op);
        let mut path: Vec<String> =
            self.profile.tree.path(op).map(|o| self.profile.op_name(o).to_owned()).collect();
        path.reverse();
        path
    }

    fn text(self, sym: Sym) -> Option<String> {
        (sym != Sym::EMPTY).then(|| self.profile.text(sym).to_owned())
    }
}
