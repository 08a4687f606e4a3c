//! What a training step would take, in memory and in time, if saved tensors were moved to the host and back.
//!
//! A [`Graph`] is one step: its layers, what the device computes in order, and its blocks of memory with
//! their uses. [`simulate`] runs it with a [`Policy`] on two streams, one that computes and one that copies, and
//! gives the times and the list of memory events ([`Run`]). [`place`] replays that list in a [`Placement`]: an
//! allocator, a pool, or a static plan. [`simulate_within`] does both where memory is limited.
//!
//! Durations are values of the graph: a model or a measurement gives them. The crate knows no trace, no operator
//! and no file.
#![forbid(unsafe_code)]

mod budget;
mod capacity;
mod dynamic;
mod event_loop;
mod events;
mod gradients;
mod graph;
mod groups;
mod host_update;
mod jitter;
mod moves;
mod order;
mod overlap;
mod placement;
mod policies;
mod policy;
mod prefetch;
mod recomputation;
mod rules;
mod run;
mod selection;
mod simulation;
mod transfer;
mod within;
mod workspaces;

pub use budget::Waiting;
pub use capacity::smallest_capacity;
pub use dynamic::{Dynamic, vdnn_dynamic};
pub use event_loop::Memory;
pub use events::{EventKind, MemoryEvent, Piece, PieceId};
pub use gradients::{GradientRule, ParseGradientRuleError};
pub use graph::{
    Action, BlockRole, Graph, GraphError, GraphStep, Layer, LayerId, LayerKind, StepBlock, StepId,
    Work,
};
pub use groups::Group;
pub use jitter::{Jitter, Jittered, jitter};
pub use moves::Moves;
pub use order::{by_reference_count, depth_first};
pub use placement::{ParsePlacementError, PlaceError, Placed, Placement, Sample, Space, place};
pub use policies::{Checkpoint, HostOptimizer, OffloadActivations, SuperNeurons};
pub use policy::{ParsePolicyError, Policy};
pub use run::{OutOfMemory, Run};
pub use selection::{Offload, Selection};
pub use simulation::simulate;
pub use transfer::{Direction, Duplex, Link, Transfer};
pub use within::simulate_within;
pub use workspaces::{ParseWorkspaceRuleError, SLOWDOWN, WorkspaceCounts, WorkspaceRule, grown};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
