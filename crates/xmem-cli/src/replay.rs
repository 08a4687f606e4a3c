//! `xmem replay`.

mod batch;
mod done;
mod failure;
mod gathered;
mod settings;
mod stop;
mod streamed;
mod tally;
mod traces;

use crate::Outcome;
use crate::args::{Global, ReadingArgs, ReplayArgs, ReplayFormat, Verbosity};
use crate::complaint::Complaint;
use crate::cudnn::Convolutions;
use crate::progress::Progress;
use crate::{allocator, output, recording, terminal};
use batch::Batch;
use done::Done;
use settings::Settings;
use std::num::NonZeroUsize;
use std::path::Path;
use stop::Stop;
use streamed::Sink;
use tally::Tally;
use traces::{Named, Traces};
use xmem::{Answer, EstimateError, Job, ReadOptions, Snapshot, SnapshotEnd, Stage};
use xmem_report::json::{self, Document, Rules};
use xmem_report::lines::Lines;
use xmem_report::text;

/// As much as the main thread has: a trace is read on any.
const STACK: usize = 8 << 20;

/// Runs the command.
pub(crate) fn run(args: &ReplayArgs, global: &Global) -> Outcome {
    let convolutions = Convolutions::choose(&args.cudnn)?;
    let settings = checked(args, &convolutions)?;
    let Traces { all: traces, is_one } =
        traces::meant(&args.traces, args.answer.output.as_deref())?;
    if args.many.skip_done && traces.iter().any(Named::is_stdin) {
        return Err(Complaint::SkipDoneStdin);
    }
    let has_snapshot = args.answer.snapshot.is_some();
    if has_snapshot && traces.len() > 1 {
        return Err(Complaint::SnapshotOfSeveral { count: traces.len(), of: "traces" });
    }
    let result = match (traces.as_slice(), settings.as_slice()) {
        ([trace], [settings]) if (is_one || has_snapshot) && !args.many.skip_done => {
            one(trace.path(), settings, args, global)
        }
        (traces, settings) => many(traces, settings, args, global),
    };
    convolutions.save();
    let tally = result?;
    if tally.conf_is_open {
        allocator::hint_at_environment(global.verbosity());
    }
    Ok(if args.answer.exit_zero { tally.exit.zero_for_verdicts() } else { tally.exit })
}

/// Whether the command can be run, as far as that can be told before the traces are there.
pub(crate) fn check(args: &ReplayArgs) -> Result<(), Complaint> {
    checked(args, &Convolutions::choose(&args.cudnn)?).map(drop)
}

fn checked(args: &ReplayArgs, convolutions: &Convolutions) -> Result<Vec<Settings>, Complaint> {
    traces::check(&args.traces)?;
    if args.many.skip_done && lines(args.answer.format).is_none() {
        return Err(Complaint::SkipDoneForm);
    }
    let settings = settings::all(args, convolutions)?;
    if args.answer.snapshot.is_some() && settings.len() > 1 {
        return Err(Complaint::SnapshotOfSeveral { count: settings.len(), of: "settings" });
    }
    Ok(settings)
}

/// How traces are read.
pub(crate) fn read_options(args: &ReadingArgs) -> ReadOptions {
    ReadOptions {
        threads: args.threads,
        inflate_limit: args.inflate_limit,
        ..ReadOptions::default()
    }
}

fn rules(args: &ReplayArgs) -> Rules {
    if args.answer.explain { Rules::Explain } else { Rules::Omit }
}

fn lines(format: ReplayFormat) -> Option<Lines> {
    match format {
        ReplayFormat::Text | ReplayFormat::Json => None,
        ReplayFormat::Jsonl => Some(Lines::Json),
        ReplayFormat::Csv => Some(Lines::Csv),
    }
}

