//! A program's requests, served one by one by an allocator: every replay stands on this driver.

use super::attempts::Attempts;
use super::table::{Allocated, BlockTable, Freed};
use super::{OutOfMemory, fragmentation};
use crate::allocator::{
    AllocFailure, BlockHandle, Control, FrameworkAllocator, PoolOptions, RequestIndex,
};
use xmem_types::{
    AllocatorCall, BlockId, Bytes, Diagnostics, Fallbacks, PlacedCall, Request, RequestKind,
    Severity, StreamId, WithheldReason, Workload,
};

/// An allocator with the blocks that a program holds from it.
///
/// Each request is one call of [`serve`](ReplayDriver::serve), so that the caller can look at the
/// allocator before and after it. Requests that make no sense change nothing and are counted in
/// [`diagnostics`](ReplayDriver::diagnostics).
///
/// ```
/// use xmem_simulator::{AllocatorConfig, Device, DeviceConfig, Framework, FrameworkAllocator};
/// use xmem_simulator::{ReplayDriver, RequestIndex};
/// use xmem_types::{BlockId, Bytes, Request, RequestKind, StreamId, Workload};
///
/// let kind = RequestKind::Alloc { size: Bytes::mib(5), stream: StreamId(0) };
/// let requests = [Request { block: BlockId(0), kind }];
/// let device = Device::new(&DeviceConfig::default());
/// let allocator = AllocatorConfig::default().over(device, ());
/// let mut driver = ReplayDriver::new(allocator, Workload::from(&requests));
/// for (at, request) in requests.iter().enumerate() {
///     assert!(driver.serve(RequestIndex(at), request).is_ok());
/// }
/// assert_eq!(driver.allocator().reserved(), Bytes::mib(20));
/// assert_eq!(driver.live().count(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct ReplayDriver<'w, A> {
    allocator: A,
    blocks: BlockTable,
    attempts: Attempts<'w>,
    /// The calls that are still to come.
    calls: &'w [PlacedCall],
    diagnostics: Diagnostics,
}

/// The result of a request that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// A block was handed out.
    Allocated(BlockHandle),
    /// A block was freed.
    Freed,
    /// The allocator was not involved: an allocation of zero bytes, its free, or a free that makes
    /// no sense.
    Nothing,
}

impl<'w, A: FrameworkAllocator> ReplayDriver<'w, A> {
    /// A program that holds nothing. `work` are the requests that will be served.
    pub fn new(allocator: A, work: Workload<'w>) -> Self {
        let blocks = BlockTable::for_requests(work.requests);
        let calls = work.calls;
        Self { calls, ..Self::with_table(allocator, blocks, work.fallbacks) }
    }

    /// A program that holds nothing and whose requests are not known yet.
    pub(crate) fn open_ended(allocator: A) -> ReplayDriver<'static, A> {
        let nothing = Workload::from(&[] as &'static [Request]);
        ReplayDriver::with_table(allocator, BlockTable::sparse(), nothing.fallbacks)
    }

    fn with_table(allocator: A, blocks: BlockTable, fallbacks: &'w Fallbacks) -> Self {
        let attempts = Attempts::new(fallbacks);
        let diagnostics = Diagnostics::default();
        Self { allocator, blocks, attempts, calls: &[], diagnostics }
    }

    /// The allocator as it is now.
    pub fn allocator(&self) -> &A {
        &self.allocator
    }

    /// The allocator, for everything that is not a request.
    pub fn allocator_mut(&mut self) -> &mut A {
        &mut self.allocator
    }

    /// The blocks that the program holds: by number, unless numbers are far apart.
    pub fn live(&self) -> impl Iterator<Item = (BlockId, BlockHandle)> {
        self.blocks.live()
    }

    /// The block that the program holds under this number, if there is memory behind it.
    pub fn block(&self, id: BlockId) -> Option<BlockHandle> {
        self.blocks.handle(id)
    }

    /// The number of allocations that were served with less than was requested first, as their
    /// [`Fallbacks`] allow.
    pub fn smaller(&self) -> u64 {
        self.attempts.smaller()
    }

    /// The oddities of the requests so far.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// Serves one request.
    ///
    /// # Errors
    /// If the allocation fails, in all sizes that it may have. The program then holds what it held
    /// before, and may continue.
    pub fn serve(&mut self, at: RequestIndex, request: &Request) -> Result<Served, AllocFailure> {
        self.call_before(at);
        match request.kind {
            RequestKind::Alloc { size, stream } => self.allocate(at, request.block, size, stream),
            RequestKind::Free => Ok(self.free(at, request.block)),
        }
    }

    /// Serves one request; if it fails, [repeats it without limits](Self::repeat_without_limits).
    pub fn serve_lifting_limits(&mut self, at: RequestIndex, request: &Request) -> Served {
        self.serve(at, request).unwrap_or_else(|_| self.repeat_without_limits(at, request))
    }

