//! Runs `xmem eval`.

use super::args::{EvalArgs, EvalFormat};
use super::cluster;
use super::error::EvalFailure;
use super::exports::Exports;
use super::jobs::{Plan, PlannedJob, plan};
use super::lanes::Lanes;
use super::matrix::Matrix;
use super::readings::Reading;
use super::results::Results;
use super::rounds::{Missing, Rounds};
use super::store::Store;
use super::{output, readings};
use crate::commands::Outcome;
use crate::commands::report::ReportFailure;
use crate::cudnn;
use crate::exit::Exit;
use crate::global::{Global, Verbosity};
use crate::output::check_folder;
use crate::terminal::{note, say};
use std::collections::BTreeSet;
use std::io::{IsTerminal as _, stdout};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;
use xmem_eval::evaluation::{
    EstimatedRun, EvaluatedRun, Evaluation, EvaluationFailure, TrueRun, TruthSource, shuffled,
};
use xmem_recorder::Interrupts;

/// Recordings that run side by side.
const SIDE_BY_SIDE: NonZeroUsize = NonZeroUsize::new(2).expect("not zero");

/// Runs the command.
pub(crate) fn run(args: &EvalArgs, global: &Global) -> Outcome {
    match &args.output {
        Some(output) => check_folder(output)?,
        None if args.format == EvalFormat::Parquet && stdout().is_terminal() => {
            let (format, file) = ("Parquet", "runs.parquet");
            return Err(ReportFailure::FileToTerminal { format, file }.into());
        }
        None => {}
    }
    let mut matrix = Matrix::read(&args.matrix)?;
    let mut readings = args.readings.as_deref().map(readings::read).transpose()?;
    choose(&args.estimators, &mut matrix, readings.as_deref_mut().unwrap_or_default())?;
    let truth = match readings {
        Some(_) => TruthSource::Readings,
        None => matrix.truth.source(),
    };
    let folder = args.matrix.parent().unwrap_or(Path::new("")).to_owned();
    let plan = plan(args, &matrix, readings)?;
    let verbosity = global.verbosity();
    if plan.unmatched > 0 {
        let text = format!("note: {} readings are of no job of the matrix", plan.unmatched);
        note(&text, verbosity);
    }
    if let Some(cluster) = args.on {
        return cluster::run(cluster, args);
    }
    let results = Results::read(&args.results, truth)?;
    let place = args.store.clone();
    let store = Store::open(place.unwrap_or_else(|| args.matrix.with_extension("store").into()))?;
    let records = !args.without_recording && !matrix.estimators.is_empty();
    if records {
        store.make()?;
    }
    let interrupts = Interrupts::watch().ok();
    let exports = Exports::default();
    let convolutions = cudnn::source(&args.cudnn)?;
    let side_by_side = args.jobs.unwrap_or(SIDE_BY_SIDE);
    let rounds = Rounds {
        store: &store,
        results: &results,
        folder: &folder,
        records,
        second: !args.without_second_round,
        classes: matrix.classes,
        truth: &matrix.truth,
        gpu: &Mutex::new(()),
        exports: &exports,
        lanes: &Lanes::new(side_by_side),
        convolutions: &convolutions,
        interrupts: interrupts.as_ref(),
    };
    let mine: Vec<&PlannedJob<'_>> = plan
        .jobs
        .iter()
        .enumerate()
        .filter(|(place, _)| args.shard.is_none_or(|shard| shard.has(*place)))
        .map(|(_, job)| job)
        .collect();
    let all = evaluate(&mine, &matrix, rounds, side_by_side.get(), verbosity);
    let is_interrupted = interrupts.as_ref().is_some_and(Interrupts::arrived);
    let stopped_or = |exit| if is_interrupted { Exit::Interrupted } else { exit };
    if let Some(shard) = args.shard {
        let done = all.iter().filter(|evaluated| evaluated.truth.is_ok()).count();
        say(&format!(
            "part {} of {}: {done} of {} jobs are in {}",
            shard.number,
            shard.of,
            mine.len(),
            store.place()
        ));
        return Ok(stopped_or(Exit::Fits));
    }
    let evaluation = evaluation(&matrix, &plan, all, truth);
    if evaluation.runs.is_empty() && !is_interrupted {
        return Err(nothing(&evaluation, &store, mine.len()).into());
    }
    output::write(args, &evaluation, verbosity == Verbosity::Quiet)?;
    let is_complete = evaluation.failures.is_empty();
    Ok(stopped_or(if is_complete { Exit::Fits } else { Exit::CutShort }))
}

/// Leaves the estimators that are asked for: all without names.
fn choose(
    names: &[String],
    matrix: &mut Matrix,
    readings: &mut [Reading],
) -> Result<(), EvalFailure> {
    let published = readings.iter().flat_map(|reading| reading.estimates.keys());
    let known: BTreeSet<String> = matrix.estimators.keys().chain(published).cloned().collect();
    if let Some(name) = names.iter().find(|&name| !known.contains(name)) {
        let known = known.into_iter().collect();
        return Err(EvalFailure::Estimator { name: name.clone(), known });
    }
    if !names.is_empty() {
        matrix.estimators.retain(|name, _| names.contains(name));
        for reading in readings {
            reading.estimates.retain(|name, _| names.contains(name));
        }
    }
    Ok(())
}

/// A job with its run and its estimates.
struct Evaluated {
    truth: Result<TrueRun, Missing>,
    /// By the estimators of the matrix, in their order.
    estimates: Vec<Result<EstimatedRun, Missing>>,
}

