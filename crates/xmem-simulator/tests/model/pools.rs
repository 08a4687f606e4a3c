//! Private pools: `torch.cuda.MemPool` and CUDA graphs.

use super::malloc::{Found, Wanted};
use super::order::Numbered;
use super::place::{Pool, Segment};
use super::{MIB, Model, Outcome};
use xmem_simulator::{Operation, PoolOptions, PoolService, PrivatePoolId, Splitting};

/// `PrivatePool`.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrivatePool {
    /// `use_count`.
    users: u32,
    /// `cudaMalloc_count`.
    pub(super) device_blocks: u64,
    options: PoolOptions,
    owner: Owner,
    /// A `MemPool` object, or graphs.
    owners: u32,
    /// The number that PyTorch hashes: pools are counted from 1.
    number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    MemPool,
    Graph,
}

/// A scope in which allocations are sent to a private pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    pool: u32,
    /// The capturing stream; every stream for a `MemPool`.
    stream: Option<u32>,
}

impl Model {
    /// `get_pool`: the scope that was opened last counts; before 2.10 the one opened first.
    pub(super) fn pool_for(&self, size: u64, stream: u32) -> Pool {
        let concerns = |scope: &&Scope| scope.stream.is_none_or(|s| s == stream);
        let mut concerned = self.scopes.iter().filter(concerns);
        let scope = if self.since(10) { concerned.next_back() } else { concerned.next() };
        Pool { private: scope.map(|scope| scope.pool), small: size <= MIB }
    }

    /// Returns whether a capture seems to be underway, so that events cannot be queried:
    /// `captures_underway` is not empty; since 2.13 `is_capture_context`, that the current stream
    /// is captured.
    pub(super) fn is_capturing(&self) -> bool {
        let current = |scope: &Scope| scope.stream == Some(self.current_stream);
        if self.since(13) { self.scopes.iter().any(current) } else { !self.scopes.is_empty() }
    }

    pub(super) fn enter_pool(&mut self, pool: u32, options: PoolOptions) -> Outcome {
        if !self.can_begin(pool) {
            return Outcome::Refused;
        }
        if !self.pools.contains_key(&pool) {
            // `torch.cuda.MemPool`
            let number = self.make_pool(pool, Owner::MemPool, options);
            let made = self.pools.get_mut(&pool).expect("just made");
            (made.users, made.owners) = (1, 1);
            if options.service == PoolService::LastResort {
                self.last_resort.insert(Numbered { pool, number });
            }
        }
        self.pools.get_mut(&pool).expect("known").users += 1;
        self.scopes.push(Scope { pool, stream: None });
        Outcome::Nothing
    }

    pub(super) fn begin_capture(&mut self, pool: u32, stream: u32) -> Outcome {
        if !self.can_begin(pool) {
            return Outcome::Refused;
        }
        if !self.pools.contains_key(&pool) {
            self.make_pool(pool, Owner::Graph, PoolOptions::default());
        }
        let known = self.pools.get_mut(&pool).expect("known");
        known.users += 1;
        known.owners += 1;
        self.scopes.push(Scope { pool, stream: Some(stream) });
        self.current_stream = stream;
        Outcome::Nothing
    }

    /// The pools of the open scopes, oldest first.
    pub(crate) fn open_scopes(&self) -> Vec<PrivatePoolId> {
        self.scopes.iter().map(|scope| PrivatePoolId(scope.pool)).collect()
    }

    /// The pools that somebody owns, as often as they do.
    pub(crate) fn used_pools(&self) -> Vec<PrivatePoolId> {
        let users = self.pools.iter().flat_map(|(&id, pool)| vec![id; pool.owners as usize]);
        users.map(PrivatePoolId).collect()
    }

    /// Returns whether no program could do that here.
    pub(crate) fn refuses(&self, operation: &Operation) -> bool {
        self.clone().apply(operation) == Outcome::Refused
    }

