//! Plans that are followed by requests: `xmem plan --export-hints` and `--against`, `xmem simulate --plan`.

use super::args::{PlanArgs, PlanFormat};
use super::blocks::{self, Followers, Source};
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
use xmem_studies::planning::{JobPlan, PlanAnswer, PlanBlocks, PlanScope};

/// The best plan as one to be followed; `all` are the blocks with those that are left out.
pub(super) fn job_plan(
    args: &PlanArgs,
    planned: &PlanAnswer,
    all: &PlanBlocks,
    limits: &Limits,
    global: &Global,
) -> Result<JobPlan, CliError> {
    let best = planned.best().ok_or(PlanFailure::NoPlan)?;
    let by = &args.planning.interrupt;
    let source = source(args, &args.input);
    let of_job = pool::run(args.reading.threads, |threads| {
        blocks::job_plan(&source, args.planning.scope, (best.planner, by, limits), threads, global)
    })?;
    Ok(of_job.unwrap_or_else(|| JobPlan::of_list(all, &best.plan, best.planner, by)))
}

fn source<'a>(args: &'a PlanArgs, path: &'a Path) -> Source<'a> {
    Source { path, device: &args.device, estimate: &args.estimate, reading: &args.reading }
}

const fn scope(scope: PlanScope) -> HintsScope {
    match scope {
        PlanScope::Iteration => HintsScope::Iteration,
        PlanScope::All => HintsScope::All,
    }
}

/// Writes a plan as hints.
pub(super) fn export(args: &PlanArgs, plan: &JobPlan, file: &Path) -> Result<(), CliError> {
    let name = input::name(&args.input);
    let document = HintsDocument::new(&name, scope(args.planning.scope), plan);
    output::write(json::line(&document).as_bytes(), Some(file))
}

/// Lets another input follow a plan.
pub(super) fn against(
    args: &PlanArgs,
    plan: &JobPlan,
    other: &Path,
    limits: &Limits,
    global: &Global,
) -> Outcome {
    let name = input::name(&args.input);
    let format = match args.answer.format {
        PlanFormat::Json => FollowFormat::Json,
        PlanFormat::Text | PlanFormat::Csv => FollowFormat::Text,
    };
    let answer = FollowOutput { format, output: args.answer.output.as_deref(), global };
    let source = source(args, other);
    follow(plan, &name, &source, scope(args.planning.scope), limits, &answer)
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

/// Lets an input follow a plan.
pub(crate) fn follow(
    plan: &JobPlan,
    name: &str,
    source: &Source<'_>,
    scope: HintsScope,
    limits: &Limits,
    answer: &FollowOutput<'_>,
) -> Outcome {
    let Followers { input: follower, is_damaged } = pool::run(source.reading.threads, |threads| {
        blocks::follow_input(source, scope, threads, answer.global)
    })?;
    if follower.is_empty() {
        return Err(PlanFailure::NothingToPlan { input: input::display_name(source.path) }.into());
    }
    let input = input::name(source.path);
    let followed = plan
        .follow(&follower, limits)
        .map_err(|source| PlanFailure::Planning { input: format!("`{name}`"), source })?;
    let style = style::of_output(answer.output);
    let page = match (&answer.format, answer.global.verbosity()) {
        (FollowFormat::Json, _) => {
            json::pretty(&PlanRunDocument::simulated(name, &input, plan, &followed))
        }
        (FollowFormat::Text, Verbosity::Quiet) => text::plan_run_brief(&input, &followed),
        (FollowFormat::Text, _) => text::plan_run(name, &input, plan, &followed, &style),
    };
    output::write(page.as_bytes(), answer.output)?;
    Ok(if is_damaged { Exit::Withheld } else { Exit::Fits })
}
