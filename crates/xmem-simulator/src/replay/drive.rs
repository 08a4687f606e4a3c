//! Feeding requests to an allocator, whichever it is and whoever watches.

use super::OutOfMemory;
use super::table::{Allocated, BlockTable, Freed};
use crate::allocator::{AllocFailure, BlockHandle, FrameworkAllocator, RequestIndex};
use crate::attempts::Attempts;
use xmem_types::{BlockId, Bytes, Diagnostics, RequestKind, Severity, StreamId, Workload};

/// What happens after an allocation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// The replay ends there.
    Stop,
    /// All limits are lifted, and the allocation repeated.
    LiftLimit,
}

/// Who looks on during a replay.
pub(super) trait Watch {
    /// A block is about to be freed.
    fn before_free<A: FrameworkAllocator>(&mut self, id: BlockId, framework: &A, h: BlockHandle);
    /// A request was dealt with.
    fn after(&mut self, at: RequestIndex, allocated: Bytes, reserved: Bytes);
    /// An allocation failed.
    fn out_of_memory(&mut self, oom: OutOfMemory) -> Reaction;
}

/// Sends every request to the allocator, in order.
pub(super) fn drive<A: FrameworkAllocator, W: Watch>(
    framework: &mut A,
    work: Workload<'_>,
    watch: &mut W,
) -> Driven {
    let mut table = BlockTable::for_requests(work.requests);
    let mut attempts = Attempts::new(work.fallbacks);
    let mut diagnostics = Diagnostics::default();
    for (index, request) in work.requests.iter().enumerate() {
        let at = RequestIndex(index);
        match request.kind {
            RequestKind::Alloc { size, stream } => {
                let call = Call { at, block: request.block, size, stream };
                match call.serve(framework, &mut attempts, watch, &mut diagnostics) {
                    Served::Block(handle) => {
                        if table.allocate(request.block, handle) == Allocated::Twice {
                            report_double_allocation(&mut diagnostics, request.block, at);
                        }
                    }
                    Served::Nothing => table.allocate_nothing(request.block),
                    Served::Stopped => break,
                }
            }
            RequestKind::Free => match table.free(request.block) {
                Freed::Block(handle) => {
                    watch.before_free(request.block, framework, handle);
                    framework.free(at, handle);
                }
                Freed::Nothing => {}
                Freed::Again => report_double_free(&mut diagnostics, request.block, at),
                Freed::Unknown => report_unknown_free(&mut diagnostics, request.block, at),
            },
        }
        watch.after(at, framework.allocated(), framework.reserved());
    }
    Driven { table, smaller: attempts.smaller(), diagnostics }
}

/// What is left when all is done.
pub(super) struct Driven {
    /// The blocks that are held.
    pub(super) table: BlockTable,
    /// Allocations that were served with less than asked for first.
    pub(super) smaller: u64,
    /// What was odd about the requests.
    pub(super) diagnostics: Diagnostics,
}

/// What became of an allocation.
enum Served {
    Block(BlockHandle),
    Nothing,
    Stopped,
}

/// One allocation.
struct Call {
    at: RequestIndex,
    block: BlockId,
    size: Bytes,
    stream: StreamId,
}

impl Call {
    fn serve<A: FrameworkAllocator, W: Watch>(
        &self,
        framework: &mut A,
        attempts: &mut Attempts<'_>,
        watch: &mut W,
        diagnostics: &mut Diagnostics,
    ) -> Served {
        let wanted = (self.block, self.size);
        let failure = match attempts.allocate(framework, self.at, wanted, self.stream) {
            Ok(Some(handle)) => return Served::Block(handle),
            Ok(None) => return Served::Nothing,
            Err(failure) => failure,
        };
        if watch.out_of_memory(self.describe(framework, failure)) == Reaction::Stop {
            return Served::Stopped;
        }
        framework.lift_limit();
        match framework.allocate(self.at, self.size, self.stream) {
            Ok(Some(handle)) => Served::Block(handle),
            Ok(None) => Served::Nothing,
            Err(_) => {
                diagnostics.report("request-beyond-any-device", Severity::Serious, None, || {
                    format!(
                        "request {} asks for {}, more than any device has; it is left out",
                        self.at, self.size
                    )
                });
                Served::Nothing
            }
        }
    }

    fn describe<A: FrameworkAllocator>(&self, framework: &A, failure: AllocFailure) -> OutOfMemory {
        let tried = match failure {
            AllocFailure::OutOfMemory(out) => out.tried,
            AllocFailure::TooLarge => self.size,
        };
        let reserved = framework.reserved();
        OutOfMemory {
            request: self.at,
            block: self.block,
            stream: self.stream,
            requested: self.size,
            tried,
            allocated: framework.allocated(),
            reserved,
            device_free: framework.device().free_bytes().unwrap_or_default(),
            largest_cached: framework.largest_free(),
            stats: framework.stats(),
            needed: Bytes(reserved.get().saturating_add(tried.get())),
        }
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
