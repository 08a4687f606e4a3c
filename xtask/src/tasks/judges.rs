//! What the program answers, and whether it is right.

use super::attack::{Attack, Measured};
use super::program::{Program, ReleasedProgram};
use super::values::{Format, Sets};
use clap::{ArgGroup, Args, Subcommand};
use std::path::PathBuf;
use xmem_task::Error;

/// Judges of answers.
#[derive(Subcommand)]
pub(crate) enum Judges {
    /// Hold predicted peaks against recorded ones, trace by trace
    Accuracy(Accuracy),
    /// Save the JSON answers of all recorded traces, or compare them with saved ones
    Answers(Answers),
    /// Plan an iteration of every recorded trace: the table of docs/results/plans.md
    Plans(Plans),
    /// Simulate offloading on recorded networks: docs/results/offloading.md
    Offload(Offload),
    /// Damage traces and make up hostile inputs, and judge what xmem says about each
    Attack(Attack),
    /// Run a program and write how it ended (this is what `attack` starts)
    #[command(hide = true)]
    MeasureRun(Measured),
}

#[derive(Args)]
pub(crate) struct Accuracy {
    /// Folders with trace.json.zst, expected.toml and snapshot.pickle.zst [default: all of traces/]
    folders: Vec<PathBuf>,
    /// Which cases
    #[arg(long = "set", value_enum, default_value = "all")]
    sets: Sets,
    /// How to write the tables
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Fail if the estimates of a set are further off than they may be
    #[arg(long)]
    check: bool,
    /// Instead of the cases, the operators at which schedule and recording disagree most
    #[arg(long, conflicts_with = "check")]
    by_op: bool,
    /// What knows the workspaces of convolutions: the answers of cuDNN that are kept in a folder,
    /// or what else `xmem --cudnn` takes
    #[arg(long, value_name = "WHAT", default_value = "traces/cudnn")]
    cudnn: String,
    #[command(flatten)]
    program: ReleasedProgram,
}

#[derive(Args)]
#[command(group(ArgGroup::new("mode").required(true)))]
pub(crate) struct Answers {
    /// Write them to this folder
    #[arg(long, value_name = "FOLDER", group = "mode")]
    save: Option<PathBuf>,
    /// Compare them with those in this folder; fail if any differ that
    /// xtask/corpus/src/answers/renamed.toml does not list
    #[arg(long, value_name = "FOLDER", group = "mode")]
    compare: Option<PathBuf>,
    #[command(flatten)]
    program: Program,
}

#[derive(Args)]
pub(crate) struct Offload {
    #[command(flatten)]
    program: Program,
}

#[derive(Args)]
pub(crate) struct Plans {
    /// Recordings, lists of operations or tables [default: all traces]
    inputs: Vec<PathBuf>,
    /// The planners, as of xmem plan
    #[arg(long, default_value = "auto")]
    planner: String,
    /// The time of each planner
    #[arg(long, default_value = "2s")]
    time: String,
    /// What is planned of a recording
    #[arg(long, default_value = "iteration")]
    scope: String,
    #[command(flatten)]
    program: Program,
}

impl Judges {
    pub(crate) fn run(self) -> Result<(), Error> {
        match self {
            #[cfg(feature = "corpus")]
            Self::Accuracy(arguments) => arguments.run(),
            #[cfg(feature = "corpus")]
            Self::Answers(arguments) => arguments.run(),
            #[cfg(feature = "corpus")]
            Self::Plans(arguments) => arguments.run(),
            #[cfg(feature = "corpus")]
            Self::Offload(arguments) => {
                xmem_corpus::offload::run(arguments.program.program.as_deref())
            }
            #[cfg(not(feature = "corpus"))]
            Self::Accuracy(_) | Self::Answers(_) | Self::Plans(_) | Self::Offload(_) => {
                crate::again::same("corpus")
            }
            Self::Attack(arguments) => arguments.run(),
            Self::MeasureRun(arguments) => arguments.run(),
        }
    }
}

#[cfg(feature = "corpus")]
impl Accuracy {
    fn run(self) -> Result<(), Error> {
        use xmem_corpus::accuracy::{self, Options, View};

        accuracy::run(Options {
            folders: self.folders,
            sets: self.sets.into(),
            view: match (self.by_op, self.check) {
                (true, _) => View::ByOp,
                (false, true) => View::Check,
                (false, false) => View::Cases,
            },
            format: self.format.into(),
            cudnn: self.cudnn,
            program: self.program.program,
        })
    }
}

#[cfg(feature = "corpus")]
impl Answers {
    fn run(self) -> Result<(), Error> {
        use xmem_corpus::answers::{self, Mode, Options};

        let mode = match (self.save, self.compare) {
            (Some(folder), _) => Mode::Save(folder),
            (None, folder) => Mode::Compare(folder.expect("clap requires one")),
        };
        answers::run(Options { mode, program: self.program.program })
    }
}

#[cfg(feature = "corpus")]
impl Plans {
    fn run(self) -> Result<(), Error> {
        use xmem_corpus::plans::{self, Options};

        let Self { inputs, planner, time, scope, program } = self;
        plans::run(&Options { inputs, planner, time, scope, program: program.program })
    }
}
