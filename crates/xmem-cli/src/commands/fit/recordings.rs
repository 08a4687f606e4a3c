//! The recordings of variants of a job.

use super::candidates::gpus;
use super::progress::FitProgress;
use super::template::Template;
use crate::attempt::Attempt;
use crate::commands::profile::keep_convolutions;
use crate::measures::Change;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use xmem::predict::{CapacitySearch, Prediction};
use xmem::types::IterationId;
use xmem::{Answer, Bytes, Device, Estimate, EstimateBuilder, Job, PredictedJob, ReadOptions};
use xmem_cudnn::Cudnn;
use xmem_recorder::{AppliedMeasure, Capacity, Interrupts, LoneRank, Measure, Request};
use xmem_studies::fit::{self, Figures, Recorder, Variant, step_time};

/// The time that a recording has at least, when the time of all is nearly up.
const LEAST_TIME: Duration = Duration::from_secs(60);

/// Why a recording does not count: a measure was not applied.
pub(super) const NOT_APPLICABLE: &str = "not applicable: ";

/// Peaks that differ by less are the same: a page of the device.
const NOTEWORTHY: Bytes = Bytes::mib(2);

/// Makes a recording of any variant.
pub(super) struct Maker<'a> {
    /// A request without command, output and changes.
    pub(super) request: Request,
    pub(super) template: &'a Template,
    pub(super) changes: &'a [Change],
    pub(super) device: &'a Device,
    pub(super) folder: &'a Path,
    /// The iterations that a job must run through.
    pub(super) iterations: usize,
    /// Whether what comes after them counts, whatever it needs.
    pub(super) whole: bool,
    /// The machines of a distributed job.
    pub(super) nodes: NonZeroU32,
    /// When recordings are stopped; none for that of the job as it is.
    pub(super) until: Option<Instant>,
}

/// Makes recordings, each once.
pub(super) struct Recordings<'a> {
    pub(super) maker: Maker<'a>,
    pub(super) side_by_side: usize,
    /// How long scripts go on after the recorded iterations, in the memory of the device and where all of them counts.
    pub(super) time: Duration,
    /// Whether the job as it is fails after its first iterations.
    pub(super) fails_anyway: bool,
    pub(super) until: Instant,
    /// Whether the user stopped the search; none where signals cannot be handled.
    pub(super) interrupts: Option<&'a Interrupts>,
    pub(super) known: BTreeMap<Variant, fit::Recorded>,
    /// The variants that were run in the memory of the device, and whether they ran.
    pub(super) confirmed: BTreeMap<Variant, bool>,
    /// Where changes were applied, in words.
    pub(super) places: BTreeMap<usize, String>,
    /// Those that were read for a law.
    pub(super) read: BTreeMap<Variant, Job>,
    /// The library that the job's convolutions ran with, if it has any.
    pub(super) cudnn: Option<Cudnn>,
    pub(super) progress: FitProgress,
    pub(super) count: usize,
}

/// What a recording says.
pub(super) struct Read {
    pub(super) answer: Box<Answer>,
    pub(super) figures: Figures,
    /// Whether the script needs more after the iterations that were recorded in full.
    pub(super) needs_more_later: bool,
}

/// A recording, and what it says.
pub(super) struct Made {
    pub(super) attempt: Attempt,
    /// Of a complete recording without a limit to memory.
    pub(super) answer: Option<Result<Read, String>>,
    took: Duration,
}

