//! The answers about all traces of a command.

use super::args::CheckArgs;
use super::question::Questions;
use super::subject::Subject;
use crate::config::Config;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::Global;
use crate::overwrite::{self, Output};
use crate::traces::{self, Paths, TraceInput, Traces};
use std::path::PathBuf;
use xmem_report::check::CheckDocument;

/// The answers about all traces of a command.
pub(super) struct Checked {
    pub(super) documents: Vec<CheckDocument>,
    /// The files of the documents.
    pub(super) traces: Vec<PathBuf>,
    /// The exit code of the worst error, if a trace has no answer.
    pub(super) failed: Option<Exit>,
}

/// Checks every trace. An error about one of several is printed, and the others are checked.
pub(super) fn documents(
    args: &CheckArgs,
    config: &Config,
    subject: &Subject,
    global: &Global,
) -> Result<Checked, CliError> {
    let traces = traces(args, subject, global)?;
    let questions = Questions::new(args, config, subject)?;
    let mut checked = Checked { documents: Vec::new(), traces: Vec::new(), failed: None };
    for trace in &traces {
        match questions.answer(trace, global) {
            Ok(document) => {
                checked.documents.push(document);
                checked.traces.push(trace.clone());
            }
            Err(error) if traces.len() == 1 => return Err(error),
            Err(error) => checked.failed = checked.failed.max(Some(error.print())),
        }
    }
    Ok(checked)
}

/// The traces of a command, none of which is where the answer is to be written.
pub(super) fn traces(
    args: &CheckArgs,
    subject: &Subject,
    global: &Global,
) -> Result<Vec<PathBuf>, CliError> {
    let paths = if args.literal_paths { Paths::Literal } else { subject.paths };
    let output = args.decision.output.as_deref();
    let found = traces::resolve(&subject.traces, paths, output)?;
    found.tell_skipped(global.verbosity());
    let Traces { all, lists, .. } = found;
    let inputs = all.iter().map(TraceInput::path).chain(lists.iter().map(AsRef::as_ref));
    overwrite::refuse(&Output::given([("--output", output)]), inputs)?;
    Ok(all.iter().map(|trace| trace.path().to_owned()).collect())
}
