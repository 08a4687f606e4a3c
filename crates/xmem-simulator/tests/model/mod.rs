//! A second, slow implementation of the same allocator: segments as plain lists of blocks, every
//! search a scan, every figure summed up anew. It shares no code with the simulator, only the
//! words of its interface, and was written from PyTorch's files, not from the simulator's.
//!
//! All sizes are bytes, all addresses device addresses.

mod device;
mod expandable;
mod figures;
mod free;
mod malloc;
mod order;
mod place;
mod pools;
mod release;
mod sizes;
mod streams;
pub(crate) mod uncached;

pub(crate) use figures::{Figures, Gauge, OfPools};
pub(crate) use place::{Block, Pool, Segment, Use};

use device::ModelDevice;
use order::HashOrder;
use pools::{PrivatePool, Scope};
use std::collections::BTreeMap;
use streams::Streams;
use xmem_simulator::{AllocatorConfig, DeviceConfig, Event, EventAction, Operation};
use xmem_types::{Addr, BlockId, Bytes, StreamId, TorchVersion};

const MIB: u64 = 1 << 20;

/// The result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A block at this address.
    Block(u64),
    /// Nothing to hand out.
    Nothing,
    /// Out of memory.
    Full { rounded: u64, tried: u64 },
    /// An exabyte or more.
    TooLarge,
    /// No program could do that here; nothing changed.
    Refused,
}

/// PyTorch's `DeviceCachingAllocator`, slowly.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) config: AllocatorConfig,
    pub(crate) device: ModelDevice,
    pub(crate) segments: Vec<Segment>,
    /// Everything that happened.
    pub(crate) events: Vec<Event>,
    pub(crate) figures: Figures,
    /// Several frees completed in one step, and nothing says in which order.
    pub(crate) order_was_open: bool,
    /// PyTorch is beyond its own rules from here on: it uses memory that it freed, or stops with an
    /// assertion. Nothing can be said any more.
    pub(crate) undefined: bool,
    /// PyTorch did what the simulator does not follow: see where this is set.
    pub(crate) beyond_the_simulator: bool,
    /// The blocks that the program holds; `None` for an allocation of zero bytes.
    held: BTreeMap<BlockId, Option<u64>>,
    /// `torch.cuda.set_per_process_memory_fraction`, or the option.
    fraction: Option<f64>,
    /// `get_free_blocks_call_count` of each pool.
    searches: BTreeMap<Pool, u64>,
    streams: Streams,
    /// `captures_underway`.
    scopes: Vec<Scope>,
    /// `graph_pools`.
    pools: BTreeMap<u32, PrivatePool>,
    pools_made: u64,
    /// `graph_pools_freeable`.
    unused: HashOrder,
    /// `use_on_oom_pools`.
    last_resort: HashOrder,
    /// One of them was deleted, which PyTorch notices only since 2.11.
    lost_last_resort: bool,
    /// The next number of a block: PyTorch's `Block*`.
    next_block: u64,
    lives: u64,
    segments_made: u64,
    /// The program's current stream: of the last allocation that got as far as the allocator, or of
    /// the capture begun since. An assumption, as only the program knows.
    current_stream: u32,
}

impl Model {
    pub(crate) fn new(config: &AllocatorConfig, device: &DeviceConfig) -> Self {
        Self {
            config: config.clone(),
            device: ModelDevice::new(device),
            segments: Vec::new(),
            events: Vec::new(),
            figures: Figures::default(),
            order_was_open: false,
            undefined: false,
            beyond_the_simulator: false,
            held: BTreeMap::new(),
            fraction: config.memory_fraction,
            searches: BTreeMap::new(),
            streams: Streams::new(device.completion),
            scopes: Vec::new(),
            pools: BTreeMap::new(),
            pools_made: 0,
            unused: HashOrder::default(),
            last_resort: HashOrder::default(),
            lost_last_resort: false,
            next_block: 0,
            lives: 0,
            segments_made: 0,
            current_stream: 0,
        }
    }

