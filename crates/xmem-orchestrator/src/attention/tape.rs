//! Allocations and frees written down in the order in which a kernel makes them.

use crate::draft::{Addition, Draft, Position};
use xmem_analyzer::Role;
use xmem_types::{Bytes, OpId};

/// What was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece(usize);

/// A run of allocations and frees, at one place of the program after another.
pub(super) struct Tape<'d, 'p> {
    pub(super) draft: &'d mut Draft<'p>,
    at: Position,
    op: OpId,
    rule: &'static str,
    taken: Vec<Addition>,
}

impl<'d, 'p> Tape<'d, 'p> {
    /// Starts at `at`, within `op`.
    pub(super) fn new(
        draft: &'d mut Draft<'p>,
        at: Position,
        op: OpId,
        rule: &'static str,
    ) -> Self {
        Self { draft, at, op, rule, taken: Vec::new() }
    }

    /// Goes on at another place.
    pub(super) fn go_to(&mut self, at: Position, op: OpId) {
        self.at = at;
        self.op = op;
    }

    /// The place after everything written down so far.
    pub(super) fn here(&mut self) -> Position {
        self.draft.after_position(self.at)
    }

    /// Allocates.
    pub(super) fn take(&mut self, size: Bytes) -> Piece {
        let (alloc, op) = (self.here(), self.op);
        self.taken.push(Addition { size, alloc, free: None, role: Role::Temporary, op });
        Piece(self.taken.len() - 1)
    }

    /// Frees; what was taken at an earlier place was kept for this one.
    pub(super) fn give(&mut self, piece: Piece) {
        let now = self.here();
        let taken = &mut self.taken[piece.0];
        taken.free = Some(now);
        if taken.op != self.op {
            taken.role = Role::Activation;
        }
    }

    /// Frees later, at a place of its own: what was taken is kept.
    pub(super) fn give_at(&mut self, piece: Piece, at: Position) {
        let taken = &mut self.taken[piece.0];
        taken.free = Some(at);
        taken.role = Role::Activation;
    }

    /// Allocates and frees at once.
    pub(super) fn touch(&mut self, size: Bytes) {
        let piece = self.take(size);
        self.give(piece);
    }

    /// Moves the allocation of a recorded block here.
    pub(super) fn land(&mut self, block: usize) {
        let (at, free) = (self.here(), self.draft.items[block].free);
        self.draft.retime(block, at, free, self.rule);
        self.draft.items[block].settled = true;
    }

    /// Moves the free of a recorded block here.
    pub(super) fn release(&mut self, block: usize) {
        let (at, alloc) = (self.here(), self.draft.items[block].alloc);
        self.draft.retime(block, alloc, Some(at), self.rule);
    }

    /// Puts everything into the draft.
    pub(super) fn finish(self) {
        for addition in self.taken {
            self.draft.add(addition, self.rule);
        }
    }
}
