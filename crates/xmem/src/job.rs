//! A trace, read and analyzed: what every estimate starts from.

use crate::facts::TraceFacts;
use crate::timings::{Stage, Timings};
use std::path::Path;
use xmem_analyzer::Profile;
use xmem_predict::{Finding, JobEnvironment, Locator};
use xmem_trace::{ReadError, ReadOptions, Trace};
use xmem_types::Diagnostics;

/// A training job as a trace shows it. One job can be estimated for many devices.
#[derive(Clone, Debug)]
pub struct Job {
    facts: TraceFacts,
    environment: JobEnvironment,
    profile: Profile,
    diagnostics: Diagnostics,
    timings: Timings,
}

impl Job {
    /// Reads a trace file: plain, gzip or zstd, distinguished by content. `-` is standard input.
    ///
    /// # Errors
    /// If the file cannot be read or is not a trace. Odd content is a
    /// [diagnostic](Job::diagnostics) instead.
    pub fn from_path(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self, ReadError> {
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
    ) -> Result<Self, ReadError> {
        let mut timings = Timings::default();
        observer(Stage::Read);
        let (trace, notes) = timings.time(Stage::Read, || xmem_trace::read_path(path, options))?;
        observer(Stage::Analyze);
        Ok(Self::analyze(trace, notes, timings))
    }

    /// Reads a trace from memory: plain, gzip or zstd, distinguished by content.
    ///
    /// # Errors
    /// As [`from_path`](Job::from_path).
    pub fn from_bytes(bytes: &[u8], options: &ReadOptions) -> Result<Self, ReadError> {
        let mut timings = Timings::default();
        let (trace, notes) =
            timings.time(Stage::Read, || xmem_trace::read_bytes(bytes, options))?;
        Ok(Self::analyze(trace, notes, timings))
    }

    /// Analyzes a trace that was read before, with what was odd about it.
    #[must_use]
    pub fn from_trace(trace: Trace, diagnostics: Diagnostics) -> Self {
        Self::analyze(trace, diagnostics, Timings::default())
    }

    fn analyze(trace: Trace, mut diagnostics: Diagnostics, mut timings: Timings) -> Self {
        let metadata = trace.header.extra.iter();
        let environment = JobEnvironment::from_metadata(
            metadata.map(|(key, value)| (key.as_str(), value.as_str())),
        );
        let (facts, (profile, notes)) = timings
            .time(Stage::Analyze, || (TraceFacts::of_trace(&trace), xmem_analyzer::analyze(trace)));
        let facts = facts.with_profile(&profile);
        let environment = match profile.recording() {
            Some(recording) => environment.with_recording(recording),
            None => environment,
        };
        diagnostics.extend(notes);
        Self { facts, environment, profile, diagnostics, timings }
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
