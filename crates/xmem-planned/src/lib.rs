//! An allocator for PyTorch that gives requests the addresses of a static memory plan: a library in C
//! (`native/planned.h` says how it works), which the hook of the recorder installs as a
//! `torch.cuda.memory.CUDAPluggableAllocator`.
//!
//! This crate carries the library and knows the files that it reads and writes: a plan ([`FollowedPlan`]), what a job did
//! ([`Observed`]), and counters ([`Counters`]). It does not plan.
#![forbid(unsafe_code)]

mod counters;
mod followed;
mod observed;

pub use counters::Counters;
pub use followed::{FollowedPlan, FollowedRequest};
pub use observed::{Observed, ObservedError};

/// The library, if this system is supported.
#[cfg(supported)]
pub const LIBRARY: Option<&[u8]> =
    Some(include_bytes!(concat!(env!("OUT_DIR"), "/libxmem-planned.so")));
/// The library, if this system is supported.
#[cfg(not(supported))]
pub const LIBRARY: Option<&[u8]> = None;

/// The name of its file.
pub const NAME: &str = "libxmem-planned.so";

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
