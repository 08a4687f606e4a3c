//! The output of the program: answers as text for people and as versioned JSON for programs.
//!
//! This crate only presents. Domain types do not derive `Serialize`; each document has its own
//! types here, and a `schema` field. Inputs in an output format (a list of operations, the lines of
//! an earlier run) are also read here.
#![forbid(unsafe_code)]

mod comparison;
pub mod difference;
pub mod gate;
mod heap_map;
pub mod json;
pub mod lines;
mod markdown;
pub mod offload_table;
pub mod plan_table;
pub mod text;

pub use comparison::Comparison;
pub use heap_map::heap_map;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
