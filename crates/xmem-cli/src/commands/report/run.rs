//! Runs `xmem report`.

use super::args::{PictureArgs, ReportArgs, ReportFormat};
use super::error::ReportFailure;
use super::picture::{Loaded, Pictured};
use super::settings::{self, Setting};
use super::what_ifs::WhatIfs;
use super::{html, what_ifs};
use crate::commands::plan::PlanFailure;
use crate::commands::{Outcome, offload};
use crate::error::CliError;
use crate::estimate;
use crate::exit::Exit;
use crate::global::Global;
use crate::overwrite::{self, Output};
use crate::progress::Progress;
use crate::reading::{is_damaged, read_options};
use crate::values::Selection;
use crate::{cudnn, input, output, pool};
use std::io::{IsTerminal, stdout};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xmem::predict::{BlockKey, Prediction, SnapshotEnd};
use xmem::{Device, Job, PredictedJob};
use xmem_studies::offload::Placement;
use xmem_studies::offloading::{OffloadAnswer, OffloadSettings, PolicyChoice};
use xmem_studies::planner::{Limits, Planner};
use xmem_studies::planning::{PlanAnswer, PlanBlocks, PlanScope, PlanSettings};
use xmem_view::Run;

/// The time that a plan may take.
const PLANNING_TIME: Duration = Duration::from_secs(2);

/// Runs the command.
pub(crate) fn run(args: &ReportArgs, global: &Global) -> Outcome {
    let picture = &args.picture;
    let outputs = Output::given([("--output", picture.output.as_deref())]);
    let traces = args.traces.iter().map(PathBuf::as_path);
    overwrite::refuse(&outputs, traces.chain(args.device.device_file.as_deref()))?;
    let format = format(picture)?;
    let settings = settings::all(args)?;
    let count = args.traces.len() * settings.len();
    if format != ReportFormat::Html && count > 1 {
        return Err(ReportFailure::OneRunOnly { count }.into());
    }
    check_output(format, picture)?;
    let mut looked_at = pool::run(args.reading.threads, |threads| {
        let one = |trace: &PathBuf| look(trace, &settings, format, args, threads, global);
        args.traces.iter().map(one).collect::<Result<Vec<_>, _>>()
    })?;
    let refused = refusal(&mut looked_at, |loaded| &mut loaded.plan)
        .or_else(|| refusal(&mut looked_at, |loaded| &mut loaded.offload));
    if let Some(refused) = refused {
        return Err(refused);
    }
    match (format, &looked_at[..]) {
        (ReportFormat::Html, all) => html::write(all, &settings, picture, global.verbosity())?,
        (format, all) => {
            let [loaded] = all else { unreachable!("several recordings are refused above") };
            let Pictured { answer, timeline } = &loaded.pictured[0];
            let run = Run { name: &loaded.name, job: &loaded.job, answer, timeline };
            one_run(format, &run, picture)?;
        }
    }
    Ok(if looked_at.iter().any(|loaded| is_damaged(&loaded.job)) {
        Exit::Withheld
    } else {
        Exit::Fits
    })
}

/// The format that `--format` names; without it, the format of the file's ending, or a page if the file has none.
fn format(picture: &PictureArgs) -> Result<ReportFormat, CliError> {
    let named = picture.output.as_deref().filter(|_| picture.format.is_none());
    let Some((path, ending)) = named.and_then(|path| Some((path, path.extension()?))) else {
        return Ok(picture.format.unwrap_or(ReportFormat::Html));
    };
    Ok(match ending.to_str().map(str::to_ascii_lowercase).as_deref() {
        Some("html" | "htm") => ReportFormat::Html,
        Some("svg") => ReportFormat::Svg,
        Some("folded") => ReportFormat::Folded,
        Some("pftrace" | "perfetto-trace") => ReportFormat::Perfetto,
        Some("parquet") => ReportFormat::Parquet,
        Some("jsonl") => ReportFormat::Jsonl,
        _ if path.to_string_lossy().ends_with(".speedscope.json") => ReportFormat::Speedscope,
        _ => return Err(ReportFailure::UnknownEnding { path: path.to_owned() }.into()),
    })
}

/// Refuses a terminal as output of what is not text, before anything is read.
fn check_output(format: ReportFormat, picture: &PictureArgs) -> Result<(), CliError> {
    if picture.output.is_some() || !stdout().is_terminal() {
        return Ok(());
    }
    match format {
        ReportFormat::Html => Err(ReportFailure::PageToTerminal.into()),
        ReportFormat::Perfetto => {
            Err(ReportFailure::FileToTerminal { format: "Perfetto", file: "run.pftrace" }.into())
        }
        ReportFormat::Parquet => {
            Err(ReportFailure::FileToTerminal { format: "Parquet", file: "blocks.parquet" }.into())
        }
        ReportFormat::Folded
        | ReportFormat::Speedscope
        | ReportFormat::Svg
        | ReportFormat::Jsonl => Ok(()),
    }
}

