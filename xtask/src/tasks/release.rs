//! What is distributed.

use crate::dist;
use clap::Subcommand;
use std::path::PathBuf;
use xmem_task::Error;

/// Parts of a release.
#[derive(Subcommand)]
pub(crate) enum Release {
    /// Build the program as it is distributed, with all that belongs to it
    ///
    /// That is man pages, completions, licenses, the list of its parts (CycloneDX) and checksums. Fails if the program
    /// names folders of this machine.
    Dist {
        /// Folder to write to [default: dist in the target folder]
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Write the man pages
    Man {
        /// Folder to write to [default: man in the target folder]
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Write the completions of every shell
    Completions {
        /// Folder to write to [default: completions in the target folder]
        #[arg(long)]
        out: Option<PathBuf>,
    },
}

impl Release {
    pub(crate) fn run(self) -> Result<(), Error> {
        match self {
            Self::Dist { out } => dist::run(out),
            Self::Man { out } => dist::man(out),
            Self::Completions { out } => dist::completions(out),
        }
    }
}
