//! `--then`: the command that runs on the recorded trace. It is checked before the recording
//! starts.

use super::error::ProfileFailure;
use crate::commands::inspect::InspectArgs;
use crate::commands::replay::ReplayArgs;
use crate::commands::validate::ValidateArgs;
use crate::commands::{Command, Outcome, inspect, replay, validate};
use crate::error::CliError;
use crate::global::Global;
use crate::pool;
use std::ffi::OsString;
use std::path::Path;

/// A command with its trace.
pub(super) struct Then {
    global: Global,
    task: Task,
}

/// The commands that read a trace.
enum Task {
    Replay(Box<ReplayArgs>),
    Inspect(InspectArgs),
    Validate(Box<ValidateArgs>),
}

impl Then {
    /// Parses `line` as a command of this program, with `traces` as its last arguments.
    pub(super) fn parse(line: &str, traces: &[&Path]) -> Result<Self, CliError> {
        let wrong = |reason: String| ProfileFailure::Then { line: line.to_owned(), reason };
        let words = shlex::split(line).ok_or_else(|| wrong("unclosed quote".to_owned()))?;
        let own = usize::from(words.first().is_some_and(|word| word == "xmem"));
        let words = words.into_iter().skip(own).map(OsString::from);
        let all = std::iter::once("xmem".into())
            .chain(words)
            .chain(traces.iter().map(|&trace| trace.into()));
        let mut cli = crate::parse(all).map_err(|error| wrong(first_paragraph(&error)))?;
        pool::limit(cli.command.thread_counts());
        let task = match cli.command {
            Command::Replay(args) => {
                replay::check(&args)?;
                Task::Replay(args)
            }
            Command::Validate(args) => {
                validate::check(&args)?;
                Task::Validate(args)
            }
            Command::Inspect(args) => Task::Inspect(args),
            _ => return Err(wrong("the command does not read a trace".to_owned()).into()),
        };
        Ok(Self { global: cli.global, task })
    }

    /// Lets the command print as much as this one.
    pub(super) fn set_global(&mut self, global: &Global) {
        self.global = global.clone();
    }

    /// The built-in GPU that the command names.
    pub(super) fn device(&self) -> Option<&str> {
        let Task::Replay(args) = &self.task else { return None };
        args.device.device.as_deref().filter(|name| xmem::find(name).is_ok())
    }

    /// Runs the command.
    pub(super) fn run(&self) -> Outcome {
        match &self.task {
            Task::Replay(args) => replay::run(args, &self.global),
            Task::Inspect(args) => inspect::run(args, &self.global),
            Task::Validate(args) => validate::run(args, &self.global),
        }
    }
}

/// The error itself, without usage and tips.
fn first_paragraph(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    first.split_whitespace().collect::<Vec<_>>().join(" ")
}
