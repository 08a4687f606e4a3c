//! Runs `xmem check`.

use super::answers::documents;
use super::args::{CheckArgs, CheckFormat};
use super::error::CheckFailure;
use super::subject::Subject;
use super::{baseline, question, skypilot, slurm};
use crate::commands::Outcome;
use crate::config::Config;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::{output, style};
use xmem::Bytes;
use xmem_gate::{Decision, Margin, Policy};
use xmem_report::check::{self, CheckDocument};
use xmem_report::json;

/// Runs the command.
pub(crate) fn run(args: &CheckArgs, global: &Global) -> Outcome {
    match args.decision.format {
        CheckFormat::Slurm => return slurm::run(args, global),
        CheckFormat::Skypilot => return skypilot::run(args, global),
        _ => {}
    }
    let config = Config::load(&args.settings)?;
    let subject = Subject::of(args, &config)?;
    let checked = documents(args, &config, &subject, global)?;
    let mut documents = checked.documents;
    let baseline = baseline::apply(args, &config, &mut documents)?;
    let policy = policy(args, &config, &subject);
    for document in &mut documents {
        let closed = subject.rules.fail_closed.unwrap_or(false);
        document.set_action(policy.action(document.decision(), closed));
    }
    let margin = question::margin(args, &config, &subject);
    let page = page(&documents, args, margin, global)?;
    if !page.is_empty() {
        output::write(page.as_bytes(), args.decision.output.as_deref())?;
    }
    if let Some(baseline) = baseline {
        baseline.write(global.verbosity())?;
    }
    if let Some(pods) = subject.pods.filter(|_| args.request.write) {
        if let Some(failed) = checked.failed {
            return Ok(failed);
        }
        let answers: Vec<_> = checked.traces.into_iter().zip(&documents).collect();
        pods.annotate(&answers, global.verbosity())?;
    }
    let decided = documents.iter().map(exit).max().unwrap_or(Exit::Fits);
    let decided = if policy == Policy::Reject { decided } else { Exit::Fits };
    Ok(checked.failed.map_or(decided, |failed| failed.max(decided)))
}

/// What follows from a decision: the option, else the settings, else the rules of the site.
fn policy(args: &CheckArgs, config: &Config, subject: &Subject) -> Policy {
    let given = args.decision.policy.or_else(|| config.get("policy"));
    given.or(subject.rules.policy).unwrap_or_default()
}

fn exit(document: &CheckDocument) -> Exit {
    match document.decision() {
        _ if document.is_expected_to_fail() => Exit::DoesNotFit,
        _ if document.grew() => Exit::Differs,
        Decision::NoVerdict => Exit::Withheld,
        _ => Exit::Fits,
    }
}

fn page(
    documents: &[CheckDocument],
    args: &CheckArgs,
    margin: Margin,
    global: &Global,
) -> Result<String, CliError> {
    let style = style::of_output(args.decision.output.as_deref());
    let text = |document: &CheckDocument| match global.verbosity() {
        Verbosity::Quiet => check::text_brief(document, &style),
        _ => check::text(document, &style),
    };
    Ok(match (args.decision.format, documents) {
        (CheckFormat::Gpumem, _) => check::gpumem(memory(documents, margin)?),
        (CheckFormat::Dra, _) => {
            let gpus = documents.iter().map(|document| document.gpus).max();
            check::dra(memory(documents, margin)?, gpus.unwrap_or(1))
        }
        (CheckFormat::Text | CheckFormat::Slurm | CheckFormat::Skypilot, _) => {
            documents.iter().map(text).collect()
        }
        (CheckFormat::Json, [document]) => json::pretty(document),
        (CheckFormat::Json, _) => json::pretty(&documents),
        (CheckFormat::Github, _) => check::github(documents),
        (CheckFormat::Markdown, _) => check::markdown(documents),
        (CheckFormat::Junit, _) => check::junit(documents),
    })
}

/// The memory that the job needs on each GPU: the most of all ranks, with the margin.
fn memory(documents: &[CheckDocument], margin: Margin) -> Result<Bytes, CheckFailure> {
    let needs: Option<Vec<u64>> = documents.iter().map(|document| document.need_bytes).collect();
    let most = needs.and_then(|needs| needs.into_iter().max());
    most.map(|need| margin.around(Bytes(need))).ok_or(CheckFailure::NoNumber)
}
