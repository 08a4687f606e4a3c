//! Arguments of `cargo xtask attack`.

use super::program::ReleasedProgram;
use super::values::Input;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use xmem_task::Error;

#[derive(Args)]
pub(crate) struct Attack {
    /// Only a small fixed part, which takes less than a minute
    #[arg(long)]
    sample: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Only this recorded trace; repeatable
    #[arg(long = "trace", value_name = "NAME")]
    traces: Vec<String>,
    /// Only this kind of damage; repeatable
    #[arg(long = "kind", value_name = "NAME")]
    kinds: Vec<String>,
    /// Only recordings of this sort, and neither plans nor hostile files; repeatable
    #[arg(long = "input", value_name = "SORT", value_enum)]
    inputs: Vec<Input>,
    #[command(flatten)]
    program: ReleasedProgram,
    /// Write a line for each run to this file, separated by tabs
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the counts into docs/results/damage.md
    #[arg(long, conflicts_with_all = ["sample", "traces", "kinds"])]
    write: bool,
}

impl Attack {
    #[cfg(feature = "attack")]
    pub(crate) fn run(self) -> Result<(), Error> {
        use xmem_attack::{Extent, Keep, Options};

        xmem_attack::run(&Options {
            extent: if self.sample { Extent::Sample } else { Extent::Full },
            seed: self.seed,
            traces: self.traces,
            kinds: self.kinds,
            inputs: self.inputs.into_iter().map(Into::into).collect(),
            program: self.program.program,
            report: self.report,
            keep: if self.write { Keep::Counts } else { Keep::Nothing },
        })
    }

    #[cfg(not(feature = "attack"))]
    pub(crate) fn run(self) -> Result<(), Error> {
        crate::again::same("attack")
    }
}

#[derive(Args)]
pub(crate) struct Measured {
    usage: PathBuf,
    #[arg(last = true)]
    command: Vec<OsString>,
}

impl Measured {
    #[cfg(feature = "attack")]
    pub(crate) fn run(self) -> Result<(), Error> {
        xmem_attack::measure(&self.usage, &self.command)
    }

    #[cfg(not(feature = "attack"))]
    pub(crate) fn run(self) -> Result<(), Error> {
        crate::again::same("attack")
    }
}