    fn make_pool(&mut self, pool: u32, owner: Owner, options: PoolOptions) -> u64 {
        self.pools_made += 1;
        let number = self.pools_made;
        let new = PrivatePool { users: 0, device_blocks: 0, options, owner, owners: 0, number };
        self.pools.insert(pool, new);
        number
    }

    /// Returns whether `beginAllocateToPool` accepts it: nobody is in it, and somebody owns it.
    fn can_begin(&self, pool: u32) -> bool {
        !self.scopes.iter().any(|scope| scope.pool == pool)
            && self.pools.get(&pool).is_none_or(|known| known.users > 0)
    }

    /// `endAllocateToPool`, for a `MemPool` also `releasePool`.
    pub(super) fn leave_pool(&mut self, pool: u32) -> Outcome {
        let Some(at) = self.scopes.iter().position(|scope| scope.pool == pool) else {
            return Outcome::Refused;
        };
        let scope = self.scopes.remove(at);
        if scope.stream.is_none() {
            self.lose_user(pool);
        }
        Outcome::Nothing
    }

    /// `MemPool::~MemPool`, which empties the pool, or `CUDAGraph::reset`, which does not.
    pub(super) fn release_pool(&mut self, pool: u32) -> Outcome {
        let Some(known) = self.pools.get(&pool).filter(|known| known.owners > 0) else {
            return Outcome::Refused;
        };
        let owner = known.owner;
        let is_last = known.users == 1;
        let impossible = match owner {
            // `synchronize_and_free_events` asserts that no scope is open.
            Owner::MemPool => is_last && self.is_capturing(),
            // There is no graph before the end of its capture.
            Owner::Graph => is_last && self.scopes.iter().any(|scope| scope.pool == pool),
        };
        if impossible {
            return Outcome::Refused;
        }
        self.pools.get_mut(&pool).expect("known").owners -= 1;
        let is_unused = self.lose_user(pool);
        if owner == Owner::MemPool {
            if !self.since(11) {
                self.lost_last_resort |= self.last_resort.list().contains(&pool);
            }
            self.last_resort.remove(pool);
            if is_unused {
                self.wait_for_events(Some(pool));
                self.release_private_blocks(pool);
            }
        }
        Outcome::Nothing
    }

    /// `releasePool`. Whether nobody is left.
    fn lose_user(&mut self, pool: u32) -> bool {
        let known = self.pools.get_mut(&pool).expect("it is in use");
        known.users -= 1;
        let (is_unused, number) = (known.users == 0, known.number);
        if is_unused {
            self.unused.insert(Numbered { pool, number });
        }
        is_unused
    }

    pub(super) fn release_private_blocks(&mut self, pool: u32) {
        self.release_pool_blocks(Pool { private: Some(pool), small: true });
        self.release_pool_blocks(Pool { private: Some(pool), small: false });
        if self.pools[&pool].device_blocks == 0 {
            let lives = |segment: &Segment| segment.pool.private == Some(pool);
            self.undefined |= self.segments.iter().any(lives);
            self.pools.remove(&pool);
            self.unused.remove(pool);
        }
    }

    pub(super) fn splits_never(&self, pool: Pool) -> bool {
        let private = pool.private.and_then(|pool| self.pools.get(&pool));
        private.is_some_and(|pool| pool.options.splitting == Splitting::Never)
    }

    /// `try_mempool_fallback`: pools made with `use_on_oom`.
    pub(super) fn last_resort_block(&mut self, wanted: &mut Wanted) -> Option<Found> {
        if wanted.pool.private.is_some() {
            return None;
        }
        // `~MemPool` did not take it off the list.
        self.undefined |= self.lost_last_resort;
        self.beyond_the_simulator |= self.last_resort.is_ambiguous();
        for private in self.last_resort.list() {
            let there = Wanted {
                pool: Pool { private: Some(private), ..wanted.pool },
                expandable: wanted.expandable && !self.since(10),
                ..*wanted
            };
            if let Some(found) = self.get_free_block(&there) {
                *wanted = there;
                return Some(found);
            }
        }
        None
    }
}
