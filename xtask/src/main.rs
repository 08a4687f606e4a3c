//! `cargo xtask`: everything that is done to this repository beyond building it.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a development tool: it reads the repository and talks to the person who runs it"
)]

mod again;
mod arguments;
mod bench;
mod dist;
mod docs;
mod instructions;
mod test;
mod tidy;
mod views;
mod web;

use arguments::{Engine, Format, Input, Sets};
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use xmem_attack as attack;
use xmem_clusters::{kubernetes, slurm};
use xmem_corpus::{accuracy, answers, plans, torch, truth, wild};
use xmem_task::Error;

/// The exit status of a task that is skipped, as in Automake and in `.ci/run`.
const SKIPPED: u8 = 77;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Development tasks of xmem", disable_version_flag = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check what compilers do not: crate graph, module docs, provenance, links
    Tidy,
    /// Everything that must hold before a change lands: format, tidy, lints, tests, docs
    Test {
        /// Only these steps
        #[arg(value_enum)]
        steps: Vec<test::Step>,
    },
    /// Build the API reference and the book, with warnings denied
    Docs,
    /// Build the program as it is distributed, with man pages, completions, licenses, the list of its parts
    /// (CycloneDX) and checksums; fail if the program names folders of this machine
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
    /// Count the instructions of `xmem replay` on fixed traces, and fail if there are many more than
    /// were kept, or if four times the events cost much more than four times as much
    Instructions {
        /// Keep the counts in benches/instructions.toml instead
        #[arg(long)]
        update: bool,
        /// Drive this xmem [default: build it]
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
    },
    /// Predicted against recorded peaks, trace by trace
    Accuracy {
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
        /// Drive this xmem [default: build it for release]
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
    },
    /// The JSON answers of all recorded traces: save them, or compare them with saved ones
    #[command(group(clap::ArgGroup::new("mode").required(true)))]
    Answers {
        /// Write them to this folder
        #[arg(long, value_name = "FOLDER", group = "mode")]
        save: Option<PathBuf>,
        /// Compare them with those in this folder; fail if any differ that
        /// xtask/corpus/src/answers/renamed.toml does not list
        #[arg(long, value_name = "FOLDER", group = "mode")]
        compare: Option<PathBuf>,
        /// Drive this xmem [default: build it]
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
    },
    /// Plan an iteration of every recorded trace, and print the table of docs/planning.md
    Plans {
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
        /// Drive this xmem [default: build it]
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
    },
    /// Damage traces and make up hostile inputs, and judge what xmem says about each
    Attack {
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
        /// Drive this xmem [default: build it for release]
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
        /// Write a line for each run to this file, separated by tabs
        #[arg(long, value_name = "FILE")]
        report: Option<PathBuf>,
        /// Write the counts into docs/security.md
        #[arg(long, conflicts_with_all = ["sample", "traces", "kinds"])]
        update: bool,
    },
    /// Run a program and write how it ended (this is what `attack` starts)
    #[command(hide = true)]
    MeasureRun {
        usage: PathBuf,
        #[arg(last = true)]
        command: Vec<OsString>,
    },
    /// Record scripts with real releases of torch through `xmem profile`, and check what comes out
    TestTorch {
        /// Only this release [default: each that has a list of packages]
        #[arg(long, value_name = "RELEASE")]
        torch: Option<String>,
        /// Only scripts and models whose name contains this; may be given several times
        #[arg(long, value_name = "NAME")]
        only: Vec<String>,
        /// Not scripts and models whose name contains this; may be given several times
        #[arg(long, value_name = "NAME")]
        except: Vec<String>,
        /// What stands for the GPU: on a virtual GPU, the replay must give the peaks that PyTorch counted
        #[arg(long, value_name = "ENGINE", value_enum, default_value_t = Engine::Cpu)]
        engine: Engine,
        /// Keep outputs and traces of what succeeds, too
        #[arg(long)]
        keep: bool,
        /// Check the areas of CUDA on every device, not on one of each compute capability
        #[arg(long)]
        every_device: bool,
        /// Drive this xmem [default: build it]
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
    },
    /// Record the CUDA side of the cases in traces/ on a virtual GPU, and compare it with what is kept there
    ///
    /// Makes an environment with the packages of traces/packages.txt: 5 GB of disk, from PyPI.
    RecordTruth {
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
        /// Drive this xmem [default: build it]
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
    },
    /// Record public training scripts as they are, and hold the predictions against the peaks that PyTorch's
    /// CUDA build counted, kernels stubbed
    ///
    /// The scripts are listed in xtask/corpus/data/wild and fetched with git, or come with packages from PyPI. What
    /// cannot be fetched is skipped.
    Wild {
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
        /// Drive this xmem [default: build it]
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
    },
    /// Submit jobs to a Slurm cluster on this machine through the gate of contrib/slurm, and check what
    /// becomes of them
    TestSlurm {
        /// Drive this xmem [default: build it]
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
        /// Only cases whose name contains this; may be given several times
        #[arg(long, value_name = "NAME")]
        only: Vec<String>,
        /// Keep configuration, logs and state of the cluster in this folder
        #[arg(long, value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
    /// Drive a Kubernetes API server on this machine with kubectl, gated by `xmem serve` with the manifests of
    /// contrib/kubernetes, and check what becomes of the objects
    ///
    /// The environment variable KUBEBUILDER_ASSETS names the folder with kube-apiserver, etcd and kubectl.
    TestKubernetes {
        /// Drive this xmem [default: build it]
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
        /// Only cases whose name contains this; may be given several times
        #[arg(long, value_name = "NAME")]
        only: Vec<String>,
        /// Keep configuration, logs and state of the cluster in this folder
        #[arg(long, value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
    /// Build the program of the HTML page (web/dist) from web/src
    ///
    /// Needs node and npm, which fetches the packages that web/package-lock.json names.
    Web {
        /// Write nothing: fail if web/dist is not what the sources give
        #[arg(long)]
        check: bool,
    },
    /// Open pages of recorded traces in Chromium, and check what they show
    ///
    /// Needs node, npm and Chromium: the environment variable CHROMIUM names it [default: /usr/bin/chromium].
    TestWeb {
        /// Drive this xmem [default: build it]
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
        /// Replace the kept pictures
        #[arg(long)]
        update: bool,
    },
    /// Take the pictures of the page that the documentation shows
    Screenshots {
        /// Drive this xmem [default: build it]
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
    },
    /// Time a page of a million blocks in Chromium: first picture, frames, memory
    TimeWeb {
        /// Drive this xmem [default: build it for release]
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
        /// The blocks
        #[arg(long, value_name = "N", default_value_t = 1_000_000)]
        blocks: usize,
        /// Random sizes, lifetimes and operators, whose columns do not compress, instead of iterations
        #[arg(long)]
        random: bool,
    },
    /// Open files of `xmem report` in the programs that they are for: Perfetto, speedscope, pandas and Chromium
    ///
    /// Their packages come from PyPI and npm; what cannot be had is skipped.
    TestViews {
        /// Drive this xmem [default: build it]
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
    },
    /// Render the book alone (this is what `docs` starts with the `book` feature on)
    #[command(hide = true)]
    Book,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Tidy => tidy::run(),
        Task::Test { steps } => test::run(&steps),
        Task::Docs => docs::run(),
        Task::Bench { filter, save, compare } => {
            let save = save.map(|name| name.unwrap_or_else(bench::today));
            let compare =
                compare.map(|name| name.map_or(bench::Which::Newest, bench::Which::Named));
            bench::run(&bench::Options { filter, save, compare })
        }
        Task::Instructions { update, program } => {
            let mode = if update { instructions::Mode::Update } else { instructions::Mode::Check };
            instructions::run(instructions::Options { mode, program })
        }
        Task::Accuracy { folders, sets, format, check, by_op, cudnn, program } => {
            let view = match (by_op, check) {
                (true, _) => accuracy::View::ByOp,
                (false, true) => accuracy::View::Check,
                (false, false) => accuracy::View::Cases,
            };
            let (sets, format) = (sets.into(), format.into());
            accuracy::run(accuracy::Options { folders, sets, view, format, cudnn, program })
        }
        Task::Answers { save, compare, program } => {
            let mode = match (save, compare) {
                (Some(folder), _) => answers::Mode::Save(folder),
                (None, folder) => answers::Mode::Compare(folder.expect("clap requires one")),
            };
            answers::run(answers::Options { mode, program })
        }
        Task::Plans { inputs, planner, time, scope, program } => {
            plans::run(&plans::Options { inputs, planner, time, scope, program })
        }
        Task::Attack { sample, seed, traces, kinds, inputs, program, report, update } => {
            let extent = if sample { attack::Extent::Sample } else { attack::Extent::Full };
            let keep = if update { attack::Keep::Counts } else { attack::Keep::Nothing };
            attack::run(&attack::Options {
                extent,
                seed,
                traces,
                kinds,
                inputs: inputs.into_iter().map(Into::into).collect(),
                program,
                report,
                keep,
            })
        }
        Task::MeasureRun { usage, command } => attack::measure(&usage, &command),
        Task::TestTorch { torch, only, except, engine, keep, every_device, program } => {
            let keep = if keep { torch::Keep::All } else { torch::Keep::Failed };
            let engine = engine.into();
            torch::run(&torch::Options { torch, only, except, engine, keep, every_device, program })
        }
        Task::RecordTruth { cases, check: _, write, python, program } => {
            let mode = if write { truth::Mode::Write } else { truth::Mode::Check };
            truth::run(&truth::Options { cases, mode, python, program })
        }
        Task::Wild { only, count, engine: engines, kept, format, check, program } => {
            let mode = match (count, check) {
                (true, _) => wild::Mode::Count,
                (false, true) => wild::Mode::Check,
                (false, false) => wild::Mode::Predict,
            };
            let traces = if kept { wild::Traces::Kept } else { wild::Traces::New };
            let engines = engines.into_iter().map(Into::into).collect();
            let format = format.into();
            wild::run(&wild::Options { only, mode, engines, traces, format, program })
        }
        Task::TestSlurm { program, only, folder } => {
            slurm::run(&slurm::Options { program, only, folder })
        }
        Task::TestKubernetes { program, only, folder } => {
            kubernetes::run(&kubernetes::Options { program, only, folder })
        }
        Task::Web { check } => web::build(if check { web::Mode::Check } else { web::Mode::Write }),
        Task::TestWeb { program, update } => {
            let pictures = if update { web::Mode::Write } else { web::Mode::Check };
            web::test(program.as_deref(), pictures)
        }
        Task::Screenshots { program } => web::screenshots(program.as_deref()),
        Task::TimeWeb { program, blocks, random } => {
            let kind = if random { web::Blocks::Random } else { web::Blocks::Repeated };
            web::time(program.as_deref(), blocks, kind)
        }
        Task::TestViews { program } => views::run(program.as_deref()),
        Task::Book => docs::book(),
        Task::Dist { out } => dist::run(out),
        Task::Man { out } => dist::man(out),
        Task::Completions { out } => dist::completions(out),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ Error::Skipped { .. }) => {
            eprintln!("{error}");
            ExitCode::from(SKIPPED)
        }
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

fn report(error: &Error) {
    eprintln!("error: {error}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        eprintln!("  because {cause}");
        source = cause.source();
    }
}
