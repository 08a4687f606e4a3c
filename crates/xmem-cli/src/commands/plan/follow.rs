//! Plans that are followed by requests: `xmem plan --export-hints` and `--against`, `xmem simulate --plan`.

use super::args::{PlanArgs, PlanFormat};
use super::blocks::{self, Followers, Source};
use super::error::PlanFailure;
use crate::commands::Outcome;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::terminal::note;
use crate::{input, output, pool, style};
use std::path::Path;
use xmem_report::json::{self, HintsDocument, HintsScope, PlanRunDocument};
use xmem_report::text;
use xmem_studies::planner::{Limits, Planner};
use xmem_studies::planning::{JobPlan, PlanAnswer, PlanBlocks, PlanScope, RecordedJob};

/// The best plan as one to be followed. It is of a recorded job, or of `all`, the blocks with those that are left out.
pub(super) fn job_plan(
    args: &PlanArgs,
    planned: &PlanAnswer,
    (recorded, all): (Option<&RecordedJob>, &PlanBlocks),
    limits: &Limits,
    verbosity: Verbosity,
) -> Result<JobPlan, CliError> {
    let best = planned.best().ok_or(PlanFailure::NoPlan)?;
    match recorded {
        Some(job) => plan_of_job(job, &args.input, best.planner, limits, verbosity),
        None => Ok(JobPlan::of_list(all, &best.plan, best.planner, &args.planning.interrupt)),
    }
}

/// The plan of a recorded job to be followed, with a note where its recording is too short.
pub(crate) fn plan_of_job(
    job: &RecordedJob,
    input: &Path,
    planner: Planner,
    limits: &Limits,
    verbosity: Verbosity,
) -> Result<JobPlan, CliError> {
    let input = input::display_name(input);
    if !job.repeats() {
        let text = format!(
            "note: the plan is of the first iteration, from which others differ: {input} has fewer than three; record with \
             `xmem profile --steps 3`"
        );
        note(&text, verbosity);
    }
    JobPlan::of_job(job, planner, limits)
        .map_err(|source| PlanFailure::Planning { input, source }.into())
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
    let source = Source {
        path: other,
        device: &args.device,
        estimate: &args.estimate,
        reading: &args.reading,
    };
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
