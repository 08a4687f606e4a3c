//! Runs `xmem replay`.

use super::args::{ReplayArgs, ReplayFormat};
use super::batch::{self, Batch, LocalFile};
use super::dataset::Dataset;
use super::error::ReplayFailure;
use super::interrupt::Interrupt;
use super::resume::{self, Completed};
use super::settings::{self, Settings};
use super::stream::{self, Lines, Sink};
use super::summary::Summary;
use super::trace_error::{TraceError, catch_panic};
use super::{collect, lengths, next, snapshot, tune};
use crate::commands::Outcome;
use crate::error::CliError;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::overwrite::{self, Output, OverwriteFailure};
use crate::progress::Progress;
use crate::reading::read_options;
use crate::terminal::{note, shown};
use crate::traces::{self, Paths, Source, TraceInput, Traces};
use crate::{allocator, cudnn, output, pool, style};
use std::path::{Path, PathBuf};
use xmem::predict::SnapshotEnd;
use xmem::snapshot::Snapshot;
use xmem::{Answer, EstimateError, Job, ReadOptions, Stage};
use xmem_objects::ObjectAddress;
use xmem_report::json::{self, Document, Rules};
use xmem_report::text;

/// Runs the command.
pub(crate) fn run(args: &ReplayArgs, global: &Global) -> Outcome {
    let settings = checked(args)?;
    let traces = traces::resolve(&args.traces, paths(args), args.answer.output.as_deref())?;
    refuse_overwriting(args, &traces)?;
    traces.tell_skipped(global.verbosity());
    let Traces { all: mut traces, is_one, .. } = traces;
    // A part has a list of answers, even if it has one trace or none.
    let is_one = is_one && args.many.shard.is_none();
    if let Some(shard) = args.many.shard {
        let all = traces.len();
        traces.retain(|trace| shard.has_name(&trace.name));
        if traces.is_empty() {
            let (number, of) = (shard.number, shard.of);
            note(&format!("note: no trace of {all} is in part {number}/{of}"), global.verbosity());
            if args.answer.format == ReplayFormat::Text {
                return Ok(Exit::Fits);
            }
        }
    }
    if args.many.skip_done && traces.iter().any(TraceInput::is_stdin) {
        return Err(ReplayFailure::SkipDoneStdin.into());
    }
    let has_snapshot = args.answer.snapshot.is_some();
    if has_snapshot && traces.len() > 1 {
        return Err(ReplayFailure::SnapshotOfSeveral { count: traces.len(), of: "traces" }.into());
    }
    if args.tune {
        return match traces.as_slice() {
            [TraceInput { source: Source::File(path), .. }] if is_one => {
                tune::run(path, args, global)
            }
            _ => Err(ReplayFailure::TuneOfSeveral.into()),
        };
    }
    if let Some(varying) = &args.vary.vary {
        let exit = lengths::run(varying, (&traces, &settings), args, global)?;
        return Ok(if args.answer.exit_zero { exit.zero_for_verdicts() } else { exit });
    }
    let summary = match (traces.as_slice(), settings.as_slice()) {
        ([trace], [settings])
            if (is_one || has_snapshot)
                && !args.many.skip_done
                && args.answer.format != ReplayFormat::Parquet =>
        {
            one(trace, settings, args, global)
        }
        (traces, settings) => many(traces, settings, args, global),
    }?;
    if summary.conf_is_open {
        allocator::hint_at_environment(global.verbosity());
    }
    Ok(if args.answer.exit_zero { summary.exit.zero_for_verdicts() } else { summary.exit })
}

/// The meaning of the arguments that name traces.
fn paths(args: &ReplayArgs) -> Paths {
    if args.literal_paths { Paths::Literal } else { Paths::AnyOrObjects }
}

