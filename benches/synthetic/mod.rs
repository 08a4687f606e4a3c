//! Profiler traces that no job wrote: well-formed, of any size, the same bytes in every run.
//!
//! They have the shape of what PyTorch 2.4 and later write: operators and annotations by start,
//! each with its forward-backward link, then memory, then Python calls. [`Training`] grows in one
//! dimension at a time; [`Corner`]s are traces that are hard on a reader in one way each.

mod corners;
mod recorder;
mod training;

pub use corners::Corner;
pub use recorder::{Frame, Op, Recorder, Signature, Storage};
pub use training::Training;
