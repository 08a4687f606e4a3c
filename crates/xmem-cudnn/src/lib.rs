//! The workspaces of convolutions from cuDNN itself, without a GPU.
//!
//! Since 9.8 the library answers for a device that is described to it, whether or not the machine has
//! it (`CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR`, made for compilation ahead of time). [`Cudnn`] asks the
//! library in a process of its own, which runs [`serve`]. [`AutomaticSource`] is the default source of the
//! command line and of the library: it searches for cuDNN as the [`SourceSettings`] say, and takes the
//! fitted model where it finds none.
//!
//! `backend` and `preload` are the only modules with unsafe code.
#![deny(unsafe_code)]

mod automatic;
#[expect(unsafe_code, reason = "a C library is loaded and called")]
mod backend;
#[expect(clippy::disallowed_methods, reason = "reads and writes files of answers")]
mod cache;
mod earlier_answers;
mod heuristics;
mod kept;
mod library;
#[cfg(unix)]
#[expect(clippy::disallowed_methods, reason = "a worker learns its parent from a variable")]
mod parent;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "libraries are loaded from files in memory")]
mod preload;
#[cfg(not(target_os = "linux"))]
#[path = "preload_elsewhere.rs"]
mod preload;
mod process;
mod properties;
mod query;
#[expect(clippy::disallowed_methods, reason = "lists folders")]
mod search;
#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
mod settings;
mod splits;
#[cfg(target_os = "linux")]
mod stubs;
#[cfg(unix)]
#[expect(clippy::disallowed_methods, reason = "lists the parts of a library")]
mod trust;
#[cfg(not(unix))]
#[path = "trust_elsewhere.rs"]
mod trust;
#[expect(clippy::disallowed_methods, reason = "reads and writes a list of libraries")]
mod used;
mod worker;

pub use automatic::AutomaticSource;
pub use earlier_answers::CachedAnswers;
pub use kept::keep;
pub use library::Cudnn;
pub use process::WorkerCommand;
pub use search::{SYSTEM_LIBRARIES, SearchPath, at, find};
pub use settings::{ChoiceOrigin, FoundLibrary, SourceChoice, SourceError, SourceSettings, WORKER};
pub use worker::serve;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
