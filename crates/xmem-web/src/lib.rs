//! `xmem estimate` for the page in a browser, as a WebAssembly module.
//!
//! A [`Session`] keeps one graph: the bytes of a file go in, then settings as JSON, and out come what the graph leaves
//! open and answers, which are the command line's to the byte. [`exports`] is what JavaScript calls.
#![deny(unsafe_code)]

mod about;
mod catalog;
mod error;
#[expect(unsafe_code, reason = "names of exported functions; no pointer is read")]
pub mod exports;
mod session;
mod settings;

pub use catalog::catalog;
pub use error::SessionError;
pub use session::Session;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
