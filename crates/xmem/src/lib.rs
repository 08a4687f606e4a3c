//! The GPU memory that a PyTorch training job needs, over time and by cause. The whole
//! pipeline behind one builder: a CPU profiler trace in, an [`Answer`] out. A trace or a memory snapshot that
//! was recorded on a GPU is replayed as it is.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = xmem::find("rtx3060-12g")?.clone();
//! let answer = xmem::Estimate::builder(device).build().path("trace.json.zst")?;
//! if answer.verdict == xmem::Verdict::Fits {
//!     println!("fits: nvidia-smi will show {}", answer.memory.peak.device);
//! }
//! for share in &answer.memory.by_role {
//!     println!("{:>12} {}", share.bytes, share.role.name());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A trace is read once and can be estimated for many devices:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use xmem::{Bytes, Device, Estimate, Job, ReadOptions, Verdict};
//!
//! let trace = r#"{"traceEvents": [
//!     {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 1, "dur": 5},
//!     {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 2,
//!      "args": {"Bytes": 83886080, "Addr": 64, "Device Type": 0, "Device Id": -1}}
//! ]}"#;
//! let job = Job::from_bytes(trace.as_bytes(), &ReadOptions::default())?;
//! for capacity in [Bytes::gib(2), Bytes::gib(24)] {
//!     let answer = Estimate::builder(Device::custom(capacity)).build().job(&job)?;
//!     assert_eq!(answer.verdict, Verdict::Fits);
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod answer;
mod error;
mod estimate;
mod expandable;
mod facts;
mod history;
mod input;
mod iterations;
mod job;
mod lengths;
mod predicted;
mod script_settings;
mod timings;
mod verdict;

pub use answer::{Answer, GpuNeed};
pub use error::EstimateError;
pub use estimate::{ClearedGradients, Estimate, EstimateBuilder};
pub use facts::{GpuFacts, IterationFacts, ModelFacts, OptimizerFacts, RecordingFacts, TraceFacts};
pub use input::InputError;
pub use iterations::{Iterations, ParseIterationsError};
pub use job::Job;
pub use lengths::LengthsAnswer;
pub use predicted::PredictedJob;
pub use timings::{Stage, Timings};
pub use verdict::{Decision, IntegrityPolicy, Need, TightBy, Verdict};

// The words of every call.
pub use xmem_devices::{Device, find};
pub use xmem_trace::ReadOptions;
pub use xmem_types::{Bytes, TorchVersion};

// The crates of the pipeline. All types that values of the API consist of can be named from here.
pub use xmem_analyzer as analyzer;
pub use xmem_convolutions as convolutions;
#[cfg(not(target_family = "wasm"))]
pub use xmem_cudnn as cudnn;
pub use xmem_devices as devices;
pub use xmem_orchestrator as orchestrator;
pub use xmem_predict as predict;
pub use xmem_simulator as simulator;
pub use xmem_snapshot as snapshot;
pub use xmem_trace as trace;
pub use xmem_types as types;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
