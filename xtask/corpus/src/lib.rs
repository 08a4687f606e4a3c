//! Recorded jobs: how they are made with real releases of PyTorch, and what is judged by them.
//!
//! - [`torch`] records scripts through `xmem profile`, and checks what comes out.
//! - [`truth`] records what `traces/` says about the CUDA side.
//! - [`accuracy`] holds estimates against `traces/`; [`answers`] compares all answers about them before and after a
//!   change; [`plans`] plans an iteration of each, [`offload`] simulates policies on some.
//! - [`published`] runs scripts whose memory others measured on GPUs, and compares.
//! - [`wild`] records public training scripts, and holds the predictions against what PyTorch counted.
//!
//! It knows xmem as a program alone. What becomes of damaged recordings is left to `xmem-attack`.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a development task: it reads the repository and talks to the person who runs it"
)]

pub mod accuracy;
pub mod answers;
mod error;
pub mod offload;
pub mod plans;
pub mod published;
mod table;
pub mod torch;
mod traces;
pub mod truth;
pub mod wild;

pub use table::Format;