/// One question about one trace.
fn one(
    trace: &Path,
    settings: &Settings,
    args: &ReplayArgs,
    global: &Global,
) -> Result<Tally, Complaint> {
    let name = trace.display().to_string();
    let progress = Progress::over([trace], global.verbosity());
    // Inside a pool the analysis takes its threads, too.
    let result = in_pool(args.reading.threads, || {
        answer(trace, settings, args, &|stage| progress.stage(&name, stage))
    });
    drop(progress);
    let mut tally = Tally::default();
    let page = match &result {
        Ok((answer, recording)) => {
            if let (Some(recording), Some(file)) = (recording, &args.answer.snapshot) {
                recording::write(recording, file, global.verbosity())?;
            }
            tally.answered(answer);
            page(&name, &settings.words, answer, args, global)
        }
        Err(error) => lines(args.answer.format).map_or_else(String::new, |form| {
            let is_about_settings = !matches!(error, EstimateError::Read(_));
            let words = is_about_settings.then_some(settings.words.as_str());
            form.header() + &form.line(&Document::error(&name, words, error))
        }),
    };
    if !page.is_empty() {
        output::write(page.as_bytes(), args.answer.output.as_deref())?;
    }
    if let Err(error) = result {
        tally.failed(Complaint::estimate(&name, error).print());
    }
    Ok(tally)
}

/// Runs `work` where there are as many threads as asked for, or one for each core.
fn in_pool<T: Send>(threads: Option<NonZeroUsize>, work: impl FnOnce() -> T + Send) -> T {
    let threads = threads.map_or(0, NonZeroUsize::get);
    if threads == 1 {
        return work();
    }
    match rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK).build() {
        Ok(pool) => pool.install(work),
        Err(error) => {
            tracing::debug!(%error, "no thread pool");
            work()
        }
    }
}

/// The answer about one trace, and the predicted run if it is to be written.
fn answer(
    trace: &Path,
    Settings { estimate, .. }: &Settings,
    args: &ReplayArgs,
    observer: &dyn Fn(Stage),
) -> Result<(Answer, Option<Snapshot>), EstimateError> {
    let job = Job::observed(trace, &read_options(&args.reading), observer)?;
    let answer = estimate.job_observed(&job, observer)?;
    let end =
        if args.answer.snapshot_past_oom { SnapshotEnd::Job } else { SnapshotEnd::OutOfMemory };
    let wanted = args.answer.snapshot.is_some();
    let recording = wanted.then(|| estimate.snapshot(&job, end)).transpose()?;
    Ok((answer, recording))
}

fn page(trace: &str, words: &str, answer: &Answer, args: &ReplayArgs, global: &Global) -> String {
    let document = || Document::answer(trace, words, answer, rules(args));
    let look = terminal::look(args.answer.output.as_deref());
    match lines(args.answer.format) {
        Some(form) => form.header() + &form.line(&document()),
        None if args.answer.format == ReplayFormat::Json => json::pretty(&document()),
        None if global.verbosity() == Verbosity::Quiet => text::brief(trace, answer, &look),
        None => {
            let mut page = text::answer(trace, answer, &look);
            if args.answer.explain {
                page += &text::rules(&answer.rules, &look);
            }
            page
        }
    }
}

/// Several questions, about one trace or more.
fn many(
    traces: &[Named],
    settings: &[Settings],
    args: &ReplayArgs,
    global: &Global,
) -> Result<Tally, Complaint> {
    let form = lines(args.answer.format);
    let output = args.answer.output.as_deref();
    let (jobs, read) = batch::plan(args, traces.len());
    let batch = |stop| {
        let paths = traces.iter().map(Named::path);
        let progress = Progress::over(paths, global.verbosity());
        Batch { traces, settings, jobs, read: read.clone(), stop, progress }
    };
    let tally = match (form, output) {
        (Some(form), Some(file)) if args.many.skip_done => {
            let done = done::take_up(file, form, traces, settings)?;
            let sink = Sink::behind(form, file, &done);
            let stop = Stop::on_signals(global.verbosity());
            streamed::run(&batch(stop), rules(args), &done, sink)?
        }
        (Some(form), file) => {
            let sink = Sink::anew(form, file);
            let stop = Stop::on_signals(global.verbosity());
            streamed::run(&batch(stop), rules(args), &Done::default(), sink)?
        }
        (None, file) => {
            let batch = batch(Stop::default());
            match args.answer.format {
                ReplayFormat::Json => gathered::as_json(&batch, rules(args), file)?,
                _ => gathered::as_text(&batch, &terminal::look(file), file)?,
            }
        }
    };
    tally.say(traces.len(), global.verbosity());
    Ok(tally)
}