    pub(crate) fn apply(&mut self, operation: &Operation) -> Outcome {
        match *operation {
            Operation::Alloc { block, size, stream } => {
                if self.held.contains_key(&block) {
                    return Outcome::Refused;
                }
                let outcome = self.allocate(size.get(), stream.0);
                let addr = if let Outcome::Block(addr) = outcome { Some(addr) } else { None };
                self.held.insert(block, addr);
                outcome
            }
            Operation::Free(block) => {
                let Some(addr) = self.held.remove(&block) else { return Outcome::Refused };
                if let Some(addr) = addr {
                    self.free(addr);
                }
                Outcome::Nothing
            }
            Operation::RecordStream { block, stream } => {
                let Some(&addr) = self.held.get(&block) else { return Outcome::Refused };
                if let Some(addr) = addr {
                    self.record_stream(addr, stream.0);
                }
                Outcome::Nothing
            }
            Operation::Synchronize => {
                self.streams.synchronize();
                Outcome::Nothing
            }
            Operation::EmptyCache => {
                self.release_cached();
                Outcome::Nothing
            }
            Operation::MemoryFraction(fraction) => {
                self.fraction = Some(fraction);
                Outcome::Nothing
            }
            Operation::ResetPeaks => {
                self.figures.reset_peaks();
                Outcome::Nothing
            }
            Operation::Capacity(available) => {
                self.device.limit = Some(available.get());
                Outcome::Nothing
            }
            Operation::EnterPool { pool, options } => self.enter_pool(pool.0, options),
            Operation::BeginCapture { pool, stream } => self.begin_capture(pool.0, stream.0),
            Operation::LeavePool(pool) => self.leave_pool(pool.0),
            Operation::ReleasePool(pool) => self.release_pool(pool.0),
        }
    }

    /// Address, size and requested bytes of the block that the program knows by this number.
    pub(crate) fn find(&self, block: BlockId) -> Option<(u64, u64, u64)> {
        let addr = (*self.held.get(&block)?)?;
        let (s, b) = self.at(addr);
        let block = &self.segments[s].blocks[b];
        match block.used {
            Use::Held { requested } => Some((addr, block.size, requested)),
            _ => None,
        }
    }

    /// The blocks that the program could free now.
    pub(crate) fn live(&self) -> Vec<BlockId> {
        self.held.keys().copied().collect()
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.segments.iter().map(Segment::mapped).sum()
    }

    /// The largest block that could be handed out without asking the device
    /// (`DeviceCachingAllocator::cacheInfo`).
    pub(crate) fn largest_free(&self) -> u64 {
        let blocks = self.segments.iter().flat_map(|s| &s.blocks);
        blocks.filter(|b| b.used.is_free()).map(|b| b.size).max().unwrap_or(0)
    }

    /// The segment and the block at an address.
    fn at(&self, addr: u64) -> (usize, usize) {
        for (s, segment) in self.segments.iter().enumerate() {
            for b in 0..segment.blocks.len() {
                if segment.addr_of(b) == addr {
                    return (s, b);
                }
            }
        }
        panic!("no block at {addr:#x}");
    }

    /// Returns whether the simulated PyTorch is 2.`minor` or later.
    fn since(&self, minor: u16) -> bool {
        self.config.release >= TorchVersion::new(2, minor)
    }

    fn new_block(&mut self, size: u64, used: Use) -> Block {
        self.next_block += 1;
        Block {
            number: self.next_block,
            size,
            used,
            life: 0,
            other_streams: Vec::new(),
            free_since: 0,
        }
    }

    /// Writes an event down, and all figures as they are after it.
    fn tell(&mut self, action: EventAction, addr: u64, size: u64, stream: u32) {
        self.events.push(Event {
            action,
            addr: Addr(addr),
            size: Bytes(size),
            stream: StreamId(stream),
        });
        self.figures.update(&self.segments, self.config.max_split_size.map(Bytes::get));
    }
}
