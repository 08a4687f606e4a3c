//! `cargo xtask`: everything that is done to this repository beyond building it.
//!
//! Here are the arguments of all tasks, and the tasks that need the repository alone. Those on recorded jobs, attacks
//! and clusters are libraries beside this program, each behind a feature: `cargo xtask tidy` compiles none of them.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a development tool: it reads the repository and talks to the person who runs it"
)]

mod again;
mod bench;
mod chromium;
mod dist;
mod docs;
mod help;
mod instructions;
mod tasks;
mod test;
mod tidy;
mod views;
mod web;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::process::ExitCode;
use xmem_task::Error;

/// The exit status of a task that is skipped, as in Automake and in `.ci/run`.
const SKIPPED: u8 = 77;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Development tasks of xmem")]
#[command(disable_version_flag = true, subcommand_value_name = "TASK")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

/// The groups of tasks, in the order of the help.
#[derive(Subcommand)]
enum Task {
    #[command(flatten)]
    Checks(tasks::Checks),
    #[command(flatten)]
    Judges(tasks::Judges),
    #[command(flatten)]
    Recordings(tasks::Recordings),
    #[command(flatten)]
    Clusters(tasks::Clusters),
    #[command(flatten)]
    Report(tasks::Report),
    #[command(flatten)]
    Benches(tasks::Benches),
    #[command(flatten)]
    Release(tasks::Release),
}

fn main() -> ExitCode {
    let matches = help::grouped(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let outcome = match cli.task {
        Task::Checks(task) => task.run(),
        Task::Judges(task) => task.run(),
        Task::Recordings(task) => task.run(),
        Task::Clusters(task) => task.run(),
        Task::Report(task) => task.run(),
        Task::Benches(task) => task.run(),
        Task::Release(task) => task.run(),
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
