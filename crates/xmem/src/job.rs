//! A trace or a memory snapshot, read and analyzed: what every estimate starts from.

use crate::facts::TraceFacts;
use crate::history;
use crate::input::{Input, InputError};
use crate::timings::{Stage, Timings};
use std::path::Path;
use xmem_analyzer::Profile;
use xmem_predict::{Finding, JobEnvironment, Locator};
use xmem_snapshot::{DeviceIndex, Snapshot};
use xmem_trace::{InputFile, ReadOptions, Trace};
use xmem_types::Diagnostics;

/// The most GPUs of one process that are analyzed: those of the largest servers.
const MAX_GPUS: usize = 16;

/// A training job as a trace shows it. One job can be estimated for many devices.
#[derive(Clone, Debug)]
pub struct Job {
    facts: TraceFacts,
    environment: JobEnvironment,
    profile: Profile,
    diagnostics: Diagnostics,
    timings: Timings,
    others: Vec<Job>,
}

impl Job {
    /// Reads a trace file or a memory snapshot: plain, gzip or zstd, distinguished by content. `-` is
    /// standard input.
    ///
    /// # Errors
    /// If the file cannot be read or is neither. Odd content is a
    /// [diagnostic](Job::diagnostics) instead.
    pub fn from_path(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self, InputError> {
        Self::observed(path.as_ref(), options, &|_| {})
    }

    /// Like [`from_path`](Job::from_path), and calls `observer` when a stage begins.
    ///
    /// # Errors
    /// As [`from_path`](Job::from_path).
    pub fn observed(
        path: &Path,
        options: &ReadOptions,
        observer: &dyn Fn(Stage),
    ) -> Result<Self, InputError> {
        let mut timings = Timings::default();
        observer(Stage::Read);
        let input =
            timings.time(Stage::Read, || Input::of_file(InputFile::open(path)?, options))?;
        observer(Stage::Analyze);
        Ok(Self::of_input(input, timings))
    }

    /// Reads a trace or a memory snapshot from memory: plain, gzip or zstd, distinguished by content.
    ///
    /// # Errors
    /// As [`from_path`](Job::from_path).
    pub fn from_bytes(bytes: &[u8], options: &ReadOptions) -> Result<Self, InputError> {
        Self::from_named_bytes(bytes, "<bytes>", options)
    }

    /// The same with the name by which messages call the input.
    ///
    /// # Errors
    /// As [`from_path`](Job::from_path).
    pub fn from_named_bytes(
        bytes: &[u8],
        name: &str,
        options: &ReadOptions,
    ) -> Result<Self, InputError> {
        let mut timings = Timings::default();
        let input = timings.time(Stage::Read, || Input::of_bytes(bytes, name, options))?;
        Ok(Self::of_input(input, timings))
    }

    /// Analyzes a trace that was read before, with what was odd about it.
    #[must_use]
    pub fn from_trace(trace: Trace, diagnostics: Diagnostics) -> Self {
        Self::analyze(trace, diagnostics, Timings::default())
    }

    /// Analyzes a memory snapshot that was read before, with what was odd about it.
    #[must_use]
    pub fn from_snapshot(snapshot: &Snapshot, diagnostics: Diagnostics) -> Self {
        Self::analyze_snapshot(snapshot, diagnostics, Timings::default())
    }

    fn of_input(input: Input, timings: Timings) -> Self {
        match input {
            Input::Trace(trace, notes) => Self::analyze(*trace, notes, timings),
            Input::Snapshot(snapshot, notes) => Self::analyze_snapshot(&snapshot, notes, timings),
        }
    }

    fn analyze_snapshot(snapshot: &Snapshot, mut notes: Diagnostics, timings: Timings) -> Self {
        let devices = history::devices(snapshot);
        let count = devices.len().max(1);
        let on =
            |device, notes, timings| Self::on_device(snapshot, (device, count), notes, timings);
        let others = devices.iter().take(MAX_GPUS).skip(1);
        let others = others.map(|&device| on(device, notes.clone(), Timings::default())).collect();
        history::report_several(&devices, &mut notes);
        Self { others, ..on(devices.first().copied().unwrap_or_default(), notes, timings) }
    }

    fn on_device(
        snapshot: &Snapshot,
        device: (DeviceIndex, usize),
        mut diagnostics: Diagnostics,
        mut timings: Timings,
    ) -> Self {
        let environment = history::environment(snapshot, &mut diagnostics);
        let (profile, notes) = timings.time(Stage::Analyze, || {
            let history = history::of_snapshot(snapshot, device, &mut diagnostics);
            xmem_analyzer::analyze_history(history)
        });
        diagnostics.extend(notes);
        let facts = TraceFacts::of_snapshot(snapshot).with_profile(&profile);
        Self { facts, environment, profile, diagnostics, timings, others: Vec::new() }
    }

    fn analyze(trace: Trace, diagnostics: Diagnostics, timings: Timings) -> Self {
        let others = xmem_analyzer::gpus(&trace).into_iter().take(MAX_GPUS).skip(1);
        let others = others.map(|index| {
            let analyze = |trace| xmem_analyzer::analyze_gpu(trace, index);
            Self::analyzed(trace.clone(), analyze, diagnostics.clone(), Timings::default())
        });
        let others = others.collect();
        Self { others, ..Self::analyzed(trace, xmem_analyzer::analyze, diagnostics, timings) }
    }

    fn analyzed(
        trace: Trace,
        analyze: impl FnOnce(Trace) -> (Profile, Diagnostics),
        mut diagnostics: Diagnostics,
        mut timings: Timings,
    ) -> Self {
        let metadata = trace.header.extra.iter();
        let environment = JobEnvironment::from_metadata(
            metadata.map(|(key, value)| (key.as_str(), value.as_str())),
        );
        let (facts, (profile, notes)) =
            timings.time(Stage::Analyze, || (TraceFacts::of_trace(&trace), analyze(trace)));
        let facts = facts.with_profile(&profile);
        let environment = match profile.recording() {
            Some(recording) => environment.with_recording(recording),
            None => environment,
        };
        diagnostics.extend(notes);
        Self { facts, environment, profile, diagnostics, timings, others: Vec::new() }
    }

    /// The memory of the same job on its other GPUs, if it was recorded on several; this is that on the one with most.
    #[must_use]
    pub fn others(&self) -> &[Job] {
        &self.others
    }

    /// The content of the trace.
    #[must_use]
    pub fn facts(&self) -> &TraceFacts {
        &self.facts
    }

    /// The PyTorch release and environment that the trace was recorded with, as far as it says so.
    #[must_use]
    pub fn environment(&self) -> &JobEnvironment {
        &self.environment
    }

    /// Blocks with lifetime, origin and role.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The oddities and gaps found so far.
    #[must_use]
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// The same in words.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let locator = Locator::new(&self.profile);
        self.diagnostics.iter().map(|d| locator.finding(d)).collect()
    }

    /// Time taken by reading and analysis.
    #[must_use]
    pub fn timings(&self) -> &Timings {
        &self.timings
    }
}
