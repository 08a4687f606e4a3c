//! CUDA for a device that does not exist: PyTorch's own CUDA build runs on a machine without a GPU, a driver
//! or a compiler. Kernels have no effect; the allocator and all code of the host are PyTorch's own.
//!
//! [`VirtualGpu::prepare`] writes libraries into a private folder that stand in for CUDA's (`libcudart`,
//! `libcuda`, `libnvidia-ml`, cuBLAS and the others), with the names and versions that the libraries of the
//! user's environment have. A command that is started with them in `LD_PRELOAD` uses them instead of the real
//! ones, whether those exist or not. What the calls do is in one native library, which is written in C
//! (`native/`) and embedded in this crate.
//!
//! The convolutions' workspaces are cuDNN's own: a stand-in hands its calls to the real library, which answers
//! for a device that is described to it (since cuDNN 9.8).
//!
//! Only Linux on x86-64 with glibc is supported; elsewhere [`VirtualGpu::prepare`] says so.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "reads the libraries of the user's environment and writes stand-ins for them"
)]

mod config;
mod environment;
mod error;
mod examined;
mod family;
mod kernels;
mod log;
mod native;
mod prepare;
mod stand_ins;

pub use environment::{Environment, EnvironmentError};
pub use error::PrepareError;
pub use examined::{Environments, Examined};
pub use log::{Call, Log};
pub use prepare::{Capacity, Completion, Note, Preload, VirtualGpu};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