/// Writes a format that shows one run.
fn one_run(format: ReportFormat, run: &Run<'_>, picture: &PictureArgs) -> Result<(), CliError> {
    match format {
        ReportFormat::Html => unreachable!("written by the caller"),
        ReportFormat::Folded => {
            let text = xmem_view::folded(run, picture.by.unwrap_or(BlockKey::Stack));
            output::write(text.as_bytes(), picture.output.as_deref())
        }
        ReportFormat::Perfetto => file(&xmem_view::perfetto(run), picture),
        ReportFormat::Speedscope => file(&xmem_view::speedscope(run), picture),
        ReportFormat::Parquet => file(&xmem_view::parquet(run, picture.table), picture),
        ReportFormat::Jsonl => {
            let text = xmem_view::jsonl(run, picture.table);
            output::write(text.as_bytes(), picture.output.as_deref())
        }
        ReportFormat::Svg => {
            let text = xmem_view::svg(run, picture.view, picture.by);
            output::write(text.as_bytes(), picture.output.as_deref())
        }
    }
}

/// Writes the file of another program.
fn file(content: &[u8], picture: &PictureArgs) -> Result<(), CliError> {
    output::bytes(picture.output.as_deref(), |out| Ok(out.write_all(content)?))
}

fn look(
    trace: &Path,
    settings: &[Setting],
    format: ReportFormat,
    args: &ReportArgs,
    threads: NonZeroUsize,
    global: &Global,
) -> Result<Loaded, CliError> {
    let name = input::name(trace);
    let progress = Progress::over([trace], global.verbosity());
    let options = read_options(&args.reading, threads);
    let observer = |stage| progress.stage(&name, stage);
    let job = Job::observed(trace, &options, &observer)?;
    let failed = |error| estimate::failure(&name, error);
    let predicted = settings.iter().map(|at| at.estimate.predict_observed(&job, &observer));
    let predicted: Vec<PredictedJob<'_>> = predicted.collect::<Result<_, _>>().map_err(failed)?;
    let one = |run: &PredictedJob<'_>| Pictured {
        answer: run.answer_observed(&observer),
        timeline: run.timeline(SnapshotEnd::Job),
    };
    let pictured: Vec<Pictured> = predicted.iter().map(one).collect();
    let (mut what_ifs, mut planned, mut moved) = (WhatIfs::default(), None, None);
    if format == ReportFormat::Html {
        let convolutions = cudnn::source(&args.estimate.cudnn)?;
        let device = settings::chosen(args)?;
        let allocator = &args.estimate.allocator;
        what_ifs = what_ifs::of(&job, &pictured[0].answer, allocator, |allocator| {
            settings::builder(args, &device, allocator, &convolutions)
        })?;
        let prediction = predicted[0].prediction();
        if args.picture.plan {
            planned = Some(plan(prediction, &name));
        }
        if !args.picture.offload.is_empty() {
            let policies = Selection::each(&args.picture.offload, &PolicyChoice::ALL);
            let device = &settings[0].estimate.target().device;
            moved = Some(offloaded(prediction, device, trace, policies));
        }
    }
    drop(predicted);
    Ok(Loaded { name, job, pictured, what_ifs, plan: planned, offload: moved })
}

/// The reason why no recording has what was asked for, if it was; recordings of a GPU, for example, may have no
/// iterations.
fn refusal<T>(
    all: &mut [Loaded],
    wanted: fn(&mut Loaded) -> &mut Option<Result<T, CliError>>,
) -> Option<CliError> {
    if all.iter_mut().any(|loaded| matches!(wanted(loaded), Some(Ok(_)))) {
        return None;
    }
    all.iter_mut().find_map(|loaded| wanted(loaded).take_if(|result| result.is_err())?.err())
}

/// The plan of an iteration, by the planner that `xmem plan` takes.
fn plan(prediction: &Prediction<'_>, name: &str) -> Result<PlanAnswer, CliError> {
    let blocks = PlanBlocks::of_prediction(prediction, PlanScope::default());
    let nothing = || PlanFailure::NothingToPlan { input: name.to_owned() };
    let blocks = blocks.ok().filter(|blocks| !blocks.list.is_empty()).ok_or_else(nothing)?;
    let limits = Limits { time: PLANNING_TIME, ..Limits::default() };
    let settings =
        PlanSettings { planners: vec![Planner::Auto], limits, ..PlanSettings::default() };
    Ok(settings.compare(blocks))
}

/// The policies on the last iteration, with the allocator that `xmem offload` takes, and as a static plan.
fn offloaded(
    prediction: &Prediction<'_>,
    device: &Device,
    trace: &Path,
    policies: Vec<PolicyChoice>,
) -> Result<OffloadAnswer, CliError> {
    let placements = vec![Placement::Caching, Placement::Planned(Planner::BestFit)];
    let settings = OffloadSettings { policies, placements, ..OffloadSettings::default() };
    settings.simulate(prediction, device).map_err(|error| offload::error(trace, error).into())
}
