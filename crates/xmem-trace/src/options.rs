//! Settings of reading.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use xmem_types::{Bytes, InputLimits, KIB};

/// Settings of [`read_path`](crate::read_path) and [`read_bytes`](crate::read_bytes). None of them
/// changes the result, only what reading costs and what is refused.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Threads that parse, or that parse and inflate, at least one of each; by default as many as
    /// rayon's current pool has.
    pub threads: Option<NonZeroUsize>,
    /// Bytes of text that are parsed at once. Larger pieces leave the processor's cache,
    /// smaller ones cost more bookkeeping.
    pub chunk: Bytes,
    /// Input with more text than this is refused.
    pub inflate_limit: Bytes,
    /// Compressed input that inflates to more than this many times its size is refused
    /// ([`InputLimits::ratio`]); none for any amount.
    pub ratio_limit: Option<u64>,
    /// A single event or top-level value longer than this, and than a chunk, is not read.
    pub event_limit: Bytes,
    /// The parser of a chunk's events.
    pub parser: EventParser,
    /// Counts the bytes of the file (compressed ones, if it is) as they are read.
    pub progress: Option<Arc<AtomicU64>>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            threads: None,
            chunk: Bytes(256 * KIB),
            inflate_limit: Bytes::gib(64),
            ratio_limit: Some(InputLimits::RATIO),
            event_limit: Bytes::mib(16),
            parser: EventParser::Pull,
            progress: None,
        }
    }
}

impl ReadOptions {
    /// The limits on the text of the input.
    pub(crate) fn limits(&self) -> InputLimits {
        InputLimits { size: self.inflate_limit, ratio: self.ratio_limit }
    }
}

/// The parser of a chunk's events. Both come to the same columns and diagnostics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventParser {
    /// The text is read once, straight into columns; an event in which anything is unusual goes to
    /// simd-json alone, and the rest of a chunk with many of them.
    #[default]
    Pull,
    /// simd-json's tape of a whole chunk. What tests and the fuzzer compare the other with.
    Tape,
}
