//! Many traces, some at a time. Each is read and analysed once, whatever the number of questions
//! about it, and is in memory only as long as it is worked on.

use super::failure::{Failure, guarded};
use super::settings::Settings;
use super::stop::Stop;
use super::traces::{Named, Trace};
use crate::args::ReplayArgs;
use crate::progress::Progress;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use xmem::{Answer, Job, ReadOptions};
use xmem_report::json::{Document, Rules};

/// What is to be done.
pub(super) struct Batch<'a> {
    pub(super) traces: &'a [Named],
    pub(super) settings: &'a [Settings],
    pub(super) jobs: NonZeroUsize,
    pub(super) read: ReadOptions,
    pub(super) stop: Stop,
    pub(super) progress: Progress,
}

/// What an answer, or the lack of one, is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct About {
    /// Which of the traces.
    pub(super) trace: usize,
    /// Which of the settings; none if there is no answer whatever they are.
    pub(super) settings: Option<usize>,
}

/// How many traces are in memory at once, and how each is read.
pub(super) fn plan(args: &ReplayArgs, traces: usize) -> (NonZeroUsize, ReadOptions) {
    let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let useful = NonZeroUsize::new(traces).unwrap_or(NonZeroUsize::MIN);
    let jobs = args.many.jobs.unwrap_or(cores).min(useful);
    let mut read = super::read_options(&args.reading);
    if jobs > NonZeroUsize::MIN {
        let share = NonZeroUsize::new(cores.get() / jobs.get()).unwrap_or(NonZeroUsize::MIN);
        read.threads = read.threads.or(Some(share));
    }
    (jobs, read)
}

impl Batch<'_> {
    /// Works on the traces in their order, and gives what comes of them to `deliver` as soon as it is
    /// there, from several threads. Questions that are not `wanted` are left out.
    pub(super) fn run(
        &self,
        wanted: impl Fn(About) -> bool + Sync,
        deliver: impl Fn(About, Result<Answer, Failure>) + Sync,
    ) {
        let next = AtomicUsize::new(0);
        let work = || {
            while !self.stop.is_wished() {
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
                    thread::Builder::new().stack_size(super::STACK).spawn_scoped(scope, work);
                if let Err(error) = started {
                    tracing::warn!(%error, "fewer traces at a time than asked for");
                    break;
                }
            }
            work();
        });
        self.progress.finish();
    }

    /// The trace that something is about, as the user named it.
    pub(super) fn name(&self, about: About) -> &str {
        &self.traces[about.trace].name
    }

    /// What came of a question, or of a trace, as a document.
    pub(super) fn document<'d>(
        &'d self,
        about: About,
        result: &'d Result<Answer, Failure>,
        rules: Rules,
    ) -> Document<'d> {
        let words = about.settings.map(|settings| self.settings[settings].words.as_str());
        match result {
            Ok(answer) => {
                let words = words.expect("an answer is to a question");
                Document::answer(self.name(about), words, answer, rules)
            }
            Err(failure) => Document::error(self.name(about), words, failure),
        }
    }

    fn one(
        &self,
        trace: usize,
        wanted: impl Fn(About) -> bool,
        deliver: impl Fn(About, Result<Answer, Failure>),
    ) {
        let about = |settings| About { trace, settings };
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
            if self.stop.is_at_once() {
                return;
            }
            let estimate = &self.settings[settings].estimate;
            let answer = guarded(name, || {
                estimate.job_observed(&job, &|stage| self.progress.stage(name, stage))
            });
            deliver(about(Some(settings)), answer);
        }
    }

    fn job(&self, Named { name, trace }: &Named) -> Result<Job, Failure> {
        match trace {
            Trace::At(path) => guarded(name, || {
                Ok(Job::observed(path, &self.read, &|stage| self.progress.stage(name, stage))?)
            }),
            Trace::Hidden(source) => {
                Err(Failure::Folder { place: name.clone(), source: Arc::clone(source) })
            }
        }
    }
}
