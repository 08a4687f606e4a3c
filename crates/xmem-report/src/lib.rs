//! What leaves the program: answers as text for people and as versioned JSON for programs.
//!
//! This room only presents. Domain types derive no `Serialize`; each document has types of its own
//! here, and a `schema` field.
#![forbid(unsafe_code)]

pub mod json;
pub mod text;
