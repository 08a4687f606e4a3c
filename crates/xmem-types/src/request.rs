//! Requests to a framework's memory allocator: what a schedule consists of and all that the
//! simulator sees of a job.

use crate::{BlockId, Bytes, StreamId};

/// One request, in program order. The order of the sequence is the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The block that is allocated or freed, in the caller's own numbering.
    pub block: BlockId,
    /// The operation.
    pub kind: RequestKind,
}

/// The operation of a [`Request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Give a block of `size` requested bytes (not rounded), used on `stream`.
    Alloc {
        /// Bytes as the program requests them.
        size: Bytes,
        /// The stream the memory is used on.
        stream: StreamId,
    },
    /// Take the block back.
    Free,
}
