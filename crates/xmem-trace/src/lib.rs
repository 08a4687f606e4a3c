//! Profiler trace files (Kineto's Chrome-trace JSON) read into columns.
//!
//! This room knows bytes, JSON and compression, and nothing of what an event *means*: names are
//! kept as interned strings, argument lists as interned raw JSON.
#![warn(missing_docs)]

mod columns;
pub mod reference;

pub use columns::{
    DeviceKind, FlowKind, FlowTable, MemoryTable, OpKind, OpTable, PythonTable, Signature,
    SignatureId, Thread, Trace, TraceHeader,
};
