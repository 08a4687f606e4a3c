//! How fast the program is.

use super::program::Program;
use crate::{bench, instructions};
use clap::Subcommand;
use xmem_task::Error;

/// Measurements of speed.
#[derive(Subcommand)]
pub(crate) enum Benches {
    /// Run the benches; keep their figures or compare them with kept ones
    Bench {
        /// Only benches whose name contains this
        filter: Option<String>,
        /// Keep the figures as benches/results/NAME.toml [default: the date]
        #[arg(long, value_name = "NAME")]
        save: Option<Option<String>>,
        /// Compare with benches/results/NAME.toml [default: the newest]
        #[arg(long, value_name = "NAME")]
        compare: Option<Option<String>>,
    },
    /// Count the instructions of `xmem replay`, and fail if they grew
    ///
    /// They may not be many more than were kept, on recorded traces; and four times the events of made-up traces may
    /// not cost much more than four times as much. With UPDATE_EXPECT=1, the counts are kept instead, in
    /// benches/instructions.toml.
    Instructions {
        #[command(flatten)]
        program: Program,
    },
}

impl Benches {
    pub(crate) fn run(self) -> Result<(), Error> {
        match self {
            Self::Bench { filter, save, compare } => {
                let save = save.map(|name| name.unwrap_or_else(bench::today));
                let compare =
                    compare.map(|name| name.map_or(bench::Which::Newest, bench::Which::Named));
                bench::run(&bench::Options { filter, save, compare })
            }
            Self::Instructions { program } => instructions::run(program.program.as_deref()),
        }
    }
}
