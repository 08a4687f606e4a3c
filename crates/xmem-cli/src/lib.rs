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
mod check;
mod config;
mod cudnn;
mod device;
mod devices;
mod diff;
mod error;
mod exit;
mod file_size_limit;
mod guard;
mod input;
mod inspect;
mod logging;
mod look;
mod offload;
mod output;
mod overwrite;
mod plan;
mod pool;
mod predicted_run;
mod predicted_snapshot;
mod profile;
mod progress;
mod redact;
mod replay;
mod report;
mod serve;
mod simulate;
mod snapshot;
mod style;
mod submit;
mod terminal;
mod validate;
mod what_if;

pub use exit::Exit;

use args::{Cli, Command};
use clap::{CommandFactory, FromArgMatches};
use error::CliError;
use logging::LogFormat;
use std::ffi::OsString;
use std::process::ExitCode;

/// The description of the command line, for man pages and completions.
#[must_use]
pub fn command() -> clap::Command {
    args::on_one_screen(Cli::command())
}

/// Runs the command with `args`, the program's name first.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    guard::install();
    let args: Vec<OsString> = args.into_iter().collect();
    let mut cli = match parse(args.clone()) {
        Ok(cli) => cli,
        Err(error) => {
            let error = without_controls(&args).unwrap_or(error);
            // Nothing can be done when standard error itself is closed.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { Exit::Usage } else { Exit::Fits });
        }
    };
    error::set_layout();
    logging::start(cli.global.verbosity(), log_format(&cli.command));
    for note in pool::limit(&mut cli.command) {
        terminal::say(&note);
    }
    file_size_limit::make_it_an_error();
    let result = guard::catch(|| command_of(&cli));
    match result.unwrap_or_else(|panicked| Err(CliError::internal(None, panicked))) {
        Ok(exit) => exit.into(),
        Err(error) => error.print().into(),
    }
}

/// A server's logs are read by programs.
fn log_format(command: &Command) -> LogFormat {
    match command {
        Command::Serve(_) => LogFormat::Json,
        _ => LogFormat::Text,
    }
}

fn command_of(cli: &Cli) -> Outcome {
    match &cli.command {
        Command::Profile(args) => profile::run(args, &cli.global),
        Command::Replay(args) => replay::run(args, &cli.global),
        Command::Check(args) => check::run(args, &cli.global),
        Command::Submit(args) => submit::run(args, &cli.global),
        Command::Config(args) => config::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Look(args) => look::run(args, &cli.global),
        Command::Diff(args) => diff::run(args, &cli.global),
        Command::Plan(args) => plan::run(args, &cli.global),
        Command::Report(args) => report::run(args, &cli.global),
        Command::Offload(args) => offload::run(args, &cli.global),
        Command::Simulate(args) => simulate::run(args, &cli.global),
        Command::Inspect(args) => inspect::run(args, &cli.global),
        Command::Snapshot(args) => snapshot::run(args, &cli.global),
        Command::Validate(args) => validate::run(args, &cli.global),
        Command::Devices(args) => devices::run(args),
        Command::Completions(args) => output::completions(args.shell, command()),
        Command::CudnnWorker(args) => cudnn::serve(args),
        Command::EnterOverlay(args) => Ok(profile::enter_overlay(args)),
        Command::Man => output::man(command()),
    }
}

/// The error of arguments that are not printable, as the same arguments have it with escapes: clap quotes
/// them as they are.
fn without_controls(args: &[OsString]) -> Option<clap::Error> {
    let shown = |arg: &OsString| OsString::from(xmem::types::printable_path(arg.as_ref()));
    let shown: Vec<OsString> = args.iter().map(shown).collect();
    if shown == args {
        return None;
    }
    let mut error = parse(shown).err();
    // Arguments that are right only with escapes: the message names an argument, but not its value.
    if error.is_none() {
        error = Some(command().error(
            clap::error::ErrorKind::InvalidValue,
            "an argument has characters that are not printable",
        ));
    }
    error
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&command().try_get_matches_from(args)?)
}

type Outcome = Result<Exit, CliError>;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
