//! The analysis of a trace: allocations and frees paired into blocks, each with the operator,
//! module and phase it comes from and the role it plays in training.
//!
//! This crate knows autograd, optimizers and modules. It knows nothing about allocators; a recording of a
//! GPU is analyzed as one of a CPU is, with the memory that was there before it began.
#![forbid(unsafe_code)]

mod allocator_history;
mod args;
mod attribution;
mod autograd;
mod block;
mod completeness;
mod distributed;
mod forwards;
mod gpu;
mod history;
mod history_roles;
pub mod integrity;
mod iterations;
mod lifetime;
mod line_names;
mod lines;
mod marks;
mod names;
mod optree;
mod pairing;
mod periods;
mod phases;
mod preexisting;
mod private_pools;
mod profile;
mod program;
mod python;
mod recomputation;
mod recorder_facts;
pub mod recording;
mod redaction;
mod rest;
mod returns;
mod roles;
mod script_part;
mod spans;
mod stages;
mod steps;
mod timeline;
mod transfers;
mod unseen_frees;
mod zero_grad;

pub use args::{Argument, Arguments, DType, TensorArg};
pub use autograd::Autograd;
pub use block::{Block, Evidence, Residency, Role};
pub use distributed::{Collectives, Distributed};
pub use gpu::{GpuRecording, GpuSource, RecordedFailure};
pub use history::{
    History, HistoryBlock, HistoryPart, HistoryPurpose, HistorySite, analyze_history,
};
pub use lifetime::Tick;
pub use marks::TransferKind;
pub use optree::OpTree;
pub use preexisting::Preexisting;
pub use private_pools::{Position, PrivatePools};
pub use profile::{JobKind, Profile};
pub use python::ModuleCall;
pub use redaction::Redaction;
pub use rest::RestStart;
pub use returns::CallKind;
pub use roles::{RoleRule, role_rules};
pub use script_part::{PartStart, ScriptPart};
pub use spans::{Iteration, Phase, PhaseSpan};
pub use transfers::Transfer;

use xmem_trace::{DeviceKind, Trace};
use xmem_types::Diagnostics;

/// Analyzes the memory of a trace: that of the GPU with most memory if it has any of GPUs, else that of
/// the host.
///
/// Odd content is reported in the diagnostics and never ends the analysis.
#[must_use]
pub fn analyze(trace: Trace) -> (Profile, Diagnostics) {
    let is_gpu = trace.memory.device.contains(&DeviceKind::Cuda);
    analyze_device(trace, if is_gpu { DeviceKind::Cuda } else { DeviceKind::Cpu })
}

/// Analyzes the memory of one kind of device; of several GPUs, that of the one with most.
///
/// Odd content is reported in the diagnostics and never ends the analysis.
#[must_use]
pub fn analyze_device(trace: Trace, device: DeviceKind) -> (Profile, Diagnostics) {
    stages::run(trace, device, None)
}

/// The GPUs with memory in a trace, by their indices: that with most first, as [`analyze`] chooses it.
#[must_use]
pub fn gpus(trace: &Trace) -> Vec<i16> {
    gpu::all(&trace.memory)
}

/// Analyzes the memory of the GPU with this index, one of [`gpus`].
///
/// Odd content is reported in the diagnostics and never ends the analysis.
#[must_use]
pub fn analyze_gpu(trace: Trace, index: i16) -> (Profile, Diagnostics) {
    stages::run(trace, DeviceKind::Cuda, Some(index))
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