/// Evaluates jobs, some of them side by side, each as a whole.
fn evaluate(
    jobs: &[&PlannedJob<'_>],
    matrix: &Matrix,
    rounds: Rounds<'_>,
    side_by_side: usize,
    verbosity: Verbosity,
) -> Vec<Evaluated> {
    // In random order, so that an evaluation that is stopped has a sample of all.
    let order = shuffled(jobs.len(), 0);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Evaluated>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let finished = AtomicUsize::new(0);
    let work = || {
        while let Some(&place) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let job = jobs[place];
            let started = Instant::now();
            let truth = rounds.truth(job);
            let estimates: Vec<_> = matrix
                .estimators
                .iter()
                .map(|(name, estimator)| rounds.estimate(job, (name, estimator)))
                .collect();
            let evaluated = Evaluated { truth, estimates };
            let count = finished.fetch_add(1, Ordering::Relaxed) + 1;
            if rounds.records {
                let line = progress(matrix, job, &evaluated);
                let took = started.elapsed().as_secs_f64();
                note(&format!("[{count}/{}] {line} ({took:.1} s)", jobs.len()), verbosity);
            }
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[place] = Some(evaluated);
        }
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..side_by_side.min(jobs.len())).map(|_| scope.spawn(work)).collect();
        work();
        for other in others {
            if let Err(panicked) = other.join() {
                std::panic::resume_unwind(panicked);
            }
        }
    });
    let done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.into_iter().map(|one| one.expect("all jobs were evaluated")).collect()
}

/// What came of a job, in a line.
fn progress(matrix: &Matrix, job: &PlannedJob<'_>, evaluated: &Evaluated) -> String {
    let truth = match &evaluated.truth {
        Ok(truth) if truth.out_of_memory => "ran out of memory".to_owned(),
        Ok(truth) => truth.peak.to_string(),
        Err(missing) => words(missing).to_owned(),
    };
    let estimates = matrix.estimators.keys().zip(&evaluated.estimates).map(|(name, estimate)| {
        let estimate = match estimate {
            Err(missing) => words(missing).to_owned(),
            Ok(estimate) if estimate.out_of_memory => "out of memory".to_owned(),
            Ok(estimate) => {
                let error = evaluated.truth.as_ref().ok();
                let error = error.and_then(|truth| estimate.outcome(truth).signed_error);
                let error = error.map(|e| format!(" ({:+.1} %)", e * 100.0)).unwrap_or_default();
                let second = match estimate.second {
                    Some(second) if second.out_of_memory => ", too little in the second round",
                    _ => "",
                };
                format!("{}{error}{second}", estimate.memory)
            }
        };
        format!("{name} {estimate}")
    });
    let estimates: Vec<String> = estimates.collect();
    format!("{}: {truth}; {}", job.configuration, estimates.join("; "))
}

fn words(missing: &Missing) -> &str {
    match missing {
        Missing::NotApplicable => "not applicable",
        Missing::NotRecorded => "not recorded",
        Missing::Interrupted => "interrupted",
        Missing::Failed(reason) => reason,
    }
}

/// All that is known of the jobs.
fn evaluation(
    matrix: &Matrix,
    plan: &Plan<'_>,
    all: Vec<Evaluated>,
    truth: TruthSource,
) -> Evaluation {
    let published: BTreeSet<&String> = plan
        .jobs
        .iter()
        .filter_map(|job| job.reading.as_ref())
        .flat_map(|reading| reading.estimates.keys())
        .filter(|name| !matrix.estimators.contains_key(*name))
        .collect();
    let own: Vec<&String> = matrix.estimators.keys().collect();
    let mut evaluation = Evaluation {
        title: matrix.title.clone(),
        truth,
        estimators: own.iter().copied().chain(published.iter().copied()).cloned().collect(),
        runs: Vec::new(),
        failures: Vec::new(),
        of: plan.of,
    };
    for (job, evaluated) in plan.jobs.iter().zip(all) {
        let mut fails = |estimator: Option<&String>, missing: Missing| {
            if let Missing::Failed(reason) = missing {
                evaluation.failures.push(EvaluationFailure {
                    configuration: job.configuration.clone(),
                    estimator: estimator.cloned(),
                    reason,
                });
            }
        };
        let truth = match evaluated.truth {
            Ok(truth) => truth,
            Err(missing) => {
                fails(None, missing);
                continue;
            }
        };
        let mut estimates: Vec<Option<EstimatedRun>> = own
            .iter()
            .zip(evaluated.estimates)
            .map(|(name, estimate)| estimate.map_err(|missing| fails(Some(name), missing)).ok())
            .collect();
        let reading = job.reading.as_ref();
        estimates.extend(
            published.iter().map(|name| reading.and_then(|r| r.estimates.get(*name)).copied()),
        );
        // Estimators are compared over the same jobs: those that were recorded, if there is something to record.
        let compared = if own.is_empty() { estimates.len() } else { own.len() };
        if estimates.iter().take(compared).any(Option::is_some) {
            evaluation.runs.push(EvaluatedRun {
                configuration: job.configuration.clone(),
                truth,
                estimates,
            });
        }
    }
    evaluation
}

/// Why there is nothing.
fn nothing(evaluation: &Evaluation, store: &Store, count: usize) -> EvalFailure {
    match evaluation.failures.first() {
        Some(failure) => EvalFailure::NothingEvaluated { count, reason: failure.reason.clone() },
        None => EvalFailure::Empty { store: store.place().clone(), count },
    }
}