impl Maker<'_> {
    /// Makes the recording of a variant.
    pub(super) fn make(
        &self,
        variant: &Variant,
        capacity: Capacity,
        rest: Option<Duration>,
    ) -> Made {
        let started = Instant::now();
        let name = self.file_name(variant, capacity);
        let mut command = self.template.with(variant.value).into_iter();
        let changes = || variant.measures.iter().map(|&at| &self.changes[at]);
        let printed = self.folder.join(format!("{name}.log"));
        let rank = self.rank(variant);
        let request = Request {
            command: (command.next().unwrap_or_default(), command.collect()),
            output: self.trace(&name),
            measures: self
                .setting(variant.value)
                .into_iter()
                .chain(changes().filter_map(Change::measure).cloned())
                .collect(),
            variables: changes().flat_map(Change::variables).collect(),
            rank,
            gpus: rank.map_or(self.request.gpus, LoneRank::local_world_size),
            printed: Some(printed.clone()),
            capacity,
            rest,
            timeout: self
                .until
                .map(|until| until.saturating_duration_since(started).max(LEAST_TIME)),
            ..self.request.clone()
        };
        let mut recorded = xmem_recorder::record(&request, &mut |_| {});
        let answer = match &mut recorded {
            Ok(recorded) if recorded.cut_short.is_none() && capacity == Capacity::Unlimited => {
                keep_convolutions(recorded, self.device);
                Some(self.figures(recorded.destination.path()))
            }
            _ => None,
        };
        Made { attempt: Attempt { recorded, printed }, answer, took: started.elapsed() }
    }

    fn figures(&self, trace: &Path) -> Result<Read, String> {
        let job = Job::from_path(trace, &ReadOptions::default()).map_err(|e| e.to_string())?;
        let estimate = self.estimate().build();
        let predicted = estimate.predict(&job).map_err(|error| error.to_string())?;
        let answer = predicted.answer();
        let iterations = self.iterations.min(all_iterations(&answer));
        let part = of_iterations(predicted.prediction()).filter(|_| !self.whole);
        let (needs, ample) = match &part {
            Some(part) => {
                let ample = part.ample_outline().reserved + part.device().taken;
                (least(part, iterations), ample)
            }
            None => (needs(&predicted, &answer, iterations), answer.need.ample),
        };
        let (memory, pinned) = (answer.device().memory, answer.budget.host().pinned);
        let figures = Figures {
            needs,
            fits: needs <= memory,
            has_room: ample <= memory,
            step: step_time(job.profile(), self.device, pinned.unwrap_or(Bytes::ZERO)),
        };
        let needs_more_later = part.is_none() && predicted.prediction().has_rest();
        Ok(Read { answer: Box::new(answer), figures, needs_more_later })
    }

    pub(super) fn estimate(&self) -> EstimateBuilder {
        Estimate::builder(self.device.clone()).capacity_search(CapacitySearch::Run)
    }

    /// The file of the recording of a variant.
    pub(super) fn trace_of(&self, variant: &Variant) -> PathBuf {
        self.trace(&self.file_name(variant, Capacity::Unlimited))
    }

    fn trace(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json.zst"))
    }

    fn file_name(&self, variant: &Variant, capacity: Capacity) -> String {
        let value = variant.value.zip(self.template.name.as_deref());
        let value = value.map(|(value, name)| format!("{name}-{value}"));
        let changes = variant.measures.iter().map(|&at| self.changes[at].name().replace('=', "-"));
        let capacity = match capacity {
            Capacity::Unlimited => None,
            Capacity::OfDevice => Some("enforced".to_owned()),
            Capacity::Of(size) => Some(format!("within-{}", size.get())),
        };
        let parts: Vec<String> = value.into_iter().chain(changes).chain(capacity).collect();
        if parts.is_empty() { "as-it-is".to_owned() } else { parts.join("+") }
    }

    /// What a recording says about a variant: the figures, or why there are none.
    fn result(&self, variant: &Variant, made: &Made) -> fit::Recorded {
        let recorded = made.attempt.complete()?;
        let setting = self.setting(variant.value);
        let changes = variant.measures.iter().filter_map(|&at| self.changes[at].measure());
        for measure in setting.iter().chain(changes) {
            match applied(measure.name(), &recorded.measures) {
                Some(applied) if applied.places > 0 => {}
                Some(applied) => return Err(format!("{NOT_APPLICABLE}{}", applied.text)),
                None => return Err(format!("{NOT_APPLICABLE}there is nothing that it changes")),
            }
        }
        match &made.answer {
            Some(read) => read.as_ref().map(|read| read.figures).map_err(Clone::clone),
            None => Err("its recording was not read".to_owned()),
        }
    }

    /// The process that is recorded of a distributed job.
    pub(super) fn rank(&self, variant: &Variant) -> Option<LoneRank> {
        let of_measures = variant.measures.iter().find_map(|&at| gpus(&self.changes[at]));
        LoneRank::new(0, of_measures.or(self.template.ranks_with(variant.value))?, self.nodes)
    }

    /// The measure that sets a value.
    fn setting(&self, value: Option<u64>) -> Option<Measure> {
        self.template.setting(value)?.parse().ok()
    }

    /// A variant in words.
    pub(super) fn in_words(&self, variant: &Variant) -> String {
        let value = variant.value.zip(self.template.name.as_deref());
        let value = value.map(|(value, name)| format!("{name} {value}"));
        let changes = variant.measures.iter().map(|&at| self.changes[at].name());
        let parts: Vec<String> = value.into_iter().chain(changes).collect();
        if parts.is_empty() { "as it is".to_owned() } else { parts.join(", ") }
    }
}

impl Recordings<'_> {
    /// Returns whether the user stopped the search.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupts.is_some_and(Interrupts::arrived)
    }

    /// Keeps what is known of a variant.
    pub(super) fn keep(&mut self, variant: &Variant, made: &Made) -> fit::Recorded {
        let result = self.maker.result(variant, made);
        if let Ok(recorded) = &made.attempt.recorded {
            for &at in &variant.measures {
                let measure = self.maker.changes[at].measure();
                let found = measure.and_then(|m| applied(m.name(), &recorded.measures));
                if let Some(applied) = found.filter(|applied| applied.places > 0) {
                    self.places.entry(at).or_insert_with(|| applied.text.clone());
                }
            }
        }
        self.count += 1;
        let text = self.maker.in_words(variant);
        self.progress.made(&text, &result, made.took);
        self.known.insert(variant.clone(), result.clone());
        result
    }
}

