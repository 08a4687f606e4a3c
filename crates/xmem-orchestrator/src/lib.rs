//! CPU memory behaviour turned into a GPU allocation schedule.
//!
//! The program order of a training loop is the same on both devices, and so are Python's reference
//! counts: what *escapes* an operator (its outputs, what autograd saves) and when it is freed
//! carries over. What differs is inside the leaf operators and around them; the rules of this room
//! replace it. This room knows what CUDA kernels allocate. It knows nothing of JSON or segments.
#![forbid(unsafe_code)]

mod attention;
mod autocast;
mod cell;
mod clipping;
mod convolution;
pub mod coverage;
mod distance;
mod doubt;
mod draft;
mod dropout;
mod embedding;
mod gemm;
mod gradients;
mod indexing;
mod kernels;
mod losses;
mod lower;
mod normalisation;
mod optimizer;
mod placement;
mod recorded;
mod recurrent;
mod reduction;
mod requests;
mod rms_norm;
mod rules;
mod schedule;
mod scratch;
mod softmax;
mod sorting;
mod target;
mod transfer;
mod unmodelled;
mod walk;

pub use doubt::{Bound, Doubt, SizeRange, Slot, Uncertain};
pub use gemm::parse_cublas_workspace_config;
pub use rules::{Rule, RuleEffect, rules};
pub use schedule::{Schedule, ScheduledBlock};
pub use target::{AttentionKernels, OptimizerImpl, Target, ZeroGradPlace};

use xmem_analyzer::Profile;
use xmem_types::Diagnostics;

/// Lowers a profile to the allocator requests that the same job makes on `target`.
#[must_use]
pub fn schedule(profile: &Profile, target: &Target) -> (Schedule, Diagnostics) {
    lower::lower(profile, target)
}
