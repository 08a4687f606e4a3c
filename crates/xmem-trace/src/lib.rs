//! Profiler trace files (Kineto's Chrome-trace JSON) read into columns.
//!
//! This crate knows bytes, JSON and compression, and nothing of what an event *means*: names are
//! kept as interned strings, argument lists as interned raw JSON.
//!
//! ```
//! use xmem_trace::{ReadOptions, read_bytes};
//!
//! let text = br#"{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm",
//!     "pid": 1, "tid": 1, "ts": 4377048581575.383, "dur": 8.593}]}"#;
//! let (trace, diagnostics) = read_bytes(text, &ReadOptions::default())?;
//! assert_eq!(trace.strings.resolve(trace.ops.name[0]), "aten::mm");
//! assert_eq!(trace.ops.duration[0].get(), 8593);
//! assert!(diagnostics.is_empty());
//! # Ok::<(), xmem_trace::ReadError>(())
//! ```
//!
//! # How text becomes columns
//! `source` hands out text, inflated on a thread of its own where it is compressed; `document` cuts
//! it into header keys and chunks of whole events, with `scan` finding where events end; `pipeline`
//! hands chunks to threads; `pull` reads a chunk's events straight into the columns of a `builder`;
//! `merge` puts chunks together in file order. The file is read, not mapped: memory stays within a few
//! chunks whatever the file's size, and standard input takes the same way. An event in which anything
//! is unusual is read by `parse` from simd-json's tape, and `repair` makes JSON of the oddities that
//! are known. A program that knows what happens fills the same columns without text (`built`).
#![deny(unsafe_code)]

mod argument_cache;
pub mod baseline;
mod builder;
mod built;
mod chunk_strings;
mod columns;
mod document;
mod error;
mod event;
mod evidence;
mod finish;
mod header;
mod merge;
mod number;
mod open;
mod options;
mod parse;
mod pipeline;
mod pool;
mod pull;
mod rawtext;
mod read;
pub mod reference;
mod repair;
mod rewrite;
mod scan;
mod source;
mod strict;
mod string_scan;

pub use built::{BuiltCall, BuiltKind, TraceBuilder};
pub use columns::{
    DeviceKind, DeviceProperties, FlowKind, FlowTable, MemoryTable, OpKind, OpTable, PythonTable,
    Signature, SignatureId, Thread, Trace, TraceHeader,
};
pub use error::ReadError;
pub use evidence::{Evidence, IndexRun};
pub use open::open_input;
pub use options::{EventParser, ReadOptions};
pub use read::{InputFile, read_bytes, read_named_bytes, read_path};
pub use rewrite::{Rewrite, RewriteError, RewriteSummary, rewrite_path};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
