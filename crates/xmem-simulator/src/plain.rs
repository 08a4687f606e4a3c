//! Allocators without segments of their own: every block comes from the device, or from a pool that
//! CUDA keeps.

mod ledger;
mod malloc_async;
mod uncached;

pub use malloc_async::{MallocAsync, MallocAsyncAllocator};
pub use uncached::{Uncached, UncachedAllocator};
