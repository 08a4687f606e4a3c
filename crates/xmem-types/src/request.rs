//! Requests to a framework's memory allocator: what a schedule consists of and all that the
//! simulator sees of a job.

use crate::{BlockId, Bytes, StreamId};

/// One request, in program order. The order of the sequence is the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The block that is asked for or given back; the caller's own numbering.
    pub block: BlockId,
    /// What is asked.
    pub kind: RequestKind,
}

/// What a [`Request`] asks of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Give a block of `size` requested bytes (not rounded), used on `stream`.
    Alloc {
        /// Bytes as the program asks for them.
        size: Bytes,
        /// The stream the memory is used on.
        stream: StreamId,
    },
    /// Take the block back.
    Free,
}
