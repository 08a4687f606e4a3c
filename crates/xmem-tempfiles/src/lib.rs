//! Temporary files and folders of xmem: private to their user, and removed even if their process was
//! killed.
//!
//! A [`PrivateFolder`] is for files that other processes of the same user read or execute. A
//! [`TemporaryFile`] is written beside a result, and renamed to it when it is complete. Both are removed
//! when they are dropped. A process that is killed removes nothing: the name says which process made
//! the file, and the next one that makes a file in the same place removes those of processes that have
//! ended (`leftovers`).
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "makes and removes temporary files; their age decides whether they are left over"
)]

mod file;
mod folder;
mod leftovers;
mod name;
mod place;
mod private;

pub use file::TemporaryFile;
pub use folder::{FolderError, PrivateFolder};
pub use place::forbids_execution;
pub use private::{create_private_folder, write_private};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
