//! A replay that can be looked into at any request.

use xmem_simulator::{
    AllocFailure, Attempts, BlockHandle, BlockView, FrameworkAllocator, RequestIndex,
};
use xmem_types::{BlockId, Fallbacks, Request, RequestKind};

/// An allocator and the blocks that the program holds.
pub(crate) struct Run<'f, A> {
    allocator: A,
    attempts: Attempts<'f>,
    /// By block; none where nothing is held.
    held: Vec<Option<BlockHandle>>,
}

impl<'f, A: FrameworkAllocator> Run<'f, A> {
    /// A program that holds nothing; the ids of its blocks are below `blocks`.
    pub(crate) fn new(blocks: usize, allocator: A, fallbacks: &'f Fallbacks) -> Self {
        Self { allocator, attempts: Attempts::new(fallbacks), held: vec![None; blocks] }
    }

    pub(crate) fn allocator(&self) -> &A {
        &self.allocator
    }

    pub(crate) fn allocator_mut(&mut self) -> &mut A {
        &mut self.allocator
    }

    /// Sends a request to the allocator. What fails changes nothing that is held.
    pub(crate) fn step(&mut self, at: RequestIndex, request: &Request) -> Result<(), AllocFailure> {
        let held = &mut self.held[request.block.index()];
        match request.kind {
            RequestKind::Alloc { size, stream } => {
                let wanted = (request.block, size);
                *held = self.attempts.allocate(&mut self.allocator, at, wanted, stream)?;
            }
            RequestKind::Free => {
                if let Some(handle) = held.take() {
                    self.allocator.free(at, handle);
                }
            }
        }
        Ok(())
    }

    /// As [`step`](Run::step), but where memory runs out all limits are lifted, as in a replay. What
    /// no device has is left out.
    pub(crate) fn step_without_end(&mut self, at: RequestIndex, request: &Request) {
        if self.step(at, request).is_err() {
            self.allocator.lift_limit();
            // A second failure leaves the block unheld.
            let _ = self.step(at, request);
        }
    }

    /// What is held, by block.
    pub(crate) fn held(&self) -> impl Iterator<Item = (BlockId, BlockView)> {
        let views = self.held.iter().enumerate();
        views
            .filter_map(|(row, handle)| Some((BlockId::new(row), self.allocator.block((*handle)?))))
    }
}
