//! The check for Slurm. Whatever happens there is an answer: a fault lets the job through, unless its
//! partition fails closed.

use super::answers::documents;
use super::args::CheckArgs;
use super::error::CheckFailure;
use super::subject::{Subject, Unchecked};
use crate::commands::Outcome;
use crate::config::Config;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::Global;
use crate::input::{self, Kind};
use crate::output;
use std::path::Path;
use xmem_gate::{Action, Policy, Rules, SlurmOptions};
use xmem_report::check::{CheckDocument, SlurmAnswer, slurm};

/// What is decided about a submission.
#[derive(Debug)]
pub(crate) struct Decided {
    /// The worst of its traces; none if it was not checked.
    document: Option<CheckDocument>,
    pub(crate) action: Action,
    /// Why it was not checked, if the user can change it.
    note: Option<String>,
}

impl Decided {
    const UNCONCERNED: Self = Self { document: None, action: Action::Admit, note: None };

    /// A job of which nothing is known.
    pub(crate) fn unchecked(note: String, rules: &Rules) -> Self {
        let closed = rules.fail_closed.unwrap_or(false);
        let action = match rules.policy.unwrap_or_default() {
            Policy::Off => Action::Admit,
            Policy::Reject if closed => Action::Reject,
            _ => Action::Warn,
        };
        let note = if action == Action::Reject { format!("rejected: {note}") } else { note };
        Self { document: None, action, note: Some(note) }
    }

    fn fault(error: &CliError, rules: &Rules) -> Self {
        Self::unchecked(format!("GPU memory was not checked: {}", error.with_causes()), rules)
    }

    /// The answer in lines of `key=value`; `help` is a line of the site.
    pub(crate) fn lines(&self, help: Option<&str>) -> String {
        slurm(&SlurmAnswer {
            document: self.document.as_ref(),
            action: self.action.name(),
            note: self.note.as_deref(),
            help,
        })
    }
}

/// Prints the answer for the plug-in; the exit code is 0.
pub(super) fn run(args: &CheckArgs, global: &Global) -> Outcome {
    let page = match Config::load(&args.settings) {
        Ok(config) => {
            let decided = match &args.request.slurm_options {
                None => decide(args, &config, Subject::of(args, &config).map(Ok), global),
                Some(file) => match read(file) {
                    Ok(options) => submission(args, &config, &options, global),
                    Err(error) => Decided::fault(&error, &config.site.rules_of_partitions(&[])),
                },
            };
            decided.lines(config.site.help.as_deref())
        }
        Err(error) => Decided::fault(&error, &Rules::default()).lines(None),
    };
    output::write(page.as_bytes(), None)?;
    Ok(Exit::Fits)
}

/// Decides about a submission.
pub(crate) fn submission(
    args: &CheckArgs,
    config: &Config,
    options: &SlurmOptions,
    global: &Global,
) -> Decided {
    decide(args, config, Subject::of_submission(options, config), global)
}

fn decide(
    args: &CheckArgs,
    config: &Config,
    subject: Result<Result<Subject, Unchecked>, CliError>,
    global: &Global,
) -> Decided {
    let subject = match subject {
        Err(error) => return Decided::fault(&error, &config.site.rules_of_partitions(&[])),
        Ok(Err(Unchecked { note: None, .. })) => return Decided::UNCONCERNED,
        Ok(Err(Unchecked { note: Some(note), rules })) => return Decided::unchecked(note, &rules),
        Ok(Ok(subject)) => subject,
    };
    let policy = args.decision.policy.or(subject.rules.policy).unwrap_or_default();
    if policy == Policy::Off {
        return Decided::UNCONCERNED;
    }
    let checked = match documents(args, config, &subject, global) {
        Ok(checked) if checked.failed.is_none() => checked,
        Ok(_) => {
            let note = "GPU memory was not checked: a trace cannot be read".to_owned();
            return Decided::unchecked(note, &subject.rules);
        }
        Err(error) => return Decided::fault(&error, &subject.rules),
    };
    let closed = subject.rules.fail_closed.unwrap_or(false);
    let worst = checked.documents.into_iter().max_by_key(CheckDocument::decision);
    let action = |document: &CheckDocument| policy.action(document.decision(), closed);
    Decided { action: worst.as_ref().map_or(Action::Admit, action), document: worst, note: None }
}

fn read(file: &Path) -> Result<SlurmOptions, CliError> {
    let bytes = input::raw(file, Kind::Script, None)?;
    SlurmOptions::from_json(&String::from_utf8_lossy(&bytes))
        .map_err(|error| CheckFailure::Submission(error).into())
}
