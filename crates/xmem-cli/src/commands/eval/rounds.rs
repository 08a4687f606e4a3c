//! Recordings of jobs: for the estimate, in the memory of the device, and with as much memory as was estimated.

use super::exports::{self, Exports};
use super::figures::{self, Estimated};
use super::graph_source::JobGraph;
use super::jobs::PlannedJob;
use super::lanes::Lanes;
use super::matrix::{Estimator, Truth, with_values};
use super::measured::{MeasureError, Measured, measure};
use super::results::Results;
use super::store::{KeptTrace, Key, Round, Store};
use crate::attempt::Attempt;
use crate::commands::profile::keep_convolutions;
use crate::commands::snapshot;
use crate::terminal::shown;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use xmem::convolutions::ConvolutionSource;
use xmem::{Bytes, Job, ReadOptions};
use xmem_eval::RerunOptions;
use xmem_eval::evaluation::{
    Configuration, EstimatedRun, MemoryByClass, SecondRound, TrueRun, relative_error,
};
use xmem_recorder::{Capacity, Engine, Interrupts, Request, Stacks};

/// What rounds are made with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds<'a> {
    pub(super) store: &'a Store,
    /// What earlier evaluations found.
    pub(super) results: &'a Results,
    /// The folder of the matrix.
    pub(super) folder: &'a Path,
    /// Whether jobs are recorded that are not in the store.
    pub(super) records: bool,
    /// Whether there is a second round.
    pub(super) second: bool,
    /// Whether peaks are known by class.
    pub(super) classes: bool,
    /// Where the memory of a run is known from, without readings.
    pub(super) truth: &'a Truth,
    /// Held by the job that is measured on a GPU.
    pub(super) gpu: &'a Mutex<()>,
    pub(super) exports: &'a Exports,
    pub(super) lanes: &'a Lanes,
    /// What is asked about the convolutions of graphs.
    pub(super) convolutions: &'a Arc<dyn ConvolutionSource>,
    pub(super) interrupts: Option<&'a Interrupts>,
}

/// A job that is not evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The estimator is not for such jobs.
    NotApplicable,
    /// It is not in the store, and nothing is recorded.
    NotRecorded,
    /// The user stopped the evaluation.
    Interrupted,
    /// It cannot be evaluated.
    Failed(String),
}

impl From<String> for Missing {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

impl Rounds<'_> {
    /// The run of a job: the one that was measured, or one on a virtual GPU with the memory of the device.
    pub(super) fn truth(&self, job: &PlannedJob<'_>) -> Result<TrueRun, Missing> {
        if let Some(reading) = &job.reading {
            return Ok(TrueRun {
                peak: reading.peak,
                out_of_memory: reading.out_of_memory,
                capacity: reading.capacity.unwrap_or(job.device.memory),
                classes: None,
            });
        }
        if let Some(truth) = self.results.truth(job) {
            return Ok(truth);
        }
        let command = job.kind.command_of(&job.configuration, self.folder);
        let round = match self.truth {
            Truth::VirtualGpu => self.limited(job, &command, Capacity::OfDevice)?,
            Truth::Gpu(gpu) => self.measured(job, &command, *gpu)?,
            Truth::Snapshot(path) => return self.of_snapshot(job, path),
        };
        Ok(TrueRun {
            peak: round.reserved().unwrap_or_default(),
            out_of_memory: round.out_of_memory,
            capacity: job.device.memory,
            classes: round.classes(),
        })
    }

    /// The run of a job on a GPU of this machine.
    fn measured(
        &self,
        job: &PlannedJob<'_>,
        command: &[OsString],
        gpu: u32,
    ) -> Result<Round, Missing> {
        let key = Key::new(command, &["gpu".to_owned(), job.device.name.clone()]);
        if let Some(round) = self.find(&key)? {
            return Ok(round);
        }
        self.may_record()?;
        let printed = self.store.printed(&key);
        // Jobs that share the GPU would be in each other's samples.
        let alone = self.gpu.lock().unwrap_or_else(PoisonError::into_inner);
        let measured = measure(command, gpu, &printed, self.interrupts);
        drop(alone);
        let measured = match measured {
            Ok(measured) => measured,
            Err(MeasureError::Interrupted) => return Err(Missing::Interrupted),
            Err(error) => return Err(Missing::Failed(error.to_string())),
        };
        let Measured { peak, out_of_memory, took } = measured;
        let round = Round::new(command, Some(peak), out_of_memory, took, None);
        self.put(&key, &round, None)?;
        let _ = fs::remove_file(printed);
        Ok(round)
    }

