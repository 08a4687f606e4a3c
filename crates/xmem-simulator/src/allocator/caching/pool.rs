//! Pools, and their free blocks by stream in best-fit order.

use super::arena::Block;
use super::private::PrivateId;
use crate::allocator::{PoolKind, Segment};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use xmem_types::StreamId;

/// A pool (`BlockPool`): the default ones are the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PoolId(u32);

/// One stream's part of one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SetId(u32);

/// `BlockPool`, apart from its blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool {
    /// The private pool that it is half of.
    pub(super) owner: Option<PrivateId>,
    /// `get_free_blocks_call_count`: how often a free block was looked for, counted while
    /// garbage is collected.
    pub(super) searches: u64,
}

/// The blocks of one stream in one pool that are not handed out. Together with the stream, the
/// keys have the orders of PyTorch's `BlockComparatorSize` and `BlockComparatorAddress`.
#[derive(Clone, Debug)]
pub(super) struct StreamSet {
    pub(super) stream: StreamId,
    pub(super) pool: PoolId,
    /// Free blocks, by [`Pools::key`].
    pub(super) free: BTreeMap<(u64, u64), u32>,
    /// Unmapped parts of expandable segments, by address.
    pub(super) unmapped: BTreeMap<u64, u32>,
}

/// All pools. A free block only ever serves its own stream, so each stream has sets of its own.
#[derive(Clone, Debug)]
pub(super) struct Pools {
    ties: Ties,
    pools: Vec<Pool>,
    sets: Vec<StreamSet>,
    by_stream: FxHashMap<(PoolId, StreamId), SetId>,
}

/// Bits for a place within a segment, none of which is larger than 1 TiB.
const OFFSET_BITS: u32 = 40;

/// The order of free blocks of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ties {
    /// The one with the lowest address.
    LowestAddress,
    /// The one that was made first.
    OldestBlock,
    /// The one in the segment that was got first; in there, the one with the lowest address.
    OldestSegment,
}

impl Pools {
    pub(super) fn new(ties: Ties) -> Self {
        let mut pools =
            Self { ties, pools: Vec::new(), sets: Vec::new(), by_stream: FxHashMap::default() };
        pools.add_pair(None);
        pools
    }

    /// The place of a free block in its set: by size, then as ties are broken.
    pub(super) fn key(&self, block: &Block, segments: &[Segment]) -> (u64, u64) {
        let place = match self.ties {
            Ties::LowestAddress => block.addr,
            Ties::OldestBlock => block.serial,
            Ties::OldestSegment => {
                let offset = block.addr - segments[block.segment.index()].addr.0;
                (u64::from(block.segment.0) << OFFSET_BITS) | offset
            }
        };
        (block.size, place)
    }

    /// The default pool of a kind.
    pub(super) const fn default_of(kind: PoolKind) -> PoolId {
        PoolId(kind as u32)
    }

    /// A new small and a new large pool; the small one's number, which the large one's follows.
    pub(super) fn add_pair(&mut self, owner: Option<PrivateId>) -> PoolId {
        let first = PoolId(u32::try_from(self.pools.len()).expect("fewer than 2^32 pools"));
        self.pools.extend([Pool { owner, searches: 0 }; 2]);
        first
    }

    /// The pool of `kind` in the pair that starts with `first`.
    pub(super) const fn of_pair(first: PoolId, kind: PoolKind) -> PoolId {
        PoolId(first.0 + kind as u32)
    }

    pub(super) fn pool(&self, id: PoolId) -> &Pool {
        &self.pools[id.0 as usize]
    }

    /// A free block is looked for.
    pub(super) fn count_search(&mut self, id: PoolId) {
        self.pools[id.0 as usize].searches += 1;
    }

    /// The stream's part of a pool, made if it is new.
    pub(super) fn set_of(&mut self, pool: PoolId, stream: StreamId) -> SetId {
        // Most jobs use one stream and the default pools: those sets are found without hashing.
        if let Some(set) = self.sets.get(pool.0 as usize)
            && set.stream == stream
            && set.pool == pool
        {
            return SetId(pool.0);
        }
        if let Some(&id) = self.by_stream.get(&(pool, stream)) {
            return id;
        }
        // The default pools' sets are made together, so that their numbers are the pools'.
        let pools = match pool.0 {
            0 | 1 => vec![PoolId(0), PoolId(1)],
            _ => vec![pool],
        };
        for pool in pools {
            let id = SetId(u32::try_from(self.sets.len()).expect("fewer than 2^32 sets"));
            self.by_stream.insert((pool, stream), id);
            self.sets.push(StreamSet {
                stream,
                pool,
                free: BTreeMap::new(),
                unmapped: BTreeMap::new(),
            });
        }
        self.by_stream[&(pool, stream)]
    }

    pub(super) fn get(&self, id: SetId) -> &StreamSet {
        &self.sets[id.0 as usize]
    }

    pub(super) fn get_mut(&mut self, id: SetId) -> &mut StreamSet {
        &mut self.sets[id.0 as usize]
    }

    /// The pool that a set is a part of.
    pub(super) fn pool_of(&self, id: SetId) -> &Pool {
        self.pool(self.get(id).pool)
    }

    /// A pool's free blocks in the order of its set: by stream, size, address.
    pub(super) fn free_blocks(&self, pool: PoolId) -> Vec<u32> {
        let mut sets: Vec<_> = self.sets.iter().filter(|set| set.pool == pool).collect();
        sets.sort_by_key(|set| set.stream);
        sets.into_iter().flat_map(|set| set.free.values().copied()).collect()
    }

    /// The largest free block of all.
    pub(super) fn largest(&self) -> u64 {
        self.sets
            .iter()
            .filter_map(|set| set.free.last_key_value())
            .map(|(&(size, _), _)| size)
            .max()
            .unwrap_or(0)
    }
}
