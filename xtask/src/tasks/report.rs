//! Reports that a browser or a viewer opens.

use super::program::{Program, ReleasedProgram};
use crate::{views, web};
use clap::Subcommand;
use xmem_task::Error;

/// The HTML page and the other files of `xmem report`.
#[derive(Subcommand)]
pub(crate) enum Report {
    /// Build the program of the HTML page (web/dist) from web/src
    ///
    /// Needs node and npm, which fetches the packages that web/package-lock.json names.
    Web {
        /// Write nothing: fail if web/dist is not what the sources give
        #[arg(long)]
        check: bool,
    },
    /// Build the page of `xmem estimate` (target/web/estimate.html)
    ///
    /// Needs node, npm and the platform of the module: `rustup target add wasm32-unknown-unknown`. `cargo xtask book`
    /// puts the page beside the book if it is built.
    WebEstimate,
    /// Open pages of recorded traces in Chromium, and check what they show
    ///
    /// Also the page of `xmem estimate`, which is built first. Needs node, npm and Chromium: the environment variable
    /// CHROMIUM names it [default: /usr/bin/chromium]; and `rustup target add wasm32-unknown-unknown`. With
    /// UPDATE_EXPECT=1, the kept pictures are replaced.
    TestWeb {
        #[command(flatten)]
        program: Program,
    },
    /// Open files of `xmem report` in Perfetto, speedscope, pandas and Chromium
    ///
    /// Their packages come from PyPI and npm; what cannot be had is skipped.
    TestViews {
        #[command(flatten)]
        program: Program,
    },
    /// Time a page of a million blocks in Chromium: first picture, frames, memory
    TimeWeb {
        #[command(flatten)]
        program: ReleasedProgram,
        /// The blocks
        #[arg(long, value_name = "N", default_value_t = 1_000_000)]
        blocks: usize,
        /// Random sizes, lifetimes and operators, whose columns do not compress, instead of iterations
        #[arg(long)]
        random: bool,
    },
    /// Take the pictures of the page that the documentation shows
    Screenshots {
        #[command(flatten)]
        program: Program,
    },
}

impl Report {
    pub(crate) fn run(self) -> Result<(), Error> {
        match self {
            Self::Web { check } => {
                web::build(if check { web::Mode::Check } else { web::Mode::Write })
            }
            Self::WebEstimate => web::build_estimate(web::Module::Small),
            Self::TestWeb { program } => web::test(program.program.as_deref()),
            Self::TestViews { program } => views::run(program.program.as_deref()),
            Self::TimeWeb { program, blocks, random } => {
                let kind = if random { web::Blocks::Random } else { web::Blocks::Repeated };
                web::time(program.program.as_deref(), blocks, kind)
            }
            Self::Screenshots { program } => web::screenshots(program.program.as_deref()),
        }
    }
}
