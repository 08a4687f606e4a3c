//! The simulated allocator: the caller's settings, the environment of the job that the input comes
//! from, it comes from, and what follows from both.

mod cudnn_release;
mod environment;
mod error;
mod notes;
mod settings;
mod setup;
#[cfg(test)]
mod tests;

pub use cudnn_release::other_cudnn_release;
pub use environment::JobEnvironment;
pub use error::AllocatorError;
pub(crate) use notes::WITHOUT_FRACTION;
pub use settings::{AllocatorKind, AllocatorSettings};
pub use setup::{AllocatorSetup, Origin};
