//! A plan of requests: the allocations and frees of CUDA's host code, written down in its order.

use super::edits::{Addition, Edits};
use super::place::Place;
use crate::uncertainty::SizeRange;
use xmem_analyzer::Role;
use xmem_types::{BlockId, Bytes, OpId};

/// The requests of one or more operators, in order, at one place of the program after another.
///
/// Blocks that the CPU makes too are outputs: they keep their lifetime, or land where the plan stands.
/// Everything else that CUDA's code allocates is a piece. Pieces that are still held when the plan ends are freed
/// there, the youngest first.
pub(crate) struct Plan<'e, 'd, 'p> {
    edits: &'e mut Edits<'d, 'p>,
    op: OpId,
    /// Counts the calls of [`Plan::go_to`].
    leg: u32,
    at: Place,
    end: Option<Place>,
    role: Role,
    outputs: Vec<BlockId>,
    pieces: Vec<Taken>,
}

/// A piece of memory that a plan allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a piece is freed, or held until the plan ends"]
pub(crate) struct Piece(usize);

struct Taken {
    addition: Addition,
    range: Option<SizeRange>,
    leg: u32,
    held: bool,
}

impl<'e, 'd, 'p> Plan<'e, 'd, 'p> {
    pub(super) fn new(edits: &'e mut Edits<'d, 'p>, op: OpId, at: Place, role: Role) -> Self {
        let (outputs, pieces) = (Vec::new(), Vec::new());
        Self { edits, op, leg: 0, at, end: None, role, outputs, pieces }
    }

    /// The place at which pieces are freed that are still held; never, unless it is given.
    pub(crate) fn ends(self, end: Place) -> Self {
        Self { end: Some(end), ..self }
    }

    /// The recorded blocks among which [`Plan::output`] looks.
    pub(crate) fn outputs(self, outputs: Vec<BlockId>) -> Self {
        Self { outputs, ..self }
    }

    /// The draft.
    pub(crate) fn edits(&self) -> &Edits<'d, 'p> {
        self.edits
    }

    /// Continues in another operator: a piece that was allocated before and is freed from now on was kept
    /// for it.
    pub(crate) fn go_to(&mut self, at: Place, op: OpId) {
        (self.at, self.op) = (at, op);
        self.leg += 1;
    }

    /// Continues at another place of the same code.
    pub(crate) fn move_to(&mut self, at: Place) {
        self.at = at;
    }

    /// Says that what follows, at the same place, belongs to `op`.
    pub(crate) fn belongs_to(&mut self, op: OpId) {
        self.op = op;
    }

    /// The place after every request so far.
    pub(crate) fn here(&mut self) -> Place {
        self.at = self.edits.next(self.at);
        self.at
    }

    /// Allocates.
    pub(crate) fn take(&mut self, size: impl Into<Bytes>) -> Piece {
        self.push(size.into(), None)
    }

    /// Allocates what is held until the plan ends.
    pub(crate) fn hold(&mut self, size: impl Into<Bytes>) {
        let _held = self.take(size);
    }

    /// Allocates what is held until the plan ends, in this order.
    pub(crate) fn hold_each(&mut self, sizes: impl IntoIterator<Item = impl Into<Bytes>>) {
        for size in sizes {
            self.hold(size);
        }
    }

    /// Allocates as much as a library decides.
    pub(crate) fn take_uncertain(&mut self, size: Bytes, range: SizeRange) -> Piece {
        self.push(size, Some(range))
    }

    /// Allocates as much as a library decides, held until the plan ends.
    pub(crate) fn hold_uncertain(&mut self, size: Bytes, range: SizeRange) {
        let _held = self.take_uncertain(size, range);
    }

    /// Allocates as much as a library decides, and frees at once.
    pub(crate) fn touch_uncertain(&mut self, size: Bytes, range: SizeRange) {
        let piece = self.take_uncertain(size, range);
        self.free(piece);
    }

    fn push(&mut self, size: Bytes, range: Option<SizeRange>) -> Piece {
        let (alloc, op, role) = (self.here(), self.op, self.role);
        let addition = Addition { size, alloc, free: Place::NEVER, role, op };
        self.pieces.push(Taken { addition, range, leg: self.leg, held: true });
        Piece(self.pieces.len() - 1)
    }

    /// Frees; a piece of an earlier operator was kept for this one.
    pub(crate) fn free(&mut self, piece: Piece) {
        let (now, leg) = (self.here(), self.leg);
        let taken = &mut self.pieces[piece.0];
        if taken.leg != leg {
            taken.addition.role = Role::Activation;
        }
        (taken.addition.free, taken.held) = (now, false);
    }

    /// Frees, in this order.
    pub(crate) fn free_all(&mut self, pieces: impl IntoIterator<Item = Piece>) {
        for piece in pieces {
            self.free(piece);
        }
    }

    /// Frees at another place: the piece is kept until then.
    pub(crate) fn free_at(&mut self, piece: Piece, at: Place) {
        let taken = &mut self.pieces[piece.0];
        (taken.addition.free, taken.held) = (at, false);
        taken.addition.role = Role::Activation;
    }

    /// Allocates and frees at once.
    pub(crate) fn touch(&mut self, size: impl Into<Bytes>) {
        let piece = self.take(size);
        self.free(piece);
    }

    /// Takes the next output of this size, if there is one. Its allocation moves here if the CPU's
    /// comes earlier; otherwise the plan continues after it.
    pub(crate) fn output(&mut self, size: impl Into<Bytes>) {
        let size = size.into();
        let found = self.outputs.iter().position(|&block| self.edits.item(block).size() == size);
        let Some(output) = found.map(|n| self.outputs.remove(n)) else { return };
        if self.edits.item(output).alloc() < self.at {
            let alloc = self.here();
            self.edits.move_alloc(output, alloc);
        }
        self.edits.keep(output);
        self.at = self.edits.item(output).alloc();
    }

    /// Takes the next outputs of these sizes, in this order.
    pub(crate) fn output_each(&mut self, sizes: impl IntoIterator<Item = impl Into<Bytes>>) {
        for size in sizes {
            self.output(size);
        }
    }

    /// Takes every output that is left, in order.
    pub(crate) fn all_outputs(&mut self) {
        for output in self.outputs.clone() {
            let size = self.edits.item(output).size();
            self.output(size);
        }
    }

    /// Moves the allocation of a recorded block here.
    pub(crate) fn land(&mut self, block: BlockId) {
        let here = self.here();
        self.edits.move_alloc(block, here);
        self.edits.keep(block);
    }

    /// Moves the free of a recorded block here.
    pub(crate) fn release(&mut self, block: BlockId) {
        let here = self.here();
        self.edits.move_free(block, here);
    }

    /// Moves the free of a recorded block to another place.
    pub(crate) fn release_at(&mut self, block: BlockId, at: Place) {
        self.edits.move_free(block, at);
    }

    /// Puts everything into the draft.
    pub(crate) fn finish(mut self) {
        if let Some(end) = self.end {
            for piece in self.pieces.iter_mut().rev().filter(|piece| piece.held) {
                piece.addition.free = self.edits.next(end);
            }
        }
        for Taken { addition, range, .. } in self.pieces {
            match range {
                Some(range) => self.edits.add_uncertain(addition, range),
                None => self.edits.add(addition),
            };
        }
    }
}
