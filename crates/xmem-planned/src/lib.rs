//! Allocators for PyTorch that give requests the addresses of a static memory plan: libraries in C, which the hook of the
//! recorder installs. That of the GPU (`native/planned.h` says how it works) is a
//! `torch.cuda.memory.CUDAPluggableAllocator`; that of the CPU (`native/cpu/cpu.h`) takes the place of the C library's
//! functions in `libc10.so`.
//!
//! This crate carries the libraries and knows the files that it reads and writes: a plan ([`FollowedPlan`]), what a job did
//! ([`Observed`]), and counters ([`Counters`]). It does not plan.
#![forbid(unsafe_code)]

mod counters;
mod followed;
mod observed;

pub use counters::Counters;
pub use followed::{FollowedPlan, FollowedRequest};
pub use observed::{Observed, ObservedError};

use xmem_types::Bytes;

/// A library that PyTorch allocates by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library {
    /// The name of its file.
    pub name: &'static str,
    /// The file; none if this system is not supported.
    pub bytes: Option<&'static [u8]>,
    /// Its unit of sizes and addresses (`ROUNDING` in `native/plan.h`).
    pub unit: Bytes,
}

/// The allocator of the GPU.
pub const GPU: Library = Library {
    name: "libxmem-planned.so",
    #[cfg(supported)]
    bytes: Some(include_bytes!(concat!(env!("OUT_DIR"), "/libxmem-planned.so"))),
    #[cfg(not(supported))]
    bytes: None,
    unit: Bytes(512),
};

/// The allocator of the CPU.
pub const CPU: Library = Library {
    name: "libxmem-planned-cpu.so",
    #[cfg(supported)]
    bytes: Some(include_bytes!(concat!(env!("OUT_DIR"), "/libxmem-planned-cpu.so"))),
    #[cfg(not(supported))]
    bytes: None,
    unit: Bytes(64),
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
