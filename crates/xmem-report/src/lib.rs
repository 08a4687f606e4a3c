//! What leaves the program: answers as text for people and as versioned JSON for programs.
//!
//! This room only presents. Domain types derive no `Serialize`; each document has types of its own
//! here, and a `schema` field. What comes in, a list of operations or the lines of an earlier run, has
//! the form of what goes out, and is read here too.
#![forbid(unsafe_code)]

mod comparison;
pub mod json;
pub mod lines;
pub mod text;

pub use comparison::Comparison;
