//! Shared libraries in ELF's 64-bit form: a reader of what a library exports and needs, and a writer of
//! libraries that stand in for others.
//!
//! [`Library::read`] takes the dynamic symbols with their versions, the name (`DT_SONAME`), and the libraries
//! that are needed. It reads files of other people's machines: what is damaged is an error, never a panic,
//! and only the tables are read, however large the file is.
//!
//! [`StandIn::to_bytes`] writes a library with given names and versions. Its functions return a number, jump
//! to a function of another library, or report that they were called. No compiler takes part.
#![forbid(unsafe_code)]

mod code;
mod hash;
mod read;
mod tables;
mod write;

pub use read::{Export, ExportKind, Library, ReadError, section};
pub use write::{Definition, Machine, StandIn, Symbol, SymbolVersion, WriteError};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
