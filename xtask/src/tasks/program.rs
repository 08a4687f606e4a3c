//! The option for the xmem that a task drives.

use std::path::PathBuf;

/// For tasks that drive the program in the profile of the tests.
#[derive(clap::Args)]
pub(crate) struct Program {
    /// Drive this xmem [default: build it]
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<PathBuf>,
}

/// For tasks that drive the program as it is shipped.
#[derive(clap::Args)]
pub(crate) struct ReleasedProgram {
    /// Drive this xmem [default: build it for release]
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<PathBuf>,
}