/// Refuses outputs that are inputs.
fn refuse_overwriting(args: &ReplayArgs, traces: &Traces) -> Result<(), OverwriteFailure> {
    let outputs = Output::given([
        ("--output", args.answer.output.as_deref()),
        ("--snapshot", args.answer.snapshot.as_deref()),
    ]);
    let inputs =
        traces.all.iter().map(TraceInput::path).chain(traces.lists.iter().map(PathBuf::as_path));
    overwrite::refuse(&outputs, inputs.chain(args.device.device_file.as_deref()))
}

fn is_address(output: &Path) -> bool {
    output.to_str().is_some_and(ObjectAddress::is_one)
}

/// Checks everything that does not need the traces.
pub(crate) fn check(args: &ReplayArgs) -> Result<(), CliError> {
    checked(args).map(drop)
}

fn checked(args: &ReplayArgs) -> Result<Vec<Settings>, CliError> {
    traces::check(&args.traces, paths(args))?;
    let format = args.answer.format;
    let is_parquet = format == ReplayFormat::Parquet;
    if args.many.skip_done && format.lines().is_none() && !is_parquet {
        return Err(ReplayFailure::SkipDoneForm.into());
    }
    if is_parquet && args.answer.snapshot.is_some() {
        return Err(ReplayFailure::SnapshotWithParquet.into());
    }
    match &args.answer.output {
        None if is_parquet => return Err(ReplayFailure::NoFolder.into()),
        Some(output) if is_parquet && output.is_file() => {
            return Err(ReplayFailure::FileForParts { path: output.clone() }.into());
        }
        Some(output) if !is_parquet && is_address(output) => {
            return Err(ReplayFailure::AddressForLines { address: shown(output) }.into());
        }
        _ => {}
    }
    let settings = settings::all(args, &cudnn::source(&args.cudnn)?)?;
    if args.vary.vary.is_some() {
        lengths::check(args)?;
    }
    if args.answer.snapshot.is_some() && settings.len() > 1 {
        return Err(
            ReplayFailure::SnapshotOfSeveral { count: settings.len(), of: "settings" }.into()
        );
    }
    Ok(settings)
}

fn rules(args: &ReplayArgs) -> Rules {
    if args.answer.explain { Rules::Explain } else { Rules::Omit }
}

/// Answers one question about one trace.
fn one(
    trace: &TraceInput,
    settings: &Settings,
    args: &ReplayArgs,
    global: &Global,
) -> Result<Summary, CliError> {
    let name = trace.name.as_str();
    let progress = Progress::over([trace.path()], global.verbosity());
    // Inside a pool the analysis takes its threads, too.
    let result = LocalFile::of(trace).and_then(|file| {
        catch_panic(name, || {
            pool::run(args.reading.threads, |threads| {
                let read = read_options(&args.reading, threads);
                answer(&file, settings, args, &read, &|stage| progress.stage(name, stage))
            })
        })
    });
    drop(progress);
    let mut summary = Summary::default();
    let page = match &result {
        Ok(Answered { answer, recording, next }) => {
            if let (Some(recording), Some(file)) = (recording, &args.answer.snapshot) {
                snapshot::write(recording, file, global.verbosity())?;
            }
            summary.answered(answer);
            page(name, (&settings.options, answer, next), args, global)
        }
        Err(error) => args.answer.format.lines().map_or_else(String::new, |form| {
            let is_about_settings =
                matches!(error, TraceError::Estimate(error) if !matches!(error, EstimateError::Read(_)));
            let options = is_about_settings.then_some(settings.options.as_str());
            form.header() + &form.line(&Document::error(name, options, (error.code(), error)))
        }),
    };
    if !page.is_empty() {
        output::write(page.as_bytes(), args.answer.output.as_deref())?;
    }
    if let Err(error) = result {
        summary.failed(error.into_cli_error(name).print());
    }
    Ok(summary)
}

/// The answer about one trace.
struct Answered {
    answer: Answer,
    /// The predicted run, if it is to be written.
    recording: Option<Snapshot>,
    /// Commands that go on from here, for text.
    next: Vec<(String, String)>,
}