impl Recorder for Recordings<'_> {
    fn record(&mut self, variants: &[Variant]) -> Vec<fit::Recorded> {
        let new: Vec<&Variant> = variants.iter().filter(|v| !self.known.contains_key(*v)).collect();
        for some in new.chunks(self.side_by_side) {
            let rest = self.maker.whole.then_some(self.time);
            let (first, others) = some.split_first().expect("chunks are not empty");
            self.progress.begin(&some.iter().map(|v| self.maker.in_words(v)).collect::<Vec<_>>());
            let maker = &self.maker;
            let all: Vec<Made> = thread::scope(|scope| {
                let others: Vec<_> = others
                    .iter()
                    .map(|variant| {
                        scope.spawn(move || maker.make(variant, Capacity::Unlimited, rest))
                    })
                    .collect();
                let first = maker.make(first, Capacity::Unlimited, rest);
                let joined = others.into_iter().map(|thread| match thread.join() {
                    Ok(made) => made,
                    Err(panicked) => std::panic::resume_unwind(panicked),
                });
                [first].into_iter().chain(joined).collect()
            });
            for (variant, made) in some.iter().zip(&all) {
                let _ = self.keep(variant, made);
            }
        }
        variants.iter().map(|variant| self.known[variant].clone()).collect()
    }

    fn confirm(&mut self, variant: &Variant) -> Option<bool> {
        if let Some(&runs) = self.confirmed.get(variant) {
            return Some(runs);
        }
        let what = format!("{} in the memory of the device", self.maker.in_words(variant));
        self.progress.begin(std::slice::from_ref(&what));
        let made = self.maker.make(variant, Capacity::OfDevice, Some(self.time));
        if made.attempt.is_interrupted() {
            return None;
        }
        let runs = made.attempt.runs(self.fails_anyway);
        self.count += 1;
        self.progress.ran(&what, runs, made.took);
        self.confirmed.insert(variant.clone(), runs);
        Some(runs)
    }

    fn expect(&mut self, measures: &[usize], low: u64, high: u64) -> Option<u64> {
        self.read(measures);
        let source = self.cudnn.as_ref().map(|library| (library as _, self.maker.device));
        let room = self.maker.device.memory;
        self.with_law(measures, |law| law.last_within(room, (low, high), source)).ok()
    }

    fn has_time(&self) -> bool {
        !self.is_interrupted() && Instant::now() < self.until
    }

    fn side_by_side(&self) -> usize {
        self.side_by_side
    }
}

/// The iterations that were recorded in full, of a recording that goes on after them; none if the rest of the script has a higher peak.
/// The other plans of the rest's convolutions are not known, so that what it needs is too high.
fn of_iterations<'j>(whole: &Prediction<'j>) -> Option<Prediction<'j>> {
    let part = whole.has_rest().then(|| whole.without_rest())?;
    let (of_whole, of_part) = (whole.ample_outline(), part.ample_outline());
    let is_higher = |whole: Bytes, part: Bytes| whole > part + NOTEWORTHY;
    let is_later = is_higher(of_whole.allocated, of_part.allocated)
        || is_higher(of_whole.reserved, of_part.reserved);
    (!is_later).then_some(part)
}

/// The least memory of a device with which the requests of a job can be served, and `iterations` like those that were recorded.
fn least(job: &Prediction<'_>, iterations: usize) -> Bytes {
    let whole = IterationId(0)..IterationId::new(job.iteration_starts().len());
    let recorded = job.min_capacity(&whole);
    job.steady_run(iterations).map_or(recorded, |run| recorded.max(run.needed_capacity()))
}

/// The least memory of a device with which a job runs for `iterations`. With less, later iterations may fail although the recorded
/// ones run, as cached memory is released and taken again.
fn needs(predicted: &PredictedJob<'_>, answer: &Answer, iterations: usize) -> Bytes {
    let recorded = answer.least_capacity();
    match predicted.prediction().steady_run(iterations) {
        Ok(run) => recorded.max(run.needed_capacity()),
        Err(_) => recorded,
    }
}

/// The iterations of a script of which all steps were recorded; `usize::MAX` for any other.
pub(super) fn all_iterations(answer: &Answer) -> usize {
    let coverage = &answer.memory.coverage;
    let recorded = answer.memory.per_iteration.iter().filter(|peak| peak.iteration.is_some());
    match coverage.has_all_steps() {
        true => recorded.count() + coverage.later_steps as usize,
        false => usize::MAX,
    }
}

fn applied<'a>(name: &str, all: &'a [AppliedMeasure]) -> Option<&'a AppliedMeasure> {
    all.iter().find(|applied| applied.name == name)
}