    /// The run of a job of which there is a memory snapshot.
    fn of_snapshot(&self, job: &PlannedJob<'_>, path: &str) -> Result<TrueRun, Missing> {
        let words = with_values(&[path.to_owned()], &job.configuration, self.folder);
        let path = self.folder.join(&words[0]);
        let failed = |reason: String| {
            Missing::Failed(format!("cannot use the snapshot `{}`: {reason}", shown(&path)))
        };
        let (snapshot, _) =
            snapshot::read(&path, None).map_err(|error| failed(error.with_causes()))?;
        let rerun = xmem_eval::rerun(&snapshot, &RerunOptions::default())
            .map_err(|error| failed(error.to_string()))?;
        Ok(TrueRun {
            peak: rerun.figures.reserved_peak.recorded,
            out_of_memory: rerun.counts.failures > 0,
            capacity: job.device.memory,
            classes: None,
        })
    }

    /// The estimate of a job, and what becomes of it in the second round.
    pub(super) fn estimate(
        &self,
        job: &PlannedJob<'_>,
        (name, estimator): (&str, &Estimator),
    ) -> Result<EstimatedRun, Missing> {
        if !estimator.is_for(&job.configuration) {
            return Err(Missing::NotApplicable);
        }
        if let Some(estimate) = self.results.estimate(job, name, self.second) {
            return Ok(estimate);
        }
        let first = match estimator.command.as_slice() {
            [] => self.of_recording(job, estimator)?,
            command => self.of_command(job, command)?,
        };
        let second = match self.second && !first.out_of_memory {
            true => {
                let command = job.kind.command_of(&job.configuration, self.folder);
                let round = self.limited(job, &command, Capacity::Of(first.reserve))?;
                let peak = round.reserved().filter(|_| !round.out_of_memory);
                let error = peak.and_then(|peak| relative_error(first.reserve, peak));
                Some(SecondRound { out_of_memory: round.out_of_memory, error: error.map(f64::abs) })
            }
            false => None,
        };
        Ok(EstimatedRun { second, ..first })
    }

    /// The estimate of xmem: the job is recorded without a limit to memory, and replayed on the device. Of several orders, which
    /// are recorded side by side, the median, in the range of all; the most of them is what is to be reserved.
    fn of_recording(
        &self,
        job: &PlannedJob<'_>,
        estimator: &Estimator,
    ) -> Result<EstimatedRun, Missing> {
        let mut seen = BTreeSet::new();
        let recorded: Vec<(Configuration, Vec<OsString>)> = estimator
            .recorded(&job.configuration)
            .into_iter()
            .map(|configuration| {
                let command = job.kind.command_of(&configuration, self.folder);
                (configuration, command)
            })
            .filter(|(_, command)| seen.insert(command.clone()))
            .collect();
        let mut orders = self.of_orders(job, &recorded, estimator)?;
        let runtime = self.lanes.time_of(orders.iter().filter_map(|order| order.runtime));
        orders.sort_by_key(|order| order.memory);
        let range = match orders.as_slice() {
            [one] => one.range,
            several => {
                let low =
                    several.iter().map(|one| one.range.map_or(one.memory, |(low, _)| low)).min();
                let high =
                    several.iter().map(|one| one.range.map_or(one.memory, |(_, high)| high)).max();
                low.zip(high)
            }
        };
        let reserve = orders.iter().map(|order| order.reserve).max().unwrap_or_default();
        match orders.get(orders.len() / 2) {
            Some(&median) => Ok(EstimatedRun { reserve, range, runtime: Some(runtime), ..median }),
            None => Err(Missing::Failed("`over` has a factor without values".to_owned())),
        }
    }

    /// The estimates from recordings or graphs, side by side.
    fn of_orders(
        &self,
        job: &PlannedJob<'_>,
        recorded: &[(Configuration, Vec<OsString>)],
        estimator: &Estimator,
    ) -> Result<Vec<EstimatedRun>, Missing> {
        let of_one = |(configuration, command): &(Configuration, Vec<OsString>)| {
            self.of_order(job, configuration, command, estimator)
        };
        thread::scope(|scope| {
            let orders: Vec<_> =
                recorded.iter().map(|one| scope.spawn(move || of_one(one))).collect();
            let orders = orders.into_iter().map(|order| {
                order.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
            });
            orders.collect()
        })
    }

