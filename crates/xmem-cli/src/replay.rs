//! `xmem replay`.

use crate::Outcome;
use crate::args::{Format, Global, ReadingArgs, ReplayArgs, Verbosity};
use crate::complaint::Complaint;
use crate::cudnn::Convolutions;
use crate::exit::Exit;
use crate::progress::Progress;
use crate::{allocator, device, output, recording, terminal, what_if};
use std::path::Path;
use xmem::{
    Answer, CapacitySearch, Estimate, EstimateError, Job, ReadOptions, RecordingEnd, Snapshot,
    Stage,
};
use xmem_report::json::{self, Document, Rules};
use xmem_report::text;

/// A trace, by the name the user gave it, and what came of it.
type Entry = (String, Result<Answer, EstimateError>);

/// Runs the command.
pub(crate) fn run(args: &ReplayArgs, global: &Global) -> Outcome {
    let convolutions = Convolutions::choose(&args.cudnn)?;
    let estimate = estimate(args, &convolutions)?;
    let progress = Progress::over(&args.traces, global.verbosity());
    let mut recorded = None;
    let entries: Vec<Entry> = args
        .traces
        .iter()
        .map(|path| {
            let result = replay(&estimate, path, args, &|stage| progress.stage(path, stage));
            progress.advance();
            let answer = result.map(|(answer, recording)| {
                recorded = recording;
                answer
            });
            (path.display().to_string(), answer)
        })
        .collect();
    drop(progress);
    convolutions.save();
    if let (Some(recording), Some(file)) = (&recorded, &args.answer.snapshot) {
        recording::write(recording, file, global.verbosity())?;
    }
    let text = render(&entries, args, global);
    if !text.is_empty() {
        output::write(text.as_bytes(), args.answer.output.as_deref())?;
    }
    let answers = entries.iter().filter_map(|(_, result)| result.as_ref().ok());
    allocator::hint_at_environment(answers.map(|a| a.setup.conf_from), global.verbosity());
    let exit = entries.into_iter().map(exit_of).max().unwrap_or(Exit::Fits);
    Ok(if args.answer.exit_zero { exit.zero_for_verdicts() } else { exit })
}

/// Whether the command can be run, as far as that can be told before the traces are there.
pub(crate) fn check(args: &ReplayArgs) -> Result<(), Complaint> {
    estimate(args, &Convolutions::choose(&args.cudnn)?).map(drop)
}

/// The answer about one trace, and the predicted run if it is to be written.
fn replay(
    estimate: &Estimate,
    trace: &Path,
    args: &ReplayArgs,
    observer: &dyn Fn(Stage),
) -> Result<(Answer, Option<Snapshot>), EstimateError> {
    let job = Job::observed(trace, &read_options(&args.reading), observer)?;
    let answer = estimate.job_observed(&job, observer)?;
    let end =
        if args.answer.snapshot_past_oom { RecordingEnd::Job } else { RecordingEnd::OutOfMemory };
    let wanted = args.answer.snapshot.is_some();
    let recording = wanted.then(|| estimate.recording(&job, end)).transpose()?;
    Ok((answer, recording))
}

/// The exit code of one trace; what went wrong with it is printed.
fn exit_of((trace, result): Entry) -> Exit {
    match result {
        Ok(answer) => answer.verdict.into(),
        Err(error) => Complaint::estimate(&trace, error).print(),
    }
}

fn estimate(args: &ReplayArgs, convolutions: &Convolutions) -> Result<Estimate, Complaint> {
    let stdin = args.traces.iter().filter(|t| t.as_path() == Path::new("-")).count();
    if stdin > 1 {
        return Err(Complaint::StdinTwice { count: stdin });
    }
    if args.answer.snapshot.is_some() && args.traces.len() > 1 {
        return Err(Complaint::SnapshotOfSeveral { count: args.traces.len() });
    }
    let mut builder = Estimate::builder(device::choose(&args.device)?)
        .allocator(allocator::settings(&args.allocator)?)
        .convolutions(convolutions.plans())
        .largest(args.answer.top);
    builder = what_if::apply(builder, &args.what_if)?;
    if args.answer.min_capacity {
        builder = builder.capacity_search(CapacitySearch::Run);
    }
    if let Some(iterations) = args.answer.iterations {
        builder = builder.iterations(iterations);
    }
    let estimate = builder.build();
    estimate.check()?;
    Ok(estimate)
}

/// How traces are read.
pub(crate) fn read_options(args: &ReadingArgs) -> ReadOptions {
    ReadOptions {
        threads: args.threads,
        inflate_limit: args.inflate_limit,
        ..ReadOptions::default()
    }
}

fn render(entries: &[Entry], args: &ReplayArgs, global: &Global) -> String {
    let rules = if args.answer.explain { Rules::Explain } else { Rules::Omit };
    match (args.answer.format, entries) {
        (Format::Jsonl, _) => entries.iter().map(|e| json::line(&document(e, rules))).collect(),
        (Format::Json, [(_, Err(_))]) => String::new(),
        (Format::Json, [only]) => json::pretty(&document(only, rules)),
        (Format::Json, _) => {
            let list: Vec<_> = entries.iter().map(|e| document(e, rules)).collect();
            json::pretty(&list)
        }
        (Format::Text, _) => text(entries, args, global),
    }
}

fn document((trace, result): &Entry, rules: Rules) -> Document<'_> {
    match result {
        Ok(answer) => Document::answer(trace, answer, rules),
        Err(error) => Document::error(trace, error),
    }
}

fn text(entries: &[Entry], args: &ReplayArgs, global: &Global) -> String {
    let look = terminal::look(args.answer.output.as_deref());
    let brief = global.verbosity() == Verbosity::Quiet;
    match entries {
        [(_, Err(_))] => String::new(),
        [(trace, Ok(answer))] if brief => text::brief(trace, answer, &look),
        [(trace, Ok(answer))] => {
            let mut page = text::answer(trace, answer, &look);
            if args.answer.explain {
                page += &text::rules(&answer.rules, &look);
            }
            page
        }
        _ => text::table(entries.iter().map(|(t, r)| (t.as_str(), r.as_ref().ok())), &look),
    }
}
