//! Options of both clusters.

use std::path::PathBuf;

/// What to do.
#[derive(Debug)]
pub struct Options {
    /// The program to drive; none builds it.
    pub program: Option<PathBuf>,
    /// Only cases that have one of these in their names; none for all.
    pub only: Vec<String>,
    /// A folder for the cluster, which stays; none for a temporary one.
    pub folder: Option<PathBuf>,
}
