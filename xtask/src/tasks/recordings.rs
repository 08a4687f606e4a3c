//! Recordings with real releases of PyTorch.

use super::program::Program;
use super::values::{Engine, Format};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use xmem_task::Error;
use xmem_task::part::Part;

/// Recordings, made anew.
#[derive(Subcommand)]
pub(crate) enum Recordings {
    /// Record scripts with real releases of torch, and check what comes out
    TestTorch(TestTorch),
    /// Record the CUDA side of the cases in traces/ on a virtual GPU
    ///
    /// It is compared with what is kept there. Makes an environment with the packages of traces/packages.txt: 5 GB of
    /// disk, from PyPI.
    RecordTruth(RecordTruth),
    /// Record public training scripts, and judge predictions by what PyTorch counted
    ///
    /// The scripts are recorded as they are, and the peaks are those that PyTorch's CUDA build counted, kernels
    /// stubbed. The scripts are listed in xtask/corpus/data/wild and fetched with git, or come with packages from PyPI.
    /// What cannot be fetched is skipped.
    Wild(Wild),
    /// Run scripts whose memory others measured on GPUs and published, and compare
    ///
    /// The scripts run on a virtual GPU of the same kind. Sources and figures are in xtask/corpus/data/published; scripts
    /// are fetched with git. Results are kept there, and docs/results/published-figures.md is written.
    Published(Published),
}

#[derive(Args)]
pub(crate) struct TestTorch {
    /// Only this release [default: each that has a list of packages]
    #[arg(long, value_name = "RELEASE")]
    torch: Option<String>,
    /// Only scripts and models whose name contains this; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Not scripts and models whose name contains this; may be given several times
    #[arg(long, value_name = "NAME")]
    except: Vec<String>,
    /// Only the part K of N, by their names: 0/3, 1/3 and 2/3 together are all
    #[arg(long, value_name = "K/N")]
    part: Option<Part>,
    /// What stands for the GPU: on a virtual GPU, the replay must give the peaks that PyTorch counted
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = Engine::Cpu)]
    engine: Engine,
    /// Keep outputs and traces of what succeeds, too
    #[arg(long)]
    keep: bool,
    /// Check the areas of CUDA on every device, not on one of each compute capability
    #[arg(long)]
    every_device: bool,
    /// Make the environments, and record nothing
    #[arg(long)]
    prepare: bool,
    #[command(flatten)]
    program: Program,
}

#[derive(Args)]
pub(crate) struct RecordTruth {
    /// Only these cases
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// Fail if peaks differ from those that are kept (default)
    #[arg(long, conflicts_with = "write")]
    check: bool,
    /// Replace what is kept
    #[arg(long)]
    write: bool,
    /// The Python of an environment that has the packages [default: make one]
    #[arg(long, value_name = "PYTHON")]
    python: Option<PathBuf>,
    #[command(flatten)]
    program: Program,
}

#[derive(Args)]
pub(crate) struct Wild {
    /// Only runs whose name contains this; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Count the peaks of the runs, and keep them in xtask/corpus/data/wild/facts.toml; predict nothing
    #[arg(long, conflicts_with = "check")]
    count: bool,
    /// The engines that record; may be given several times
    #[arg(long, value_name = "ENGINE", value_enum, default_values = ["cpu", "virtual-gpu"])]
    engine: Vec<Engine>,
    /// Record nothing where an earlier call has left a trace: replay that
    #[arg(long)]
    kept: bool,
    /// How to write the table
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Fail if the predictions are further off than they may be
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    program: Program,
}

#[derive(Args)]
pub(crate) struct Published {
    /// Only groups whose SOURCE/GROUP contains this; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// A copy of a repository, in place of a clone; may be given several times
    #[arg(long, value_name = "OWNER/NAME=FOLDER")]
    repository: Vec<String>,
    /// Run nothing: write the page from the results that are kept
    #[arg(long)]
    page_only: bool,
    #[command(flatten)]
    program: Program,
}

impl Recordings {
    #[cfg(feature = "corpus")]
    pub(crate) fn run(self) -> Result<(), Error> {
        use xmem_corpus::{published, torch, truth, wild};

        match self {
            Self::TestTorch(arguments) => torch::run(&torch::Options {
                torch: arguments.torch,
                only: arguments.only,
                except: arguments.except,
                part: arguments.part.unwrap_or(Part::ALL),
                engine: arguments.engine.into(),
                keep: if arguments.keep { torch::Keep::All } else { torch::Keep::Failed },
                every_device: arguments.every_device,
                program: arguments.program.program,
                extent: match arguments.prepare {
                    true => torch::Extent::Environments,
                    false => torch::Extent::Recordings,
                },
            }),
            Self::RecordTruth(arguments) => truth::run(&truth::Options {
                cases: arguments.cases,
                mode: if arguments.write { truth::Mode::Write } else { truth::Mode::Check },
                python: arguments.python,
                program: arguments.program.program,
            }),
            Self::Wild(arguments) => wild::run(&wild::Options {
                only: arguments.only,
                mode: match (arguments.count, arguments.check) {
                    (true, _) => wild::Mode::Count,
                    (false, true) => wild::Mode::Check,
                    (false, false) => wild::Mode::Predict,
                },
                engines: arguments.engine.into_iter().map(Into::into).collect(),
                traces: if arguments.kept { wild::Traces::Kept } else { wild::Traces::New },
                format: arguments.format.into(),
                program: arguments.program.program,
            }),
            Self::Published(arguments) => published::run(&published::Options {
                only: arguments.only,
                repositories: arguments.repository,
                page_only: arguments.page_only,
                program: arguments.program.program,
            }),
        }
    }

    #[cfg(not(feature = "corpus"))]
    pub(crate) fn run(self) -> Result<(), Error> {
        crate::again::same("corpus")
    }
}
