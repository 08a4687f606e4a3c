//! Placements: an allocator, a pool, or a static plan, for the memory events of a run.

mod caching;
mod counting;
mod gtbm;
mod noted;
mod planned;
mod pool;

pub(crate) use caching::CachingSpace;
pub(crate) use counting::CountingSpace;
pub(crate) use gtbm::GtbmSpace;
pub(crate) use noted::NotedSpace;
pub(crate) use pool::{Fit, PoolSpace};

use crate::events::{EventKind, PieceId};
use crate::groups::Group;
use crate::run::Run;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use xmem_planner::{BlockList, Limits, PlannedBlock, Planner, Refused};
use xmem_types::{Bytes, Nanos};

/// A placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placement {
    /// PyTorch's caching allocator, with its defaults.
    Caching,
    /// A pool; the hole with the lowest address that is large enough.
    FirstFit,
    /// A pool; the smallest hole that is large enough, the lowest of equal ones.
    BestFit,
    /// Dymem's group tensor-based memory management.
    Gtbm,
    /// A static plan, made when all events are known.
    Planned(Planner),
}

/// A name that no placement has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a placement")]
pub struct ParsePlacementError(String);

impl Placement {
    /// Those that serve requests as they come.
    pub const ONLINE: [Self; 4] = [Self::Caching, Self::FirstFit, Self::BestFit, Self::Gtbm];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Caching => "caching",
            Self::FirstFit => "pool-first-fit",
            Self::BestFit => "pool-best-fit",
            Self::Gtbm => "gtbm",
            Self::Planned(planner) => planner.name(),
        }
    }

    /// A space of `capacity` bytes, or without a limit. For a static plan, which is made when all is known, it only
    /// counts what is live: the plan may need more.
    #[must_use]
    pub fn space(self, capacity: Option<Bytes>) -> Box<dyn Space> {
        match self {
            Self::Caching => Box::new(CachingSpace::new(capacity)),
            Self::FirstFit => Box::new(PoolSpace::new(Fit::First, capacity)),
            Self::BestFit => Box::new(PoolSpace::new(Fit::Best, capacity)),
            Self::Gtbm => Box::new(GtbmSpace::new(capacity)),
            Self::Planned(_) => Box::new(CountingSpace::new(capacity)),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Placement {
    type Err = ParsePlacementError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let online = Self::ONLINE.into_iter().find(|placement| placement.name() == name);
        online
            .or_else(|| name.parse().ok().map(Self::Planned))
            .ok_or_else(|| ParsePlacementError(name.to_owned()))
    }
}

/// Memory that places pieces as they come.
pub trait Space: fmt::Debug {
    /// Places a piece.
    ///
    /// # Errors
    /// If there is no room for it.
    fn allocate(&mut self, piece: PieceId, size: Bytes, group: Group) -> Result<(), PlaceError>;

    /// Takes a piece back.
    fn free(&mut self, piece: PieceId);

    /// True if a piece of this size would find room now.
    fn has_room(&self, size: Bytes, group: Group) -> bool;

    /// The memory in use: with holes, up to the highest piece.
    fn used(&self) -> Bytes;

    /// The bytes in use within the space that was reserved ahead; without such a space, all bytes in use.
    fn main_used(&self) -> Bytes {
        self.used()
    }

    /// The sizes of the holes in the memory in use.
    fn holes(&self) -> Vec<Bytes>;

    /// The address of a piece that is placed, from the start of the memory. None if it has no bytes, or if the placement
    /// has several spaces, which have no common start.
    fn address(&self, piece: PieceId) -> Option<Bytes>;
}

/// The reason why a piece has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// There is no room for it.
    #[error("out of memory")]
    Full,
}

/// The events of a run, placed.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The placement.
    pub placement: Placement,
    /// The memory that is needed.
    pub peak: Bytes,
    /// The most bytes that are live: no placement needs less for the same events.
    pub lower_bound: Bytes,
    /// The most that is in use of the space that is reserved ahead.
    pub main_peak: Bytes,
    /// After each event.
    pub series: Vec<Sample>,
    /// The address of each piece of the run, as [`Space::address`].
    pub addresses: Vec<Option<Bytes>>,
}

/// The memory after an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The time.
    pub time: Nanos,
    /// Bytes in live pieces.
    pub live: Bytes,
    /// Bytes in use, with holes.
    pub used: Bytes,
    /// The share of free memory in use that a request of the event's size cannot have (U_f; Gorman and Healy): 0 if it
    /// can have all of it, or nothing is free. Events of less than 1 MiB keep the value before.
    pub unusable: f64,
}

impl Placed {
    /// The memory that is needed in units of the lower bound; 1 if nothing is.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        match self.lower_bound {
            Bytes::ZERO => 1.0,
            bound => self.peak.get() as f64 / bound.get() as f64,
        }
    }

    /// The size of Dymem's pool (section 3.3): the size of the main space in a first step, less the smallest gap between its
    /// two ends that the step leaves, and a margin for steps that differ. The gap is smallest where both ends have most in
    /// use, so that the first size does not matter. The space of fully connected layers is not part of it.
    #[must_use]
    pub fn pool(&self, margin: Bytes) -> Bytes {
        self.main_peak + margin
    }

    /// The sample at which most memory is in use, the first of equal ones.
    #[must_use]
    pub fn at_peak(&self) -> Option<&Sample> {
        self.series.iter().rev().max_by_key(|sample| sample.used)
    }
}

/// Places the events of a run, in as much memory as they need.
///
/// # Errors
/// If a planner gives no plan.
pub fn place(run: &Run, placement: Placement, limits: &Limits) -> Result<Placed, Refused> {
    let space: Box<dyn Space> = match placement {
        Placement::Planned(planner) => {
            let list = block_list(run);
            Box::new(planned::PlannedSpace::new(&list, planner, limits)?)
        }
        online => online.space(None),
    };
    let mut space = NotedSpace::new(space);
    for event in &run.events {
        let piece = run.pieces[event.piece.index()];
        match event.kind {
            EventKind::Alloc => space
                .allocate(event.piece, piece.size, piece.group)
                .expect("a space without a limit has room"),
            EventKind::Free => space.free(event.piece),
        }
    }
    Ok(space.placed(run.live(), placement))
}

/// The pieces of a run as a list for planners: a tick is an event. Pieces without bytes are in it, so that ids are those
/// of pieces.
fn block_list(run: &Run) -> BlockList {
    let ticks = u32::try_from(run.events.len()).expect("fewer than 2^32 events");
    let mut blocks: Vec<PlannedBlock> = run
        .pieces
        .iter()
        .map(|piece| PlannedBlock { size: piece.size, start: 0, end: ticks, operator: None })
        .collect();
    for (tick, event) in (0..).zip(&run.events) {
        let block = &mut blocks[event.piece.index()];
        match event.kind {
            EventKind::Alloc => {
                block.start = tick;
                block.operator = Some(event.step.0);
            }
            EventKind::Free => block.end = tick,
        }
    }
    BlockList::new(blocks).expect("a piece is freed after it was allocated")
}
