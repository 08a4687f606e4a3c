//! A space that notes what is in it after each event.

use super::{PlaceError, Placed, Placement, Sample, Space};
use crate::events::{MemoryEvent, PieceId};
use crate::groups::Group;
use xmem_types::Bytes;

/// Requests for less than this do not say how fragmented memory is.
const SMALL: Bytes = Bytes::mib(1);

/// Another space, with its history.
#[derive(Debug)]
pub(crate) struct NotedSpace {
    space: Box<dyn Space>,
    /// By piece.
    sizes: Vec<Bytes>,
    /// By piece.
    addresses: Vec<Option<Bytes>>,
    /// The most that was in use of the space that is reserved ahead.
    main_peak: Bytes,
    /// After each event: the bytes in use, and the share of the free ones that a request of its size cannot have.
    notes: Vec<(Bytes, f64)>,
}

impl NotedSpace {
    pub(crate) fn new(space: Box<dyn Space>) -> Self {
        Self {
            space,
            sizes: Vec::new(),
            addresses: Vec::new(),
            main_peak: Bytes::ZERO,
            notes: Vec::new(),
        }
    }

    fn note(&mut self, size: Bytes) {
        let unusable = match size {
            small if small < SMALL => self.notes.last().map_or(0.0, |&(_, before)| before),
            size => unusable_share(&self.space.holes(), size),
        };
        self.main_peak = self.main_peak.max(self.space.main_used());
        self.notes.push((self.space.used(), unusable));
    }

    /// The events that this space has served, with the live bytes after each, placed.
    pub(crate) fn placed(
        self,
        live: impl Iterator<Item = (MemoryEvent, Bytes)>,
        placement: Placement,
    ) -> Placed {
        let sample = |((event, live), &(used, unusable)): ((MemoryEvent, Bytes), &(Bytes, f64))| {
            Sample { time: event.time, live, used, unusable }
        };
        let series: Vec<Sample> = live.zip(&self.notes).map(sample).collect();
        assert_eq!(series.len(), self.notes.len(), "a note for each event");
        Placed {
            placement,
            peak: series.iter().map(|sample| sample.used).max().unwrap_or_default(),
            lower_bound: series.iter().map(|sample| sample.live).max().unwrap_or_default(),
            main_peak: self.main_peak,
            series,
            addresses: self.addresses,
        }
    }
}

impl Space for NotedSpace {
    fn allocate(&mut self, piece: PieceId, size: Bytes, group: Group) -> Result<(), PlaceError> {
        self.space.allocate(piece, size, group)?;
        debug_assert_eq!(piece.index(), self.sizes.len(), "pieces are numbered as they come");
        self.sizes.push(size);
        self.addresses.push(self.space.address(piece));
        self.note(size);
        Ok(())
    }

    fn free(&mut self, piece: PieceId) {
        self.space.free(piece);
        self.note(self.sizes[piece.index()]);
    }

    fn has_room(&self, size: Bytes, group: Group) -> bool {
        self.space.has_room(size, group)
    }

    fn used(&self) -> Bytes {
        self.space.used()
    }

    fn main_used(&self) -> Bytes {
        self.space.main_used()
    }

    fn holes(&self) -> Vec<Bytes> {
        self.space.holes()
    }

    fn address(&self, piece: PieceId) -> Option<Bytes> {
        self.space.address(piece)
    }
}

fn unusable_share(holes: &[Bytes], size: Bytes) -> f64 {
    let free: Bytes = holes.iter().copied().sum();
    let usable: Bytes = holes.iter().copied().filter(|&hole| hole >= size).sum();
    match free {
        Bytes::ZERO => 0.0,
        free => 1.0 - usable.get() as f64 / free.get() as f64,
    }
}
