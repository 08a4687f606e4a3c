//! The private pool of an address at some moment: of a `torch.cuda.MemPool` or a CUDA graph.
//!
//! A history of the allocator does not say from which pool a block is. Segments do, at the moments at which
//! they are listed; the memory at an address is that of the same segment until it is released to the device.

use crate::gpu::GpuRecording;
use crate::lifetime::Tick;
use crate::recording::{DeviceHistory, HistoryAction};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use xmem_types::{Addr, Bytes, PrivatePoolId};

/// A position in a history.
pub type Position = usize;

/// The most comparisons that following the pools of a history may take: seconds. A hostile file could ask for
/// any number.
const MAX_COMPARISONS: usize = 1 << 31;

/// Segments of private pools, and the releases of memory, of a history.
#[derive(Clone, Debug, Default)]
pub struct PrivatePools {
    segments: Vec<(Position, Range<Addr>, PrivatePoolId)>,
    /// In order of position.
    releases: Vec<(Position, Range<Addr>)>,
}

impl PrivatePools {
    /// The pools of `segments`, each seen before the entry of a position, in a history in which memory was
    /// `released` at the positions of entries. A pool is known by its `MempoolId_t`. None if the history, of
    /// `entries`, has more segments than can be followed.
    #[must_use]
    pub fn new(
        segments: Vec<(Position, Range<Addr>, (u64, u64))>,
        released: Vec<(Position, Range<Addr>)>,
        entries: usize,
    ) -> Option<Self> {
        Self::after(&[], segments, released, entries)
    }

    /// The pools of a history. One that continues another history numbers the pools of that one as it does.
    pub(crate) fn of(history: &DeviceHistory, before: Option<&DeviceHistory>) -> Option<Self> {
        let range = |start: Addr, size: Bytes| start..Addr(start.0.saturating_add(size.get()));
        let segments = history.pools.iter();
        let segments = segments.map(|s| (s.position, range(s.address, s.size), s.pool)).collect();
        let entries = history.entries.iter().enumerate();
        let released = entries
            .filter(|(_, entry)| entry.action == HistoryAction::SegmentFree)
            .map(|(position, entry)| (position, range(entry.address, entry.size)))
            .collect();
        let known = before.into_iter().flat_map(|before| &before.pools);
        let known = Self::numbered(known.map(|sighting| sighting.pool));
        Self::after(&known, segments, released, history.entries.len())
    }

    /// The pools by their numbers.
    fn numbered(pools: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
        pools.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// As [`new`](Self::new), where some pools have `known` numbers.
    fn after(
        known: &[(u64, u64)],
        segments: Vec<(Position, Range<Addr>, (u64, u64))>,
        mut released: Vec<(Position, Range<Addr>)>,
        entries: usize,
    ) -> Option<Self> {
        if segments.len().saturating_mul(entries.max(released.len())) > MAX_COMPARISONS {
            return None;
        }
        let others = segments.iter().map(|&(.., pool)| pool).filter(|pool| !known.contains(pool));
        let others = Self::numbered(others);
        let numbers: BTreeMap<(u64, u64), usize> =
            known.iter().chain(&others).enumerate().map(|(number, pool)| (*pool, number)).collect();
        let numbered = segments.into_iter().filter_map(|(position, range, pool)| {
            Some((position, range, PrivatePoolId::new(*numbers.get(&pool)?)))
        });
        let segments: Vec<_> = numbered.collect();
        released.retain(|(_, range)| segments.iter().any(|(_, other, _)| overlap(range, other)));
        released.sort_by_key(|(position, _)| *position);
        if released.len().saturating_mul(entries) > MAX_COMPARISONS {
            return None;
        }
        Some(Self { segments, releases: released })
    }

    /// The pool of the memory at an address before the entry of a position; none for the default pool, and
    /// where no segment shows it.
    #[must_use]
    pub fn at(&self, address: Addr, position: Position) -> Option<PrivatePoolId> {
        let same = |&&(seen, ref range, _): &&(Position, Range<Addr>, PrivatePoolId)| {
            range.contains(&address) && !self.released_between(address, seen, position)
        };
        self.segments.iter().find(same).map(|&(.., pool)| pool)
    }

    fn released_between(&self, address: Addr, one: Position, other: Position) -> bool {
        let (from, to) = (one.min(other), one.max(other));
        let first = self.releases.partition_point(|(position, _)| *position < from);
        let between = self.releases[first..].iter().take_while(|(position, _)| *position < to);
        between.into_iter().any(|(_, range)| range.contains(&address))
    }
}

fn overlap(one: &Range<Addr>, other: &Range<Addr>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Where memory is released to the device.
#[derive(Debug, Default)]
pub(crate) struct Releases {
    /// The positions before which cached memory is released, as by `empty_cache`.
    pub(crate) cache: Vec<Tick>,
    /// The positions before which private pools are deleted.
    pub(crate) pools: Vec<(Tick, PrivatePoolId)>,
    deleted: BTreeSet<PrivatePoolId>,
}

impl Releases {
    /// Those that follow what a recording has.
    pub(crate) fn after(gpu: &GpuRecording) -> Self {
        let deleted = gpu.pool_releases.iter().map(|&(_, pool)| pool).collect();
        Self { deleted, ..Self::default() }
    }

    /// Adds the release of a segment of a pool: with the pool, or by `empty_cache`.
    pub(crate) fn add(&mut self, pool: Option<PrivatePoolId>, tick: Tick) {
        match pool {
            Some(pool) if self.deleted.insert(pool) => self.pools.push((tick, pool)),
            // Another segment of that pool.
            Some(pool) if self.pools.contains(&(tick, pool)) => {}
            _ if self.cache.last() == Some(&tick) => {}
            _ => self.cache.push(tick),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_of_a_pool_until_it_is_released() {
        let range = |from, to| Addr(from)..Addr(to);
        let pools = PrivatePools::new(
            vec![(5, range(100, 200), (0, 2)), (9, range(300, 400), (1, 0))],
            vec![(7, range(100, 200)), (2, range(0, 400)), (3, range(500, 600))],
            20,
        );
        let pools = pools.expect("few");
        let rows = [
            (100, 1, None),
            (100, 3, Some(PrivatePoolId(0))),
            (199, 7, Some(PrivatePoolId(0))),
            (200, 6, None),
            (100, 8, None),
            (350, 3, Some(PrivatePoolId(1))),
            (350, 20, Some(PrivatePoolId(1))),
        ];
        for (address, position, pool) in rows {
            assert_eq!(pools.at(Addr(address), position), pool, "{address} at {position}");
        }
    }

    #[test]
    fn a_history_that_would_take_forever_is_not_followed() {
        let segments = vec![(0, Addr(0)..Addr(512), (0, 1)); 3000];
        assert!(PrivatePools::new(segments.clone(), Vec::new(), 1000).is_some());
        assert!(PrivatePools::new(segments, Vec::new(), 1_000_000).is_none());
        let released = vec![(0, Addr(0)..Addr(512)); 60_000];
        let segments = vec![(0, Addr(0)..Addr(512), (0, 1))];
        assert!(PrivatePools::new(segments, released, 60_000).is_none());
    }
}