    /// Repeats a request that failed, after lifting all limits of device and allocator. A request
    /// beyond any device is left out.
    pub fn repeat_without_limits(&mut self, at: RequestIndex, request: &Request) -> Served {
        let RequestKind::Alloc { size, stream } = request.kind else { return Served::Nothing };
        self.allocator.lift_limit();
        let result = self.allocator.allocate(at, size, stream);
        if result.is_err() {
            self.diagnostics.withhold(WithheldReason::RequestBeyondAnyDevice, 1, || {
                format!(
                    "request {at} is for {size}, more than the memory of any device; it is left out"
                )
            });
        }
        self.hold(at, request.block, result.unwrap_or_default())
    }

    /// The out-of-memory that `failure` of `request` is, before anything else happens.
    pub fn out_of_memory(
        &self,
        at: RequestIndex,
        request: &Request,
        failure: AllocFailure,
    ) -> OutOfMemory {
        let (requested, stream) = match request.kind {
            RequestKind::Alloc { size, stream } => (size, stream),
            RequestKind::Free => (Bytes::ZERO, StreamId(0)),
        };
        let tried = match failure {
            AllocFailure::OutOfMemory(out) => out.tried,
            AllocFailure::TooLarge => requested,
        };
        let reserved = self.allocator.reserved();
        OutOfMemory {
            request: at,
            block: request.block,
            stream,
            requested,
            tried,
            allocated: self.allocator.allocated(),
            reserved,
            device_free: self.allocator.device().free_bytes().unwrap_or_default(),
            largest_cached: self.allocator.largest_free(),
            fragmentation: fragmentation::of_state(&self.allocator.state()),
            stats: self.allocator.stats(),
            needed: Bytes(reserved.get().saturating_add(tried.get())),
        }
    }

    /// Carries out what the program does before this request.
    fn call_before(&mut self, at: RequestIndex) {
        while let Some((next, rest)) = self.calls.split_first()
            && next.before <= at.0
        {
            self.call(at, next.call);
            self.calls = rest;
        }
    }

    fn call(&mut self, at: RequestIndex, call: AllocatorCall) {
        let control = match call {
            AllocatorCall::ReleaseCache => return self.allocator.release_cached(at),
            AllocatorCall::EnterPool(pool) => {
                Control::EnterPool { pool, options: PoolOptions::default() }
            }
            AllocatorCall::LeavePool(pool) => Control::LeavePool(pool),
            AllocatorCall::ReleasePool(pool) => Control::ReleasePool(pool),
            AllocatorCall::AwaitStreams(id) => match self.block(id) {
                Some(block) => Control::AwaitStreams { block, id },
                None => return,
            },
            AllocatorCall::Complete(id) => Control::Complete(id),
        };
        // An allocator without streams and pools serves all requests alike, and frees at once.
        let _unsupported = self.allocator.control(at, control);
    }

    fn allocate(
        &mut self,
        at: RequestIndex,
        block: BlockId,
        size: Bytes,
        stream: StreamId,
    ) -> Result<Served, AllocFailure> {
        let wanted = (block, size);
        let handle = self.attempts.allocate(&mut self.allocator, at, wanted, stream)?;
        Ok(self.hold(at, block, handle))
    }

    fn hold(&mut self, at: RequestIndex, block: BlockId, handle: Option<BlockHandle>) -> Served {
        let Some(handle) = handle else {
            self.blocks.allocate_nothing(block);
            return Served::Nothing;
        };
        if self.blocks.allocate(block, handle) == Allocated::Twice {
            report_double_allocation(&mut self.diagnostics, block, at);
        }
        Served::Allocated(handle)
    }

    fn free(&mut self, at: RequestIndex, block: BlockId) -> Served {
        let freed = self.blocks.free(block);
        match freed {
            Freed::Block(handle) => self.allocator.free(at, handle),
            Freed::Nothing => {}
            Freed::Again => report_double_free(&mut self.diagnostics, block, at),
            Freed::Unknown => report_unknown_free(&mut self.diagnostics, block, at),
        }
        if matches!(freed, Freed::Block(_) | Freed::Nothing) && self.attempts.releases_cache(block)
        {
            self.allocator.release_cached(at);
        }
        if matches!(freed, Freed::Block(_)) { Served::Freed } else { Served::Nothing }
    }

    /// Returns whether the number is in use, with or without memory behind it.
    pub(crate) fn is_held(&self, block: BlockId) -> bool {
        self.blocks.is_held(block)
    }

    /// Takes note of an allocation that failed and will not be repeated.
    pub(crate) fn hold_nothing(&mut self, block: BlockId) {
        self.blocks.allocate_nothing(block);
    }
}

fn report_double_allocation(diagnostics: &mut Diagnostics, block: BlockId, at: RequestIndex) {
    diagnostics.report("double-allocation", Severity::Warning, None, || {
        format!(
            "request {at} allocates block {} again before it was freed; the first one is counted \
             as never freed",
            block.0
        )
    });
}

fn report_double_free(diagnostics: &mut Diagnostics, block: BlockId, at: RequestIndex) {
    diagnostics.report("double-free", Severity::Warning, None, || {
        format!("request {at} frees block {} again; ignored", block.0)
    });
}

fn report_unknown_free(diagnostics: &mut Diagnostics, block: BlockId, at: RequestIndex) {
    diagnostics.report("free-without-allocation", Severity::Warning, None, || {
        format!("request {at} frees block {}, which was never allocated; ignored", block.0)
    });
}
