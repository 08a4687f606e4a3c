//! Runs `xmem plan`.

use super::args::{PlanArgs, PlanFormat};
use super::error::PlanFailure;
use crate::commands::Outcome;
use crate::global::{Global, Verbosity};
use crate::values::Selection;

use super::blocks::{self, Loaded, Source};
use super::follow;
use crate::error::CliError;
use crate::exit::Exit;
use crate::overwrite::{self, Output};
use crate::{input, output, pool, style};
use std::path::Path;
use xmem_report::json::{self, PlanDetail, PlanDocument};
use xmem_report::{csv, text};
use xmem_studies::planner::{Limits, Planner};
use xmem_studies::planning::{DnnMemPolicies, Interruption, PlanBlocks, PlanSettings, PlanSource};

/// Runs the command.
pub(crate) fn run(args: &PlanArgs, global: &Global) -> Outcome {
    let answer = &args.answer;
    if answer.offsets && answer.format != PlanFormat::Json {
        return Err(PlanFailure::OffsetsForm.into());
    }
    let outputs = Output::given([
        ("--output", answer.output.as_deref()),
        ("--series", answer.series.as_deref()),
        ("--svg", answer.svg.as_deref()),
        ("--export-hints", answer.export_hints.as_deref()),
    ]);
    let others = [args.device.device_file.as_deref(), answer.against.as_deref()];
    let inputs = [Some(args.input.as_path())].into_iter().chain(others).flatten();
    overwrite::refuse(&outputs, inputs)?;
    let source = Source {
        path: &args.input,
        device: &args.device,
        estimate: &args.estimate,
        reading: &args.reading,
    };
    let scope = args.planning.scope;
    let is_followed = answer.export_hints.is_some() || answer.against.is_some();
    let followed = is_followed.then_some(&args.planning.interrupt[..]);
    let Loaded { blocks, recorded, notes, is_damaged } =
        pool::run(args.reading.threads, |threads| {
            blocks::load(&source, scope, followed, threads, global)
        })?;
    if blocks.list.is_empty() {
        return Err(PlanFailure::NothingToPlan { input: input::display_name(&args.input) }.into());
    }
    check_interruptions(&args.planning.interrupt, &blocks, &args.input)?;
    let is_of_ticks = |part: &Interruption| matches!(part, Interruption::Ticks(_));
    let is_of_job = matches!(blocks.source, PlanSource::Iteration { .. });
    if is_of_job && answer.export_hints.is_some() && args.planning.interrupt.iter().any(is_of_ticks)
    {
        return Err(PlanFailure::TicksOfAJob.into());
    }
    let all = is_followed.then(|| blocks.clone());
    let planned = pool::run(args.reading.threads, |_| settings(args).compare(blocks));
    if planned.blocks.list.is_empty() {
        return Err(PlanFailure::AllInterrupted { input: input::display_name(&args.input) }.into());
    }
    let name = input::name(&args.input);
    let style = style::of_output(answer.output.as_deref());
    let page = match (answer.format, global.verbosity()) {
        (PlanFormat::Json, _) => {
            let detail = if answer.offsets { PlanDetail::Offsets } else { PlanDetail::Figures };
            json::pretty(&PlanDocument::new(&name, &planned, &notes, detail))
        }
        (PlanFormat::Csv, _) => csv::plan(&planned).ok_or(PlanFailure::NoPlan)?,
        (PlanFormat::Text, Verbosity::Quiet) => text::plan_brief(&name, &planned),
        (PlanFormat::Text, _) => text::plan(&name, &planned, &notes, &style),
    };
    if let Some(path) = &answer.series {
        output::write(csv::plan_series(&planned).as_bytes(), Some(path))?;
    }
    if let Some(path) = &answer.svg {
        output::write(xmem_report::heap_map(&planned).as_bytes(), Some(path))?;
    }
    if let Some(all) = &all {
        let limits = settings(args).limits;
        let recorded = (recorded.as_ref(), all);
        let plan = follow::job_plan(args, &planned, recorded, &limits, global.verbosity())?;
        if let Some(path) = &answer.export_hints {
            follow::export(args, &plan, path)?;
        }
        if let Some(other) = &answer.against {
            return follow::against(args, &plan, other, &limits, global);
        }
    }
    output::write(page.as_bytes(), answer.output.as_deref())?;
    Ok(if is_damaged { Exit::Withheld } else { Exit::Fits })
}

/// Refuses an interruption that names nothing: it is a mistake in writing.
fn check_interruptions(
    interruptions: &[Interruption],
    blocks: &PlanBlocks,
    input: &Path,
) -> Result<(), CliError> {
    match interruptions.iter().find(|interruption| !interruption.names_some(blocks)) {
        None => Ok(()),
        Some(part) => Err(PlanFailure::InterruptionOfNothing {
            part: part.to_string(),
            input: input::display_name(input),
        }
        .into()),
    }
}

/// The planners that the arguments name, each once.
fn settings(args: &PlanArgs) -> PlanSettings {
    let planning = &args.planning;
    let planners = Selection::each(&planning.planner, Planner::ALL);
    let limits = Limits { time: planning.time, nodes: planning.nodes, seed: planning.seed };
    PlanSettings {
        planners,
        limits,
        interruptions: planning.interrupt.clone(),
        dnnmem: DnnMemPolicies::default().with(planning.dnnmem.iter().cloned()),
    }
}