fn answer(
    trace: &LocalFile<'_>,
    settings: &Settings,
    args: &ReplayArgs,
    read: &ReadOptions,
    observer: &dyn Fn(Stage),
) -> Result<Answered, EstimateError> {
    let job = Job::observed(trace.path(), read, observer)?;
    let Settings { estimate, .. } = settings;
    let predicted = estimate.predict_observed(&job, observer)?;
    let answer = predicted.answer_observed(observer);
    let end =
        if args.answer.snapshot_past_oom { SnapshotEnd::Job } else { SnapshotEnd::OutOfMemory };
    let wanted = args.answer.snapshot.is_some();
    let recording = wanted.then(|| predicted.snapshot(end)).transpose()?;
    let next = match (args.answer.format, trace) {
        (ReplayFormat::Text, LocalFile::Given(path)) => {
            next::commands(path, &job, (settings, &answer), args)
        }
        // Other commands read no objects.
        _ => Vec::new(),
    };
    Ok(Answered { answer, recording, next })
}

fn page(
    trace: &str,
    (options, answer, next): (&str, &Answer, &[(String, String)]),
    args: &ReplayArgs,
    global: &Global,
) -> String {
    let document = || Document::answer(trace, options, answer, rules(args));
    let style = style::of_output(args.answer.output.as_deref());
    match args.answer.format.lines() {
        Some(form) => form.header() + &form.line(&document()),
        None if args.answer.format == ReplayFormat::Json => json::pretty(&document()),
        None if global.verbosity() == Verbosity::Quiet => text::brief(trace, answer, &style),
        None => {
            let extent = text::Extent {
                full: args.answer.full || args.answer.explain,
                notes: args.answer.notes,
                rows: args.answer.top,
                next: next.to_vec(),
            };
            let mut page = text::answer(trace, answer, &extent, &style);
            if args.answer.explain {
                page += &text::rules(&answer.rules, &style);
            }
            page
        }
    }
}

/// Answers several questions, about one or more traces.
fn many(
    traces: &[TraceInput],
    settings: &[Settings],
    args: &ReplayArgs,
    global: &Global,
) -> Result<Summary, CliError> {
    let form = args.answer.format.lines();
    let output = args.answer.output.as_deref();
    let (jobs, read) = batch::plan(args, traces.len());
    let batch = |stop| {
        let paths = traces.iter().map(TraceInput::path);
        let progress = Progress::over(paths, global.verbosity());
        Batch { traces, settings, jobs, read: read.clone(), stop, progress }
    };
    let summary = match (form, output) {
        (None, Some(output)) if args.answer.format == ReplayFormat::Parquet => {
            let table = Dataset::at(output, args.many.shard)?;
            let done = match args.many.skip_done {
                true => table.completed(traces, settings)?,
                false => table.refuse_earlier().map(|()| Completed::default())?,
            };
            let stop = Interrupt::on_signals(global.verbosity());
            stream::run(
                &batch(stop),
                rules(args),
                &done,
                Sink::Table(Box::new(table)),
                global.verbosity(),
            )?
        }
        (Some(form), Some(file)) if args.many.skip_done => {
            let done = resume::read_completed(file, form, traces, settings)?;
            let sink = Sink::Lines(Lines::append(form, file, &done));
            let stop = Interrupt::on_signals(global.verbosity());
            stream::run(&batch(stop), rules(args), &done, sink, global.verbosity())?
        }
        (Some(form), file) => {
            let sink = Sink::Lines(Lines::replace(form, file));
            let stop = Interrupt::on_signals(global.verbosity());
            stream::run(&batch(stop), rules(args), &Completed::default(), sink, global.verbosity())?
        }
        (None, file) => {
            let batch = batch(Interrupt::default());
            let to = (file, global.verbosity());
            match args.answer.format {
                ReplayFormat::Json => collect::as_json(&batch, rules(args), to)?,
                _ => collect::as_text(&batch, &style::of_output(file), to)?,
            }
        }
    };
    summary.print(traces.len(), global.verbosity());
    Ok(summary)
}
