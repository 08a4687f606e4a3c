//! Training jobs from the graph of a model, without running it: an archive of torch.export or a model of ONNX goes in,
//! and what PyTorch would do with it comes out: the events that its profiler would record, as data or as a trace's text.
//!
//! A graph is *acted*: each operator allocates what ATen's operator allocates on a CPU and keeps what its gradient
//! needs, backward runs in autograd's order, the optimizer goes over the parameters, and memory is freed with its
//! last owner. What all of that is on a GPU follows from the same rules as for a recording. No formula of this
//! crate is about a GPU.
#![forbid(unsafe_code)]

mod aten;
mod dtype;
mod eager;
mod error;
mod events;
mod expression;
pub mod graph;
mod interpreter;
mod job;
pub mod onnx;
mod optimizer;
pub mod pt2;
mod ranks;
mod text;
mod training;

pub use dtype::DType;
pub use error::GraphError;
pub use events::{ArgumentLists, CallKind, Happened, Sequence};
pub use expression::{Expression, Function};
pub use graph::Graph;
pub use optimizer::{Implementation, Optimizer, OptimizerClass};
pub use ranks::{FullyShard, Ranks, Sharing, blocks};
pub use training::{ActedRun, Event, Keeps, Loss, Training, Workload, act};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
