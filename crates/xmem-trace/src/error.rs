//! Errors of reading.

use std::io;
use thiserror::Error;
use xmem_types::ExceededLimit;

/// Reading has to stop. Odd content that can be skipped is a
/// [`Diagnostic`](xmem_types::Diagnostic) instead.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No file has this name.
    #[error("`{input}` does not exist: give the path of a trace file, or `-` for standard input")]
    NotFound {
        /// The path as given.
        input: String,
    },
    /// The path is a folder.
    #[error("`{input}` is a directory: give the path of one trace file inside it")]
    Directory {
        /// The path as given.
        input: String,
    },
    /// The operating system refused to open or read the input.
    #[error("cannot read `{input}`: check that the file may be read and is complete")]
    Io {
        /// The path as given, or what stands for it.
        input: String,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// There is nothing in the input.
    #[error("`{input}` is empty: the profiler writes its trace only after the profiled block ends")]
    Empty {
        /// The path as given, or what stands for it.
        input: String,
    },
    /// The content is something else.
    #[error(
        "`{input}` is not a profiler trace ({reason}): give what `export_chrome_trace` of \
         torch.profiler wrote, plain, gzip or zstd"
    )]
    NotATrace {
        /// The path as given, or what stands for it.
        input: String,
        /// Describes what was found instead.
        reason: String,
    },
    /// Compressed data is damaged (a stream that merely ends too early is read as far as it goes).
    #[error(
        "the {format} data of `{input}` is damaged after {inflated} bytes of text: copy the file again"
    )]
    Compressed {
        /// The path as given, or what stands for it.
        input: String,
        /// `gzip` or `zstd`.
        format: &'static str,
        /// Bytes of text that came out before the damage.
        inflated: u64,
        /// The decoder's error.
        #[source]
        source: io::Error,
    },
    /// There is more text than [`ReadOptions`](crate::ReadOptions) allows.
    #[error("`{input}` {limit}: raise the limit if the trace really is that large")]
    InflateLimit {
        /// The path as given, or what stands for it.
        input: String,
        /// The limit.
        limit: ExceededLimit,
    },
    /// The memory for inflating cannot be had.
    #[error("not enough memory to inflate `{input}`: allow more, or inflate the file before")]
    Memory {
        /// The path as given, or what stands for it.
        input: String,
    },
    /// Brackets nested beyond anything that a profiler writes.
    #[error(
        "`{input}` nests brackets more than {limit} deep at byte {offset}: no profiler writes that, \
         the file is damaged or malicious"
    )]
    NestingTooDeep {
        /// The path as given, or what stands for it.
        input: String,
        /// Bytes from the start of the (inflated) file.
        offset: u64,
        /// The deepest nesting that is read.
        limit: u32,
    },
}
