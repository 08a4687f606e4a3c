//! What every development task uses: where things are in the repository, cargo and the program that a task drives,
//! steps and cases with their sums, and the errors that all tasks have.
//!
//! It knows no task. What a task does is in the crates beside this one, and in `xtask` itself.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "development tasks read the repository and talk to the person who runs them"
)]

mod error;
pub mod expected;
pub mod only;
pub mod parallel;
pub mod part;
pub mod program;
pub mod repo;
pub mod run;
pub mod tally;

pub use error::{Error, TaskError};
