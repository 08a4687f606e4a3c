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
mod attempt;
mod choice;
mod codes;
mod commands;
mod config;
mod cudnn;
mod device;
mod error;
mod estimate;
mod exit;
mod file_size_limit;
mod format;
mod global;
mod guard;
mod input;
mod logging;
mod measures;
mod objects;
mod operations;
mod output;
mod overwrite;
mod pool;
mod predicted_run;
mod progress;
mod reading;
mod shard;
mod shell;
mod short_help;
mod style;
mod terminal;
mod traces;
mod values;
mod what_if;

pub use error::Explanation;
pub use exit::Exit;

use clap::{CommandFactory, FromArgMatches};
use commands::Cli;
use guard::InternalError;
use std::ffi::OsString;
use std::process::ExitCode;

/// What the program says without arguments.
const FIRST_STEPS: &str = "\
xmem predicts the GPU memory of a PyTorch training job.

What do you have?
  a training script      xmem profile --device a100-40g -- python train.py
  a trace or a snapshot  xmem replay trace.json.zst --device rtx3060-12g
  a graph of a model     xmem estimate model.pt2 --training --device a100-40g

And then?
  it does not fit        xmem fit --device rtx3060-12g -- python train.py
  it needs too much      xmem report trace.json.zst --output run.html

xmem devices lists the GPUs, xmem --help all commands, and xmem COMMAND --help has examples.";

/// The description of the command line, for man pages and completions.
#[must_use]
pub fn command() -> clap::Command {
    short_help::on_one_screen(Cli::command())
}

/// The explanations of all errors, in the order of their codes.
#[must_use]
pub fn explanations() -> Vec<&'static Explanation> {
    codes::explanations()
}

/// Runs the command with `args`, the program's name first.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    guard::install();
    let args: Vec<OsString> = args.into_iter().collect();
    let mut cli = match parse(args.clone()) {
        Ok(cli) => cli,
        Err(_) if args.len() <= 1 => {
            terminal::say(FIRST_STEPS);
            return ExitCode::from(Exit::Usage);
        }
        Err(error) => {
            let error = without_controls(&args).unwrap_or(error);
            terminal::print_usage(&error, error::USAGE);
            return ExitCode::from(if error.use_stderr() { Exit::Usage } else { Exit::Fits });
        }
    };
    error::set_layout();
    logging::start(cli.global.verbosity(), cli.command.log_format());
    for note in pool::limit(cli.command.thread_counts()) {
        terminal::say(&note);
    }
    file_size_limit::make_it_an_error();
    let result = guard::catch(|| cli.run());
    match result.unwrap_or_else(|panicked| Err(InternalError::new(None, panicked).into())) {
        Ok(exit) => exit.into(),
        Err(error) => error.print().into(),
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
