//! Profiler trace files (Kineto's Chrome-trace JSON) read into columns.
//!
//! This room knows bytes, JSON and compression, and nothing of what an event *means*: names are
//! kept as interned strings, argument lists as interned raw JSON.
#![warn(missing_docs)]

mod builder;
mod columns;
mod document;
mod error;
mod event;
mod finish;
pub mod floor;
mod header;
mod local;
mod merge;
mod number;
mod options;
mod parse;
mod rawtext;
mod read;
pub mod reference;
mod repair;
mod scan;
mod source;

pub use columns::{
    DeviceKind, FlowKind, FlowTable, MemoryTable, OpKind, OpTable, PythonTable, Signature,
    SignatureId, Thread, Trace, TraceHeader,
};
pub use error::ReadError;
pub use options::ReadOptions;
pub use read::{read_bytes, read_path};