    /// The estimate from one recording, or from the graph of one configuration.
    fn of_order(
        &self,
        job: &PlannedJob<'_>,
        configuration: &Configuration,
        command: &[OsString],
        estimator: &Estimator,
    ) -> Result<EstimatedRun, Missing> {
        let (estimated, took) = match estimator.engine.of_recorder() {
            Some(engine) => {
                let (trace, round) = self.recorded(job, command, engine)?;
                let started = Instant::now();
                let read = Job::from_path(trace.path(), &ReadOptions::default())
                    .map_err(|error| error.to_string())?;
                let builder = figures::builder(&job.device);
                let estimated = figures::of_job(&read, builder, job, estimator, self.classes)?;
                (estimated, round.took() + started.elapsed())
            }
            None => {
                let (graph, exported_in) = self.graph(job, configuration)?;
                let started = Instant::now();
                let sizes = job.kind.graph.sizes(configuration);
                let convolutions = Arc::clone(self.convolutions);
                let estimated =
                    figures::of_graph(&graph, sizes, job, estimator, self.classes, convolutions)?;
                (estimated, exported_in + started.elapsed())
            }
        };
        let Estimated { run, meets_limit, not_read } = estimated;
        let estimate = EstimatedRun { runtime: Some(took), ..run };
        if !estimator.confirm || !meets_limit {
            return Ok(estimate);
        }
        let within = self.limited(job, command, Capacity::OfDevice)?;
        let memory = within.reserved().unwrap_or(run.memory);
        Ok(EstimatedRun {
            memory,
            reserve: memory,
            range: Some((memory.saturating_sub(not_read), memory)),
            out_of_memory: within.out_of_memory,
            runtime: estimate.runtime.map(|runtime| runtime + within.took()),
            ..estimate
        })
    }

    /// The file with the graph of a configuration, and the time of its export.
    fn graph(
        &self,
        job: &PlannedJob<'_>,
        configuration: &Configuration,
    ) -> Result<(PathBuf, Duration), Missing> {
        let command = match job.kind.graph.of_job(job.kind, configuration, self.folder) {
            JobGraph::File(path) => return Ok((path.into(), Duration::ZERO)),
            JobGraph::Export(command) => command,
        };
        let key = Key::new(&command, &["export".to_owned(), job.device.name.clone()]);
        let path = self.store.graph(&key);
        // Jobs that differ in sizes alone have one graph.
        let round = self.exports.once(&key, || {
            if let Some(round) = self.find(&key)?
                && self.store.kept_graph(&key).map_err(|error| self.unreadable(&error))?.is_some()
            {
                return Ok(round);
            }
            let exported = self.on_lane(|| exports::export(&command, &path, &job.device))??;
            let round = Round::new(&command, None, false, exported.took, exported.torch);
            self.put(&key, &round, Some(&path))?;
            Ok(round)
        })?;
        Ok((path, round.took()))
    }

    /// The estimate that another program prints.
    fn of_command(
        &self,
        job: &PlannedJob<'_>,
        command: &[String],
    ) -> Result<EstimatedRun, Missing> {
        let command = with_values(command, &job.configuration, self.folder);
        let key = Key::new(&command, &[]);
        let round = match self.find(&key)? {
            Some(round) => round,
            None => {
                let (memory, took) = self.on_lane(|| {
                    let started = Instant::now();
                    (printed_bytes(&command), started.elapsed())
                })?;
                let round = Round::new(&command, Some(memory?), false, took, None);
                self.put(&key, &round, None)?;
                round
            }
        };
        let memory = round.reserved().unwrap_or_default();
        Ok(EstimatedRun {
            memory,
            reserve: memory,
            range: None,
            out_of_memory: memory > job.device.memory,
            second: None,
            runtime: Some(round.took()),
            classes: None,
        })
    }

    /// The recording of a job without a limit to memory: its trace, and the round.
    fn recorded(
        &self,
        job: &PlannedJob<'_>,
        command: &[OsString],
        engine: Engine,
    ) -> Result<(KeptTrace, Round), Missing> {
        let settings = settings(job, engine, "unlimited");
        let key = Key::new(command, &settings);
        if let Some(round) = self.find(&key)?
            && let Some(trace) =
                self.store.kept_trace(&key).map_err(|error| self.unreadable(&error))?
        {
            return Ok((trace, round));
        }
        let (mut attempt, took) =
            self.attempt(job, command, (engine, Capacity::Unlimited), &key)?;
        attempt.complete()?;
        if let Ok(recorded) = &mut attempt.recorded {
            keep_convolutions(recorded, &job.device);
        }
        let trace = self.store.trace(&key);
        let round = self.keep(command, (&key, Some(&trace)), &attempt, took, None)?;
        let trace = self.store.recorded_trace(&key).map_err(|error| self.unreadable(&error))?;
        Ok((trace, round))
    }

