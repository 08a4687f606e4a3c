//! cuDNN itself asked for the workspaces of convolutions, without a GPU.
//!
//! Since 9.8 the library answers for a device that is described to it in place of one that is there
//! (`CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR`, made for compilation ahead of time). [`Cudnn`] asks it, in a
//! process of its own that runs [`serve`]; [`find`] looks for a library.
//!
//! `backend` is the one module with unsafe code.
#![deny(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "looks for the library, and keeps the stand-ins and the cache in files"
)]

#[expect(unsafe_code, reason = "a C library is loaded and called")]
mod backend;
mod cache;
mod elf;
mod find;
mod heuristics;
mod kept;
mod plans;
mod process;
mod properties;
mod question;
mod stand_in;
mod worker;

pub use find::{Places, at, find};
pub use kept::KeptAnswers;
pub use plans::Cudnn;
pub use process::WorkerCommand;
pub use worker::serve;
