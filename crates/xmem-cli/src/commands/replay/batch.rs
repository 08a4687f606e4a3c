//! Many traces, some of them at a time. Each trace is read and analyzed once, whatever the number
//! of questions about it, and is in memory only while it is being processed.

use super::args::ReplayArgs;
use super::interrupt::Interrupt;
use super::settings::Settings;
use super::trace_error::{TraceError, catch_panic};
use crate::pool;
use crate::progress::Progress;
use crate::reading::read_options;
use crate::traces::{Source, TraceInput};
use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tempfile::NamedTempFile;
use xmem::{Answer, Job, ReadOptions};
use xmem_objects::{ObjectFolder, ObjectsError};
use xmem_report::json::{Document, Rules};

/// The work: traces, settings, and options for processing them.
pub(super) struct Batch<'a> {
    pub(super) traces: &'a [TraceInput],
    pub(super) settings: &'a [Settings],
    pub(super) jobs: NonZeroUsize,
    pub(super) read: ReadOptions,
    pub(super) stop: Interrupt,
    pub(super) progress: Progress,
}

/// The trace and the settings of an answer or an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question {
    /// The index of the trace.
    pub(super) trace: usize,
    /// The index of the settings; `None` for an error that concerns the trace under all settings.
    pub(super) settings: Option<usize>,
}

/// The number of traces to process at the same time, and the options for reading them.
pub(super) fn plan(args: &ReplayArgs, traces: usize) -> (NonZeroUsize, ReadOptions) {
    let cores = pool::cores();
    let useful = NonZeroUsize::new(traces).unwrap_or(NonZeroUsize::MIN);
    let jobs = args.many.jobs.unwrap_or(cores).min(useful);
    let share = NonZeroUsize::new(cores.get() / jobs.get()).unwrap_or(NonZeroUsize::MIN);
    (jobs, read_options(&args.reading, args.reading.threads.unwrap_or(share)))
}

impl Batch<'_> {
    /// Processes the traces in their order and passes each result to `deliver` as soon as it is
    /// available, from several threads. Questions that are not `wanted` are skipped.
    pub(super) fn run(
        &self,
        wanted: impl Fn(Question) -> bool + Sync,
        deliver: impl Fn(Question, Result<Answer, TraceError>) + Sync,
    ) {
        let next = AtomicUsize::new(0);
        let work = || {
            while !self.stop.is_requested() {
                let trace = next.fetch_add(1, Ordering::Relaxed);
                if trace >= self.traces.len() {
                    break;
                }
                self.one(trace, &wanted, &deliver);
                self.progress.advance();
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.jobs.get() {
                let started =
                    thread::Builder::new().stack_size(pool::STACK_SIZE).spawn_scoped(scope, work);
                if let Err(error) = started {
                    tracing::warn!(%error, "cannot start a thread: fewer traces at a time than requested");
                    break;
                }
            }
            work();
        });
        self.progress.finish();
    }

    /// The name of the trace of a question, as the user gave it.
    pub(super) fn name(&self, about: Question) -> &str {
        &self.traces[about.trace].name
    }

    /// The answer or the error of a question as a document.
    pub(super) fn document<'d>(
        &'d self,
        about: Question,
        result: &'d Result<Answer, TraceError>,
        rules: Rules,
    ) -> Document<'d> {
        let options = about.settings.map(|settings| self.settings[settings].options.as_str());
        match result {
            Ok(answer) => {
                let options = options.expect("an answer is to a question");
                Document::answer(self.name(about), options, answer, rules)
            }
            Err(failure) => Document::error(self.name(about), options, (failure.code(), failure)),
        }
    }

    fn one(
        &self,
        trace: usize,
        wanted: impl Fn(Question) -> bool,
        deliver: impl Fn(Question, Result<Answer, TraceError>),
    ) {
        let about = |settings| Question { trace, settings };
        let questions: Vec<usize> =
            (0..self.settings.len()).filter(|&s| wanted(about(Some(s)))).collect();
        if questions.is_empty() {
            return;
        }
        let job = match self.job(&self.traces[trace]) {
            Ok(job) => job,
            Err(failure) => return deliver(about(None), Err(failure)),
        };
        let name = &self.traces[trace].name;
        for settings in questions {
            if self.stop.is_immediate() {
                return;
            }
            let estimate = &self.settings[settings].estimate;
            let answer = catch_panic(name, || {
                estimate.job_observed(&job, &|stage| self.progress.stage(name, stage))
            });
            deliver(about(Some(settings)), answer);
        }
    }

    fn job(&self, trace: &TraceInput) -> Result<Job, TraceError> {
        let file = LocalFile::of(trace)?;
        catch_panic(&trace.name, || {
            let observer = |stage| self.progress.stage(&trace.name, stage);
            Ok(Job::observed(file.path(), &self.read, &observer)?)
        })
    }
}

/// The file that a trace is read from.
pub(super) enum LocalFile<'a> {
    Given(&'a Path),
    /// A copy of an object, which is removed when this is dropped.
    Copy(NamedTempFile),
}

impl<'a> LocalFile<'a> {
    pub(super) fn of(TraceInput { name, source }: &'a TraceInput) -> Result<Self, TraceError> {
        match source {
            Source::File(path) => Ok(Self::Given(path)),
            Source::Object(folder, object) => {
                copied(folder, object).map(Self::Copy).map_err(TraceError::Object)
            }
            Source::Unreadable(error) => {
                Err(TraceError::Folder { place: name.clone(), source: Arc::clone(error) })
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Copy(copy) => copy.path(),
        }
    }
}

fn copied(folder: &ObjectFolder, object: &str) -> Result<NamedTempFile, ObjectsError> {
    let mut copy = NamedTempFile::new()?;
    match folder.get(object, &mut copy)? {
        true => Ok(copy),
        false => Err(io::Error::new(
            ErrorKind::NotFound,
            format!("`{}` does not exist", folder.address().object(object)),
        )
        .into()),
    }
}
