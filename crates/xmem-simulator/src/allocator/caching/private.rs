//! Private pools: `torch.cuda.MemPool` and CUDA graphs.

use super::hash::slot_order;
use super::pool::{PoolId, Pools};
use crate::allocator::{PoolKind, PoolOptions, PoolService, PrivatePoolId};
use crate::config::Feature;
use xmem_types::{StreamId, TorchVersion};

/// The row of a private pool in [`PrivatePools`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PrivateId(u32);

/// Whose pool it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A `torch.cuda.MemPool`.
    MemPool,
    /// A CUDA graph.
    Graph,
}

/// `PrivatePool`.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrivatePool {
    pub(super) id: PrivatePoolId,
    pub(super) owner: Owner,
    pub(super) options: PoolOptions,
    pub(super) pools: PoolId,
    /// `use_count`: graphs, `MemPool` objects and scopes that refer to it.
    uses: u32,
    /// `cudaMalloc_count`: segments that it holds.
    pub(super) segments: u64,
    /// No longer used, and empty: its id may be used anew.
    gone: bool,
}

/// The allocations that a scope routes to its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    All,
    Stream(StreamId),
}

/// The private pools, and the scopes in which allocations go to them.
#[derive(Clone, Debug)]
pub(super) struct PrivatePools {
    release: TorchVersion,
    pools: Vec<PrivatePool>,
    /// `captures_underway`.
    scopes: Vec<(PrivateId, Route)>,
    /// `graph_pools_freeable`: unused pools that still hold segments.
    freeable: Vec<PrivateId>,
}

impl PrivatePools {
    pub(super) fn new(release: TorchVersion) -> Self {
        Self { release, pools: Vec::new(), scopes: Vec::new(), freeable: Vec::new() }
    }

    /// Returns whether no capture seems to be underway for a program that works on `stream`, so
    /// that events may be queried and cached memory released. Before 2.13 any scope of a private
    /// pool counts.
    pub(super) fn no_capture(&self, stream: StreamId) -> bool {
        if Feature::ScopesAreNoCaptures.is_in(self.release) {
            !self.scopes.iter().any(|&(_, route)| route == Route::Stream(stream))
        } else {
            self.scopes.is_empty()
        }
    }

    pub(super) fn get(&self, id: PrivateId) -> &PrivatePool {
        &self.pools[id.0 as usize]
    }

    pub(super) fn get_mut(&mut self, id: PrivateId) -> &mut PrivatePool {
        &mut self.pools[id.0 as usize]
    }

    pub(super) fn find(&self, id: PrivatePoolId) -> Option<PrivateId> {
        let row = self.pools.iter().position(|pool| pool.id == id && !pool.gone)?;
        Some(PrivateId(row as u32))
    }

    /// `get_pool`: where an allocation on `stream` goes.
    pub(super) fn route(&self, stream: StreamId, kind: PoolKind) -> PoolId {
        let serves = |&&(_, route): &&(PrivateId, Route)| match route {
            Route::All => true,
            Route::Stream(captured) => captured == stream,
        };
        let scope = if Feature::InnermostScope.is_in(self.release) {
            self.scopes.iter().rev().find(serves)
        } else {
            self.scopes.iter().find(serves)
        };
        match scope {
            Some(&(id, _)) => Pools::of_pair(self.get(id).pools, kind),
            None => Pools::default_of(kind),
        }
    }

    /// `create_or_incref_pool`.
    fn refer(
        &mut self,
        id: PrivatePoolId,
        owner: Owner,
        options: PoolOptions,
        pools: &mut Pools,
    ) -> PrivateId {
        if let Some(found) = self.find(id) {
            self.get_mut(found).uses += 1;
            self.freeable.retain(|&freeable| freeable != found);
            return found;
        }
        let row = PrivateId(u32::try_from(self.pools.len()).expect("fewer than 2^32 pools"));
        let pools = pools.add_pair(Some(row));
        self.pools.push(PrivatePool {
            id,
            owner,
            options,
            pools,
            uses: 1,
            segments: 0,
            gone: false,
        });
        row
    }

    /// Enters `torch.cuda.use_mem_pool`; the `MemPool` is made if it is new.
    pub(super) fn enter(&mut self, id: PrivatePoolId, options: PoolOptions, pools: &mut Pools) {
        if self.find(id).is_none() {
            self.refer(id, Owner::MemPool, options, pools);
        }
        let row = self.refer(id, Owner::MemPool, options, pools);
        self.scopes.push((row, Route::All));
    }

    /// Begins a capture on `stream` (`CUDAGraph::capture_begin`).
    pub(super) fn capture(&mut self, id: PrivatePoolId, stream: StreamId, pools: &mut Pools) {
        let row = self.refer(id, Owner::Graph, PoolOptions::default(), pools);
        self.scopes.push((row, Route::Stream(stream)));
    }

    /// `endAllocateToPool`, and for a `MemPool` the `releasePool` that follows. False if the pool
    /// has no open scope.
    pub(super) fn leave(&mut self, id: PrivatePoolId) -> bool {
        let Some(row) = self.find(id) else { return false };
        let Some(scope) = self.scopes.iter().position(|&(open, _)| open == row) else {
            return false;
        };
        self.scopes.remove(scope);
        if self.get(row).owner == Owner::MemPool {
            self.unrefer(row);
        }
        true
    }

    /// `releasePool`: the graph or `MemPool` is gone. None if there is no such pool in use.
    pub(super) fn release(&mut self, id: PrivatePoolId) -> Option<PrivateId> {
        let row = self.find(id).filter(|&row| self.get(row).uses > 0)?;
        self.unrefer(row);
        Some(row)
    }

    fn unrefer(&mut self, row: PrivateId) {
        let pool = self.get_mut(row);
        pool.uses -= 1;
        if pool.uses == 0 {
            self.freeable.push(row);
        }
    }

    /// Pools that serve other allocations rather than letting them fail (`use_on_oom_pools`).
    pub(super) fn last_resorts(&self) -> Vec<PrivateId> {
        let mut rows: Vec<PrivateId> = (0..self.pools.len() as u32).map(PrivateId).collect();
        rows.retain(|&row| {
            let pool = self.get(row);
            pool.options.service == PoolService::LastResort && pool.uses > 0
        });
        self.order_as_hashed(&mut rows);
        rows
    }

    /// Pools that are no longer used.
    pub(super) fn freeable(&self) -> Vec<PrivateId> {
        let mut rows = self.freeable.clone();
        self.order_as_hashed(&mut rows);
        rows
    }

    /// Puts pools in the order of PyTorch's hash tables. What is hashed is a number that PyTorch
    /// gives to `MemPool`s and graphs, from 1 in the order of their creation (`MempoolIdHash`).
    fn order_as_hashed(&self, rows: &mut [PrivateId]) {
        rows.sort_by_key(|&PrivateId(row)| slot_order(u64::from(row) + 1));
    }

    /// Forgets an unused pool, once it holds no segment.
    pub(super) fn forget_if_empty(&mut self, row: PrivateId) {
        let pool = self.get_mut(row);
        if pool.segments == 0 {
            pool.gone = true;
            self.freeable.retain(|&freeable| freeable != row);
        }
    }
}
