//! What leaves the program: answers as text for people and as versioned JSON for programs.
//!
//! This room only presents. Domain types derive no `Serialize`; each document has types of its own
//! here, and a `schema` field. The one document that comes in, the list of operations, has the form
//! of one that goes out, and is read here too.
#![forbid(unsafe_code)]

mod comparison;
pub mod json;
pub mod text;

pub use comparison::Comparison;
