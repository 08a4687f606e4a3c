//! What is distributed.

use crate::dist;
use clap::Subcommand;
use std::path::PathBuf;
use xmem_task::Error;

/// Parts of a release.
#[derive(Subcommand)]
pub(crate) enum Release {
    /// Make all files of a release: archive, wheels, Debian package, checksums
    ///
    /// The commit must have the tag of the version, and the changelog a section of it. Needs what `dist` and `wheel` need,
    /// tar, and dpkg-dev. Nothing is uploaded.
    #[command(name = "release")]
    All(dist::Options),
    /// Build the program as it is distributed, with all that belongs to it
    ///
    /// That is man pages, completions, licenses, the list of its parts (CycloneDX) and checksums. Fails if the program
    /// names folders of this machine.
    Dist {
        /// Folder to write to [default: dist in the target folder]
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Build a wheel: the program with its Python package, for pip and uv
    ///
    /// It runs on Linux with glibc 2.17 or later or with musl, on x86-64 or aarch64, or on Windows, whatever this machine
    /// has. Needs PyPI for maturin and Zig, and rustup for targets that are not installed.
    Wheel {
        /// Target of rustc, several with commas or repeated [default: x86_64-unknown-linux-gnu]
        #[arg(long, value_name = "TRIPLE", value_delimiter = ',')]
        target: Vec<String>,
        /// Folder to write to [default: wheels in the target folder]
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
            Self::All(options) => dist::release(&options),
            Self::Dist { out } => dist::run(out),
            Self::Wheel { target, out } => dist::wheel(&target, out),
            Self::Man { out } => dist::man(out),
            Self::Completions { out } => dist::completions(out),
        }
    }
}