    /// The run of a job with limited memory on a virtual GPU.
    fn limited(
        &self,
        job: &PlannedJob<'_>,
        command: &[OsString],
        capacity: Capacity,
    ) -> Result<Round, Missing> {
        let engine = Engine::VirtualGpu;
        let size = match capacity {
            Capacity::Of(size) => size.get().to_string(),
            Capacity::OfDevice | Capacity::Unlimited => "device".to_owned(),
        };
        let settings = settings(job, engine, &size);
        let key = Key::new(command, &settings);
        // The peak by class is asked of the first round.
        let classes = self.classes && matches!(capacity, Capacity::OfDevice);
        if let Some(round) = self.find(&key)?
            && (!classes || round.out_of_memory || round.classes().is_some())
        {
            return Ok(round);
        }
        let (attempt, took) = self.attempt(job, command, (engine, capacity), &key)?;
        let mut by_class = None;
        if !attempt.is_out_of_memory() {
            attempt.complete()?;
            if classes {
                by_class = Some(figures::classes_of_recording(&self.store.trace(&key), job)?);
            }
        }
        let round = self.keep(command, (&key, None), &attempt, took, by_class)?;
        // Only its peaks count.
        let _ = fs::remove_file(self.store.trace(&key));
        Ok(round)
    }

    /// Records a job.
    fn attempt(
        &self,
        job: &PlannedJob<'_>,
        command: &[OsString],
        (engine, capacity): (Engine, Capacity),
        key: &Key,
    ) -> Result<(Attempt, Duration), Missing> {
        let mut command = command.iter().cloned();
        let command: (OsString, Vec<OsString>) =
            (command.next().unwrap_or_default(), command.collect());
        let printed = self.store.printed(key);
        let request = Request {
            engine,
            capacity,
            steps: job.kind.steps,
            stacks: Stacks::Omitted,
            printed: Some(printed.clone()),
            helper: std::env::current_exe().ok(),
            ..Request::new(command, self.store.trace(key), job.device.clone())
        };
        let (recorded, took) = self.on_lane(|| {
            let started = Instant::now();
            (xmem_recorder::record(&request, &mut |_| {}), started.elapsed())
        })?;
        let attempt = Attempt { recorded, printed };
        match attempt.is_interrupted() {
            true => Err(Missing::Interrupted),
            false => Ok((attempt, took)),
        }
    }

    fn keep(
        &self,
        command: &[OsString],
        (key, trace): (&Key, Option<&Path>),
        attempt: &Attempt,
        took: Duration,
        classes: Option<MemoryByClass>,
    ) -> Result<Round, Missing> {
        let recorded = attempt.recorded.as_ref().ok();
        let peaks = recorded.and_then(|recorded| recorded.peaks);
        let round = Round::new(
            command,
            peaks.map(|peaks| Bytes(peaks.reserved)),
            attempt.is_out_of_memory(),
            took,
            recorded.and_then(|recorded| recorded.torch.clone()),
        )
        .with_classes(classes);
        self.put(key, &round, trace)?;
        let _ = fs::remove_file(&attempt.printed);
        Ok(round)
    }

    fn find(&self, key: &Key) -> Result<Option<Round>, Missing> {
        self.store.find(key).map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, error: &io::Error) -> Missing {
        Missing::Failed(format!("cannot read from the store `{}`: {error}", self.store.place()))
    }

    fn put(&self, key: &Key, round: &Round, file: Option<&Path>) -> Result<(), Missing> {
        self.store.keep(key, round, file).map_err(|error| {
            let place = self.store.place();
            Missing::Failed(format!("cannot write to the store `{place}`: {error}"))
        })
    }

    /// Runs a function on a free lane, if it may be recorded then.
    fn on_lane<T>(&self, function: impl FnOnce() -> T) -> Result<T, Missing> {
        self.lanes.run(|| self.may_record().map(|()| function()))
    }

    fn may_record(&self) -> Result<(), Missing> {
        match self.interrupts {
            Some(interrupts) if interrupts.arrived() => Err(Missing::Interrupted),
            _ if !self.records => Err(Missing::NotRecorded),
            _ => Ok(()),
        }
    }
}

/// The number of bytes in the last line that a command prints.
fn printed_bytes(command: &[OsString]) -> Result<Bytes, String> {
    let output = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`{}`: {error}", shown(Path::new(&command[0]))))?;
    let last = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        last.unwrap_or_default().trim().to_owned()
    };
    if !output.status.success() {
        let (status, error) = (output.status, last(&output.stderr));
        return Err(format!("the estimator ended with {status}: {error}"));
    }
    let last = last(&output.stdout);
    last.parse()
        .map(Bytes)
        .map_err(|_| format!("the estimator printed `{last}`, expected a number of bytes"))
}

/// What decides about a round beside the command.
fn settings(job: &PlannedJob<'_>, engine: Engine, capacity: &str) -> [String; 4] {
    let steps = job.kind.steps.to_string();
    [job.device.name.clone(), engine.name().to_owned(), steps, capacity.to_owned()]
}
