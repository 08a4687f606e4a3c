//! The output of the program: answers as text for people and as versioned JSON for programs.
//!
//! This crate only presents. Domain types do not derive `Serialize`; each document has its own
//! types here, and a `schema` field. A document has a module with its text, its JSON and its rows of CSV;
//! [`text`], [`json`] and [`csv`] list them by format. Inputs in an output format (a list of operations, the lines of
//! an earlier run) are also read here.
#![forbid(unsafe_code)]

mod bounds;
mod chart;
pub mod check;
mod convolutions;
pub mod csv;
mod devices;
pub mod diff;
mod document;
mod encode;
mod error;
mod eval;
mod fields;
mod findings;
mod fit;
mod inspect;
pub mod json;
mod law;
mod lengths;
pub mod lines;
mod markdown;
mod offload;
mod places;
mod plan;
mod plan_run;
mod ranks;
mod recorded;
mod replay;
#[cfg(test)]
mod schemas;
mod setup;
mod simulate;
mod site;
mod snapshot_info;
mod snapshot_replay;
mod style;
mod table;
pub mod text;
mod tune;
mod validate;
mod variants;
mod words;

pub use plan::heap_map::heap_map;
pub use validate::Comparison;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
