//! Runs a command so that the user's files stay as they are: what it writes, renames or removes goes to a private
//! folder, and the command sees its own writes.
//!
//! On Linux, the command gets a mount namespace in which overlayfs covers the folders that hold files of users
//! (`namespace`); this sees every way to write. Where namespaces are not allowed, as in most containers, a library
//! that is preloaded sends the C library's functions for files to the private folder (`preload`); programs that do
//! not call them (statically linked ones) pass it by. Other systems have neither, and the caller must refuse
//! writes or let them pass.
//!
//! Temporary folders, devices, pipes, sockets and files that were open before (standard output) are left as they are.
#![forbid(unsafe_code)]
#![cfg_attr(
    unix,
    expect(
        clippy::disallowed_methods,
        reason = "looks at the file system and runs a command, as its caller asks for"
    )
)]

mod attempt;
mod coverage;
#[cfg(target_os = "linux")]
mod enter;
#[cfg(target_os = "linux")]
mod guard;
mod kept;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod namespace;
mod overlay;
#[cfg(target_os = "linux")]
mod plan;
mod preload;

pub use coverage::Writable;
pub use kept::Kept;
pub use overlay::{Choice, Method, Overlay, OverlayError};

/// The first argument of the program that enters the namespace and becomes the command ([`enter`]).
pub const ENTER: &str = "enter-overlay";

/// In a process that was started for this: does what a file describes, and becomes the command; without a command, it
/// returns an empty text. Else it returns only if that fails, with the reason.
#[cfg(target_os = "linux")]
#[must_use]
pub fn enter(plan: &std::path::Path, command: &[std::ffi::OsString]) -> String {
    enter::enter(plan, command)
}

/// Fails: there are no mount namespaces on this system.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn enter(_plan: &std::path::Path, _command: &[std::ffi::OsString]) -> String {
    "mount namespaces need Linux".to_owned()
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
