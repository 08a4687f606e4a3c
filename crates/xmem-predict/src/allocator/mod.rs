//! Which allocator is simulated: what the caller asks for, what the input says about the job that
//! it comes from, and what follows from both.

mod error;
mod notes;
mod recorded;
mod settings;
mod setup;
#[cfg(test)]
mod tests;

pub use error::AllocatorError;
pub(crate) use notes::WITHOUT_FRACTION;
pub use recorded::Recorded;
pub use settings::{AllocatorKind, AllocatorSettings};
pub use setup::{AllocatorSetup, Origin};
