//! One allocator, driven step by step: what a program does to it besides allocating and freeing,
//! and what it answers.

use crate::allocator::{
    AllocFailure, BlockHandle, Control, FrameworkAllocator, PoolOptions, PrivatePoolId,
    RequestIndex, Unsupported,
};
use crate::replay::{ReplayDriver, Served};
use std::fmt;
use xmem_types::{BlockId, Bytes, Request, RequestKind, StreamId};

/// One step of a program, as the allocator sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    /// Asks for a block of `size` requested bytes.
    Alloc {
        /// The caller's number for it.
        block: BlockId,
        /// Bytes, not rounded.
        size: Bytes,
        /// The stream it is used on.
        stream: StreamId,
    },
    /// Gives a block back.
    Free(BlockId),
    /// `Tensor.record_stream`: another stream uses the block too.
    RecordStream {
        /// The block.
        block: BlockId,
        /// The other stream.
        stream: StreamId,
    },
    /// `torch.cuda.synchronize`.
    Synchronize,
    /// `torch.cuda.empty_cache`.
    EmptyCache,
    /// `torch.cuda.set_per_process_memory_fraction`.
    MemoryFraction(f64),
    /// `torch.cuda.reset_peak_memory_stats`.
    ResetPeaks,
    /// From here on the device has this much for the allocator.
    Capacity(Bytes),
    /// Enters `torch.cuda.use_mem_pool`; the pool is made if it is new.
    EnterPool {
        /// The pool.
        pool: PrivatePoolId,
        /// Its options, if it is new.
        options: PoolOptions,
    },
    /// Begins to capture a CUDA graph on a stream.
    BeginCapture {
        /// The graph's pool.
        pool: PrivatePoolId,
        /// The capturing stream.
        stream: StreamId,
    },
    /// Leaves the pool's `use_mem_pool`, or ends its capture.
    LeavePool(PrivatePoolId),
    /// The `MemPool` or the graph is deleted.
    ReleasePool(PrivatePoolId),
}

/// The outcome of an [`Operation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A block was handed out.
    Block(BlockHandle),
    /// Nothing to hand out: not an allocation, or one of zero bytes.
    Nothing,
    /// The allocation failed; the program can continue.
    Failed(AllocFailure),
}

/// An operation that no program could carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misuse {
    /// The number stands for no block: never allocated, or freed already.
    NoSuchBlock(BlockId),
    /// The number stands for a block that is in use.
    BlockInUse(BlockId),
    /// The allocator cannot do it.
    Unsupported(Unsupported),
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoSuchBlock(id) => write!(f, "block {} is not allocated", id.0),
            Self::BlockInUse(id) => write!(f, "block {} is allocated already", id.0),
            Self::Unsupported(Unsupported::ByThisAllocator) => {
                f.write_str("this allocator does not support the operation")
            }
            Self::Unsupported(Unsupported::NoOpenScope(pool)) => {
                write!(f, "pool {} is not in use at this point", pool.0)
            }
            Self::Unsupported(Unsupported::NoSuchPool(pool)) => {
                write!(f, "pool {} does not exist at this point", pool.0)
            }
        }
    }
}

impl std::error::Error for Misuse {}

/// An allocator and the blocks that the program holds.
#[derive(Clone, Debug)]
pub struct Session<A> {
    driver: ReplayDriver<'static, A>,
    steps: usize,
}

impl<A: FrameworkAllocator> Session<A> {
    /// A program that holds nothing.
    pub fn new(allocator: A) -> Self {
        Self { driver: ReplayDriver::open_ended(allocator), steps: 0 }
    }

    /// The allocator as it is now.
    pub fn allocator(&self) -> &A {
        self.driver.allocator()
    }

    /// The allocator, to take what its observer heard.
    pub fn allocator_mut(&mut self) -> &mut A {
        self.driver.allocator_mut()
    }

    /// Carries one operation out.
    ///
    /// # Errors
    /// If it makes no sense at this point; then nothing has changed.
    pub fn apply(&mut self, operation: &Operation) -> Result<Outcome, Misuse> {
        let at = RequestIndex(self.steps);
        let control = match *operation {
            Operation::Alloc { block, size, stream } => {
                if self.driver.is_held(block) {
                    return Err(Misuse::BlockInUse(block));
                }
                self.steps += 1;
                let kind = RequestKind::Alloc { size, stream };
                return Ok(self.allocate(at, &Request { block, kind }));
            }
            Operation::Free(block) => {
                self.check_held(block)?;
                let request = Request { block, kind: RequestKind::Free };
                self.driver.serve(at, &request).expect("a free does not fail");
                self.steps += 1;
                return Ok(Outcome::Nothing);
            }
            Operation::EmptyCache => {
                self.allocator_mut().release_cached(at);
                self.steps += 1;
                return Ok(Outcome::Nothing);
            }
            Operation::Capacity(available) => {
                self.allocator_mut().device_mut().set_limit(available);
                self.steps += 1;
                return Ok(Outcome::Nothing);
            }
            Operation::RecordStream { block, stream } => {
                self.check_held(block)?;
                let Some(block) = self.driver.block(block) else { return Ok(Outcome::Nothing) };
                Control::RecordStream { block, stream }
            }
            Operation::Synchronize => Control::Synchronize,
            Operation::MemoryFraction(fraction) => Control::MemoryFraction(fraction),
            Operation::ResetPeaks => Control::ResetPeaks,
            Operation::EnterPool { pool, options } => Control::EnterPool { pool, options },
            Operation::BeginCapture { pool, stream } => Control::BeginCapture { pool, stream },
            Operation::LeavePool(pool) => Control::LeavePool(pool),
            Operation::ReleasePool(pool) => Control::ReleasePool(pool),
        };
        self.allocator_mut().control(at, control).map_err(Misuse::Unsupported)?;
        self.steps += 1;
        Ok(Outcome::Nothing)
    }

    fn check_held(&self, block: BlockId) -> Result<(), Misuse> {
        if self.driver.is_held(block) { Ok(()) } else { Err(Misuse::NoSuchBlock(block)) }
    }

    fn allocate(&mut self, at: RequestIndex, request: &Request) -> Outcome {
        match self.driver.serve(at, request) {
            Ok(Served::Allocated(handle)) => Outcome::Block(handle),
            Ok(Served::Freed | Served::Nothing) => Outcome::Nothing,
            Err(failure) => {
                self.driver.hold_nothing(request.block);
                Outcome::Failed(failure)
            }
        }
    }
}
