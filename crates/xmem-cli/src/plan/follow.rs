//! Plans that are kept and followed by another run: `xmem plan --against` and `xmem simulate --plan`.

use super::blocks::{self, Runs, Source};
use crate::args::{CudnnArgs, Format, ReadingArgs, Scope};
use crate::args::{Global, PlanArgs, PlanFormat, SimulateArgs, Verbosity};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::Kind;
use crate::{Outcome, input, output, pool, style};
use std::path::Path;
use xmem_report::json::{self, HintsDocument, HintsScope, PlanRunDocument, read_hints};
use xmem_report::text;
use xmem_studies::planner::Limits;
use xmem_studies::planning::{KeptPlan, PlanAnswer};

/// The best plan, to be kept.
fn kept(planned: &PlanAnswer) -> Result<KeptPlan, CliError> {
    let best = planned.best().ok_or(CliError::NoPlan)?;
    let by = planned.interrupted.as_ref().map_or(&[][..], |run| &run.by);
    Ok(KeptPlan::new(&planned.blocks.list, &best.plan, best.planner, by))
}

fn scope(scope: Scope) -> HintsScope {
    match scope {
        Scope::Iteration => HintsScope::Iteration,
        Scope::All => HintsScope::All,
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
        what_if: &args.what_if,
        cudnn: &args.cudnn,
        allocator: &args.allocator,
        reading: &args.reading,
    };
    let name = input::name(&args.input);
    let form = match args.answer.format {
        PlanFormat::Json => Form::Json,
        PlanFormat::Text | PlanFormat::Csv => Form::Text,
    };
    let answer = Answer { form, output: args.answer.output.as_deref(), global };
    follow(&plan, &name, &source, scope(args.planning.scope), limits, &answer)
}

/// Lets the input of `xmem simulate` follow the plan of a file.
pub(crate) fn simulate(args: &SimulateArgs, file: &Path, global: &Global) -> Outcome {
    let form = match args.format {
        Format::Text => Form::Text,
        Format::Json => Form::Json,
        Format::Jsonl => return Err(CliError::PlanAsLines),
    };
    let name = input::name(file);
    let text = input::read(file, Kind::Operations, args.max_input)?;
    let (plan, scope) = read_hints(&text)
        .map_err(|source| CliError::Hints { input: input::display_name(file), source })?;
    let (device, what_if) = Default::default();
    let source = Source {
        path: &args.operations,
        device: &device,
        what_if: &what_if,
        cudnn: &CudnnArgs::default(),
        allocator: &args.allocator,
        reading: &ReadingArgs { max_input: args.max_input, threads: None },
    };
    let answer = Answer { form, output: args.output.as_deref(), global };
    follow(&plan, &name, &source, scope, Limits::default(), &answer)
}

enum Form {
    Text,
    Json,
}

/// The way to show an answer.
struct Answer<'a> {
    form: Form,
    output: Option<&'a Path>,
    global: &'a Global,
}

fn follow(
    plan: &KeptPlan,
    name: &str,
    source: &Source<'_>,
    scope: HintsScope,
    limits: Limits,
    answer: &Answer<'_>,
) -> Outcome {
    let Runs { blocks: runs, is_damaged } =
        pool::run(source.reading.threads, |threads| match scope {
            HintsScope::Iteration => blocks::load_each_iteration(source, threads, answer.global),
            HintsScope::All => {
                blocks::load(source, Scope::All, threads, answer.global).map(Runs::from)
            }
        })?;
    if runs.iter().all(|run| run.list.is_empty()) {
        return Err(CliError::NothingToPlan { input: input::display_name(source.path) });
    }
    let input = input::name(source.path);
    let followed = plan
        .follow(&runs, limits)
        .map_err(|source| CliError::Plan { input: format!("`{name}`"), source })?;
    let style = style::of_output(answer.output);
    let page = match (&answer.form, answer.global.verbosity()) {
        (Form::Json, _) => json::pretty(&PlanRunDocument::new(name, &input, &followed)),
        (Form::Text, Verbosity::Quiet) => text::plan_run_brief(&input, &followed),
        (Form::Text, _) => text::plan_run(name, &input, &followed, &style),
    };
    output::write(page.as_bytes(), answer.output)?;
    Ok(if is_damaged { Exit::Withheld } else { Exit::Fits })
}
