//! Plans that are kept and followed by another run: `xmem plan --against` and `xmem simulate --plan`.

use super::args::{PlanArgs, PlanFormat};
use super::blocks::{self, Runs, Source};
use super::error::PlanFailure;
use crate::commands::Outcome;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::{input, output, pool, style};
use std::path::Path;
use xmem_report::json::{self, HintsDocument, HintsScope, PlanRunDocument};
use xmem_report::text;
use xmem_studies::planner::Limits;
use xmem_studies::planning::{KeptPlan, PlanAnswer, PlanScope};

/// The best plan, to be kept.
fn kept(planned: &PlanAnswer) -> Result<KeptPlan, CliError> {
    let best = planned.best().ok_or(PlanFailure::NoPlan)?;
    let by = planned.interrupted.as_ref().map_or(&[][..], |run| &run.by);
    Ok(KeptPlan::new(&planned.blocks.list, &best.plan, best.planner, by))
}

fn scope(scope: PlanScope) -> HintsScope {
    match scope {
        PlanScope::Iteration => HintsScope::Iteration,
        PlanScope::All => HintsScope::All,
    }
}

/// Writes the best plan as hints.
pub(super) fn export(args: &PlanArgs, planned: &PlanAnswer, file: &Path) -> Result<(), CliError> {
    let name = input::name(&args.input);
    let document = HintsDocument::new(&name, scope(args.planning.scope), &kept(planned)?);
    output::write(json::line(&document).as_bytes(), Some(file))
}

/// Lets another input follow the best plan.
pub(super) fn against(
    args: &PlanArgs,
    planned: &PlanAnswer,
    other: &Path,
    limits: Limits,
    global: &Global,
) -> Outcome {
    let plan = kept(planned)?;
    let source = Source {
        path: other,
        device: &args.device,
        estimate: &args.estimate,
        reading: &args.reading,
    };
    let name = input::name(&args.input);
    let format = match args.answer.format {
        PlanFormat::Json => FollowFormat::Json,
        PlanFormat::Text | PlanFormat::Csv => FollowFormat::Text,
    };
    let answer = FollowOutput { format, output: args.answer.output.as_deref(), global };
    follow(&plan, &name, &source, scope(args.planning.scope), limits, &answer)
}

/// The form of an answer about a run that follows a plan.
pub(crate) enum FollowFormat {
    Text,
    Json,
}

/// The way to show an answer.
pub(crate) struct FollowOutput<'a> {
    pub(crate) format: FollowFormat,
    pub(crate) output: Option<&'a Path>,
    pub(crate) global: &'a Global,
}

/// Lets each run of an input follow a plan.
pub(crate) fn follow(
    plan: &KeptPlan,
    name: &str,
    source: &Source<'_>,
    scope: HintsScope,
    limits: Limits,
    answer: &FollowOutput<'_>,
) -> Outcome {
    let Runs { blocks: runs, is_damaged } =
        pool::run(source.reading.threads, |threads| match scope {
            HintsScope::Iteration => blocks::load_each_iteration(source, threads, answer.global),
            HintsScope::All => {
                blocks::load(source, PlanScope::All, threads, answer.global).map(Runs::from)
            }
        })?;
    if runs.iter().all(|run| run.list.is_empty()) {
        return Err(PlanFailure::NothingToPlan { input: input::display_name(source.path) }.into());
    }
    let input = input::name(source.path);
    let followed = plan
        .follow(&runs, limits)
        .map_err(|source| PlanFailure::Planning { input: format!("`{name}`"), source })?;
    let style = style::of_output(answer.output);
    let page = match (&answer.format, answer.global.verbosity()) {
        (FollowFormat::Json, _) => json::pretty(&PlanRunDocument::new(name, &input, &followed)),
        (FollowFormat::Text, Verbosity::Quiet) => text::plan_run_brief(&input, &followed),
        (FollowFormat::Text, _) => text::plan_run(name, &input, &followed, &style),
    };
    output::write(page.as_bytes(), answer.output)?;
    Ok(if is_damaged { Exit::Withheld } else { Exit::Fits })
}
