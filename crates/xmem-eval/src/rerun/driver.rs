//! Recorded steps, sent to the simulator's allocator.

use crate::recording::{
    HistoryStep, Recording, Reservations, Reuse, Start, StepKind, private_pool,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use xmem_simulator::{
    AddressOrder, AllocatorConfig, BlockHandle, BlockUse, CachingAllocator, Control, Device,
    DeviceConfig, Event, FrameworkAllocator, PoolOptions, PrivatePoolId, RequestIndex, Seed,
    SeedError,
};
use xmem_snapshot::{Action, PoolId};
use xmem_types::{Addr, Bytes, StreamId};

/// The stream that the first shared block is used on: any but its own. Each has another one, so
/// that they complete in whatever order they did.
const FIRST_OTHER_STREAM: u32 = 1 << 31;

/// An allocator on its way through the steps.
#[derive(Clone)]
pub(super) struct Driver {
    pub(super) allocator: CachingAllocator<Vec<Event>>,
    /// Blocks in use, and blocks that wait for other streams, by their recorded addresses.
    held: BTreeMap<Addr, BlockHandle>,
    waiting: BTreeMap<Addr, BlockHandle>,
    /// Blocks freed while another stream used them.
    shared: u32,
    private: PrivateRanges,
    /// Frees of blocks that the allocator never gave out.
    pub(super) unknown_frees: u64,
}

impl Driver {
    /// An allocator in the state in which the recording found it.
    pub(super) fn new(
        recording: &Recording<'_>,
        config: &AllocatorConfig,
        device: &DeviceConfig,
        start: &Start,
        reservations: &Reservations,
    ) -> Result<Self, SeedError> {
        let device = match device.address_order {
            AddressOrder::Recorded => {
                let at = |action: Action| {
                    let entries = recording.trace().iter();
                    entries
                        .filter(move |e| e.action == action)
                        .map(|e| recording.to_simulated(e.addr))
                };
                Device::recorded(device, at(Action::SegmentAlloc), at(Action::SegmentMap))
            }
            _ => Device::new(device),
        };
        let seed = Seed { segments: &start.segments, reservations: &reservations.at_start() };
        let (allocator, handles) = CachingAllocator::seeded(config, device, Vec::new(), seed)?;
        let blocks = start.segments.iter().flat_map(|segment| &segment.blocks);
        let pending: BTreeSet<Addr> =
            blocks.filter(|b| b.used == BlockUse::PendingFree).map(|b| b.addr).collect();
        let (waiting, held): (Vec<_>, Vec<_>) =
            handles.into_iter().partition(|(addr, _)| pending.contains(addr));
        let recorded_addresses = |list: Vec<(Addr, BlockHandle)>| {
            list.into_iter().map(|(addr, handle)| (recording.to_recorded(addr), handle)).collect()
        };
        Ok(Self {
            allocator,
            held: recorded_addresses(held),
            waiting: recorded_addresses(waiting),
            shared: 0,
            private: PrivateRanges::of(recording),
            unknown_frees: 0,
        })
    }

    /// Does what the program did in `step`, the one at position `at`, while the device has `limit`;
    /// what the allocator wrote down about it.
    pub(super) fn step(
        &mut self,
        at: usize,
        step: &HistoryStep,
        limit: Option<Bytes>,
    ) -> Vec<Event> {
        if let Some(limit) = limit {
            self.allocator.device_mut().set_limit(limit);
        }
        let at = RequestIndex(at);
        match step.kind {
            StepKind::Alloc { addr, size, stream, .. } => {
                let pool = self.private.of_block(addr, step.entries.end - 1);
                if let Some(block) = self.allocate(at, size, stream, pool) {
                    self.held.insert(addr, block);
                }
            }
            StepKind::Failed { rounded, stream } => {
                if let Some(block) = self.allocate(at, rounded, stream, None) {
                    let events = self.events();
                    self.allocator.free(at, block);
                    self.events();
                    *self.allocator.observer_mut() = events;
                }
            }
            StepKind::Free { addr, reuse } => self.free(at, addr, reuse),
            StepKind::Complete { addr } => return self.complete(std::iter::once(addr)),
            StepKind::EmptyCache => self.allocator.release_cached(at),
        }
        if limit.is_some() {
            self.allocator.device_mut().lift_limit();
        }
        self.events()
    }

    /// The size of the block in use at a recorded address.
    pub(super) fn block_size(&self, addr: Addr) -> Option<Bytes> {
        self.held.get(&addr).map(|&block| self.allocator.block(block).size)
    }

    /// Frees complete that did so within a step, as far as they have not yet; what the allocator
    /// wrote down about it.
    pub(super) fn complete(&mut self, addresses: impl Iterator<Item = Addr>) -> Vec<Event> {
        for addr in addresses {
            if let Some(block) = self.waiting.remove(&addr) {
                self.allocator.complete(block);
            }
        }
        self.events()
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(self.allocator.observer_mut())
    }

    fn allocate(
        &mut self,
        at: RequestIndex,
        size: Bytes,
        stream: StreamId,
        pool: Option<PrivatePoolId>,
    ) -> Option<BlockHandle> {
        let options = PoolOptions::default();
        if let Some(pool) = pool {
            self.control(at, Control::EnterPool { pool, options });
        }
        let block = self.allocator.allocate(at, size, stream).ok().flatten();
        if let Some(pool) = pool {
            self.control(at, Control::LeavePool(pool));
        }
        block
    }

    fn free(&mut self, at: RequestIndex, addr: Addr, reuse: Reuse) {
        let Some(block) = self.held.remove(&addr) else {
            self.unknown_frees += 1;
            return;
        };
        if reuse == Reuse::Later {
            let stream = StreamId(FIRST_OTHER_STREAM + self.shared);
            self.shared += 1;
            self.control(at, Control::RecordStream { block, stream });
            self.waiting.insert(addr, block);
        }
        self.allocator.free(at, block);
    }

    fn control(&mut self, at: RequestIndex, control: Control) {
        self.allocator.control(at, control).expect("the caching allocator knows all of it");
    }
}

/// The address ranges of private pools. The trace does not have the pool of an allocation; the
/// segments of the snapshot do, for as long as they have been there.
#[derive(Clone)]
struct PrivateRanges(Vec<(Range<Addr>, usize, PrivatePoolId)>);

impl PrivateRanges {
    fn of(recording: &Recording<'_>) -> Self {
        let mut ranges = Vec::new();
        for segment in recording.segments().filter(|segment| segment.pool != PoolId::default()) {
            let range = segment.address..Addr(segment.address.0 + segment.total.get());
            let got = |action| matches!(action, Action::SegmentAlloc | Action::SegmentMap);
            let since = recording
                .trace()
                .iter()
                .rposition(|entry| got(entry.action) && range.contains(&entry.addr));
            if let Some(pool) = private_pool(recording.snapshot, segment.pool) {
                ranges.push((range, since.unwrap_or(0), pool));
            }
        }
        Self(ranges)
    }

    /// The private pool that the block at `addr` is from, if entry `at` allocated it.
    fn of_block(&self, addr: Addr, at: usize) -> Option<PrivatePoolId> {
        let holds = |(range, since, _): &&(Range<Addr>, usize, PrivatePoolId)| {
            *since <= at && range.contains(&addr)
        };
        self.0.iter().find(holds).map(|&(.., pool)| pool)
    }
}
