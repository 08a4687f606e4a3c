//! The check for Slurm's plug-in. Whatever happens, there is an answer in lines, and exit code 0: a fault
//! lets the job through, unless its partition fails closed.

use super::documents;
use super::subject::{Subject, Unchecked};
use crate::Outcome;
use crate::args::{CheckArgs, Global};
use crate::config::Config;
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{self, Kind};
use crate::output;
use xmem_gate::{Action, Policy, Rules, SlurmOptions};
use xmem_report::gate::{CheckDocument, SlurmAnswer, slurm};

/// Runs the command.
pub(super) fn run(args: &CheckArgs, global: &Global) -> Outcome {
    let page = match Config::load(&args.settings) {
        Ok(config) => decide(args, &config, global),
        Err(error) => unchecked(&fault(&error), &Rules::default(), None),
    };
    output::write(page.as_bytes(), None)?;
    Ok(Exit::Fits)
}

fn decide(args: &CheckArgs, config: &Config, global: &Global) -> String {
    let help = config.site.help.as_deref();
    let site = config.site.rules_of_partitions(&[]);
    let subject = match &args.request.slurm_options {
        None => Subject::of(args, config).map(Ok),
        Some(file) => options(file).and_then(|o| Subject::of_submission(&o, config)),
    };
    let subject = match subject {
        Err(error) => return unchecked(&fault(&error), &site, help),
        Ok(Err(Unchecked { note: None, .. })) => {
            return slurm(&SlurmAnswer { document: None, action: "admit", note: None, help: None });
        }
        Ok(Err(Unchecked { note: Some(note), rules })) => return unchecked(&note, &rules, help),
        Ok(Ok(subject)) => subject,
    };
    let policy = args.decision.policy.or(subject.rules.policy).unwrap_or_default();
    let closed = subject.rules.fail_closed.unwrap_or(false);
    if policy == Policy::Off {
        return slurm(&SlurmAnswer { document: None, action: "admit", note: None, help: None });
    }
    let checked = match documents(args, config, &subject, global) {
        Ok(checked) if checked.failed.is_none() => checked,
        Ok(_) => {
            return unchecked(
                "GPU memory was not checked: a trace cannot be read",
                &subject.rules,
                help,
            );
        }
        Err(error) => return unchecked(&fault(&error), &subject.rules, help),
    };
    let worst = checked.documents.iter().max_by_key(|document| document.decision());
    let action = |document: &CheckDocument| policy.action(document.decision(), closed);
    let action = worst.map_or(Action::Admit, action);
    slurm(&SlurmAnswer { document: worst, action: action.name(), note: None, help })
}

fn options(file: &std::path::Path) -> Result<SlurmOptions, CliError> {
    let bytes = input::raw(file, Kind::Script, None)
        .map_err(|failed| input::error(file, Kind::Script, failed))?;
    SlurmOptions::from_json(&String::from_utf8_lossy(&bytes)).map_err(CliError::Submission)
}

fn fault(error: &CliError) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |e| e.source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    format!("GPU memory was not checked: {}", causes.join(": "))
}

/// The answer about a job of which nothing is known.
fn unchecked(note: &str, rules: &Rules, help: Option<&str>) -> String {
    let closed = rules.fail_closed.unwrap_or(false);
    let action = match rules.policy.unwrap_or_default() {
        Policy::Off => Action::Admit,
        Policy::Reject if closed => Action::Reject,
        _ => Action::Warn,
    };
    slurm(&SlurmAnswer { document: None, action: action.name(), note: Some(note), help })
}
