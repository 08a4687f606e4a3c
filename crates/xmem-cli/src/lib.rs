//! The `xmem` command line: arguments to the façade, the answer to the report.
//!
//! Standard output carries the result and nothing else; progress, logs and errors go to standard
//! error. Exit codes are part of the interface: see [`Exit`].
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "the command line reads device files and the environment, and writes results"
)]

mod allocator;
mod args;
mod cudnn;
mod device;
mod devices;
mod error;
mod exit;
mod file_size_limit;
mod input;
mod inspect;
mod logging;
mod output;
mod predicted_snapshot;
mod profile;
mod progress;
mod replay;
mod simulate;
mod snapshot;
mod style;
mod validate;
mod what_if;

pub use exit::Exit;

use args::{Cli, Command};
use clap::{CommandFactory, FromArgMatches};
use error::CliError;
use std::ffi::OsString;
use std::process::ExitCode;

/// The description of the command line, for man pages and completions.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command with `args`, the program's name first.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match parse(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing can be done when standard error itself is closed.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { Exit::Usage } else { Exit::Fits });
        }
    };
    error::set_layout();
    logging::start(cli.global.verbosity());
    file_size_limit::make_it_an_error();
    let result = match &cli.command {
        Command::Profile(args) => profile::run(args, &cli.global),
        Command::Replay(args) => replay::run(args, &cli.global),
        Command::Simulate(args) => simulate::run(args, &cli.global),
        Command::Inspect(args) => inspect::run(args, &cli.global),
        Command::Snapshot(args) => snapshot::run(args, &cli.global),
        Command::Validate(args) => validate::run(args, &cli.global),
        Command::Devices(args) => devices::run(args),
        Command::Completions(args) => output::completions(args.shell, command()),
        Command::CudnnWorker(args) => cudnn::serve(args),
        Command::Man => output::man(command()),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(error) => error.print().into(),
    }
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&command().try_get_matches_from(args)?)
}

type Outcome = Result<Exit, CliError>;
