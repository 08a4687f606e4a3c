//! The vocabulary that all crates of xmem share: sizes, times, typed ids, interned strings,
//! diagnostics, PyTorch releases and the allocator requests that a schedule is made of.
//!
//! Bytes, time and ids cross function boundaries only as the types of this crate, never as bare
//! integers. Nothing here knows about files, JSON or PyTorch.
#![forbid(unsafe_code)]

mod bytes;
mod diagnostics;
mod ids;
mod intern;
mod limits;
mod printable;
mod request;
mod seal;
mod time;
mod version;
mod withheld;
mod workload;

pub use bytes::{Bytes, GIB, KIB, MIB, ParseBytesError, saturating_product};
pub use diagnostics::{Diagnostic, Diagnostics, Location, Severity};
pub use ids::{Addr, BlockId, IterationId, OpId, PrivatePoolId, PythonId, StreamId, ThreadIdx};
pub use intern::{Interner, Sym};
pub use limits::{ExceededLimit, InputLimits};
pub use printable::{is_printable, printable, printable_lines, printable_path};
pub use request::{Request, RequestKind};
pub use seal::{SEAL_KEY, Seal, Sealed, SealingWriter};
pub use time::Nanos;
pub use version::TorchVersion;
pub use withheld::WithheldReason;
pub use workload::{AllocatorCall, FallbackId, Fallbacks, PlacedCall, Workload};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
