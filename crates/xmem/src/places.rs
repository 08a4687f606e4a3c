//! Blocks, requests and times turned into places that a person can find.

use crate::answer::{Finding, Place};
use xmem_analyzer::Profile;
use xmem_orchestrator::{Schedule, ScheduledBlock};
use xmem_types::{Diagnostic, Location, OpId, Request, RequestKind, Sym};

/// Names of a profile's rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    pub(crate) profile: &'a Profile,
}

impl Places<'_> {
    /// Where a scheduled block is allocated.
    pub(crate) fn of_block(self, block: &ScheduledBlock) -> Place {
        Place {
            iteration: block.iteration,
            phase: block.phase,
            op_path: block.op.map(|op| self.op_path(op)).unwrap_or_default(),
            module: self.text(block.module),
            line: self.text(block.line),
        }
    }

    /// Where a request stands: for an allocation its block's origin. The peak of anything is
    /// always at an allocation.
    pub(crate) fn of_request(self, schedule: &Schedule, request: usize) -> Option<Place> {
        let Request { block, kind } = *schedule.requests.get(request)?;
        matches!(kind, RequestKind::Alloc { .. }).then(|| self.of_block(schedule.block(block)))
    }

    /// A diagnostic in words.
    pub(crate) fn finding(self, diagnostic: &Diagnostic) -> Finding {
        let place = diagnostic.first.map(|at| match at {
            Location::ByteOffset(offset) => format!("byte {offset}"),
            Location::MemoryEvent(row) => format!("memory event {row}"),
            Location::Op(op) => format!("operator {} ({})", op.0, self.profile.op_name(op)),
        });
        Finding { place, ..Finding::anywhere(diagnostic) }
    }

    fn op_path(self, op: OpId) -> Vec<String> {
        let mut path: Vec<String> =
            self.profile.tree.path(op).map(|o| self.profile.op_name(o).to_owned()).collect();
        path.reverse();
        path
    }

    fn text(self, sym: Sym) -> Option<String> {
        (sym != Sym::EMPTY).then(|| self.profile.text(sym).to_owned())
    }
}
