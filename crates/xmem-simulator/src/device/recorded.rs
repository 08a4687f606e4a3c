//! Addresses that a recording had.

use std::collections::VecDeque;
use xmem_types::Addr;

/// Addresses still to be handed out, in the order of the recording.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedAddresses {
    segments: VecDeque<Addr>,
    /// The addresses of mapped pages. A reservation starts where its first pages are mapped.
    pages: VecDeque<Addr>,
}

impl RecordedAddresses {
    pub(super) fn new(
        segments: impl IntoIterator<Item = Addr>,
        pages: impl IntoIterator<Item = Addr>,
    ) -> Self {
        Self { segments: segments.into_iter().collect(), pages: pages.into_iter().collect() }
    }

    /// The address of the next segment.
    pub(super) fn segment(&mut self) -> Option<Addr> {
        self.segments.pop_front()
    }

    /// The address of a range reserved now, as its pages are the next to be mapped.
    pub(super) fn reservation(&self) -> Option<Addr> {
        self.pages.front().copied()
    }

    /// Pages were mapped.
    pub(super) fn mapped(&mut self) {
        self.pages.pop_front();
    }
}
