//! Free blocks, by stream and pool, in best-fit order.

use super::PoolKind;
use rustc_hash::FxBuildHasher;
use std::collections::{BTreeMap, HashMap};
use xmem_types::StreamId;

/// One stream's part of one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PoolId(u32);

/// The free blocks of one stream in one pool, ordered by (size, address): with the stream, the
/// order of PyTorch's `BlockComparatorSize`.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub(super) stream: StreamId,
    pub(super) free: BTreeMap<(u64, u64), u32>,
}

/// All pools. A free block only ever serves its own stream, so each stream has sets of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Pools {
    pools: Vec<Pool>,
    by_stream: HashMap<(StreamId, PoolKind), PoolId, FxBuildHasher>,
}

impl Pools {
    /// The pool of `stream`, made if it is new. Small and large pools come in pairs.
    pub(super) fn of(&mut self, stream: StreamId, kind: PoolKind) -> PoolId {
        // Most jobs use one stream: the first pair is found without hashing.
        if let Some(first) = self.pools.first()
            && first.stream == stream
        {
            return PoolId(kind as u32);
        }
        if let Some(&id) = self.by_stream.get(&(stream, kind)) {
            return id;
        }
        let base = u32::try_from(self.pools.len()).expect("fewer than 2^31 streams");
        for (i, each) in [PoolKind::Small, PoolKind::Large].into_iter().enumerate() {
            self.by_stream.insert((stream, each), PoolId(base + i as u32));
            self.pools.push(Pool { stream, free: BTreeMap::new() });
        }
        PoolId(base + kind as u32)
    }

    pub(super) fn get(&self, id: PoolId) -> &Pool {
        &self.pools[id.0 as usize]
    }

    pub(super) fn get_mut(&mut self, id: PoolId) -> &mut Pool {
        &mut self.pools[id.0 as usize]
    }

    /// The pools of one kind in the order of their streams.
    pub(super) fn in_stream_order(&self, kind: PoolKind) -> Vec<PoolId> {
        let mut ids: Vec<_> = self
            .by_stream
            .iter()
            .filter(|((_, k), _)| *k == kind)
            .map(|(&(stream, _), &id)| (stream, id))
            .collect();
        ids.sort_by_key(|&(stream, _)| stream);
        ids.into_iter().map(|(_, id)| id).collect()
    }

    /// The largest free block of all.
    pub(super) fn largest(&self) -> u64 {
        self.pools
            .iter()
            .filter_map(|pool| pool.free.last_key_value())
            .map(|(&(size, _), _)| size)
            .max()
            .unwrap_or(0)
    }
}
