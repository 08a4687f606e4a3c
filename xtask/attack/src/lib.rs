//! Damaged recordings and hostile inputs, each run of xmem judged.
//!
//! A recording is damaged in many ways, and replayed on a device with one byte less than the intact one needs: it must
//! not be said to fit. Inputs of plans are damaged, too: what is planned must be right. Traces that are intact must get
//! a verdict. Whatever the input, xmem must end in time, in bounded memory, and without a panic.
//!
//! It knows xmem as a program alone, and has its own reader of the traces that it damages; only snapshots are read and
//! written by `xmem-snapshot`. Whether predictions are close to the truth is left to `xmem-corpus`.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a development task: it reads the repository and talks to the person who runs it"
)]

mod damaged;
mod dice;
mod document;
mod event;
mod forms;
mod hostile;
mod intact;
mod judge;
mod kinds;
mod notes;
mod plans;
mod process;
mod recording;
mod report;
mod snapshots;

pub use process::measure;
pub use recording::Input;

use dice::Strength;
use process::Runner;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use xmem_task::program::{self, Profile};
use xmem_task::{Error, TaskError, repo};

/// What to run.
#[derive(Debug)]
pub struct Options {
    /// All, or a sample.
    pub extent: Extent,
    /// Seed of all random choices.
    pub seed: u64,
    /// Only these traces.
    pub traces: Vec<String>,
    /// Only these kinds of damage.
    pub kinds: Vec<String>,
    /// Only these sorts of recordings, and nothing else.
    pub inputs: Vec<Input>,
    /// The program to attack; none builds it.
    pub program: Option<PathBuf>,
    /// Where to write a line for each run.
    pub report: Option<PathBuf>,
    /// Whether the counts go into the documentation.
    pub keep: Keep,
}

impl Options {
    /// Returns whether recordings of this sort are wanted.
    fn wants(&self, input: Input) -> bool {
        self.inputs.is_empty() || self.inputs.contains(&input)
    }

    /// Returns whether an input is damaged by a kind with a strength; the kind and the input are numbers, and there are
    /// so many inputs. In the sample, each kind is run with one input and one strength.
    fn runs(&self, kind: usize, strength: Strength, input: usize, inputs: usize) -> bool {
        match self.extent {
            Extent::Full => true,
            Extent::Sample => kind % inputs == input && strength.level() % 4 == (kind / inputs) % 4,
        }
    }

    /// The recordings of a sort that are damaged, of all and of those in the sample.
    fn of_input<'n>(&'n self, input: Input, all: &[&'n str], sampled: &[&'n str]) -> Vec<&'n str> {
        if !self.wants(input) {
            return Vec::new();
        }
        match (self.traces.is_empty(), self.extent) {
            (false, _) => {
                let names = self.traces.iter().map(String::as_str);
                names.filter(|name| Input::of(name) == input).collect()
            }
            (true, Extent::Full) => all.to_vec(),
            (true, Extent::Sample) => sampled.to_vec(),
        }
    }
}

/// How much to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A small fixed part, for every change.
    Sample,
    /// Everything.
    Full,
}

/// Whether the counts go into the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// They do.
    Counts,
    /// They do not.
    Nothing,
}

/// Runs of an attack broke rules; they were printed.
#[derive(Debug, thiserror::Error)]
#[error("attack: {count} findings, see above")]
struct FindingsError {
    count: usize,
}

impl TaskError for FindingsError {}

/// Attacks and judges; fails if there is a finding.
pub fn run(options: &Options) -> Result<(), Error> {
    let program = program::find(options.program.as_deref(), Profile::Release)?;
    let mut report = report::Report::default();
    let needs = intact::run(&program, options, &mut report)?;
    damaged::run(&program, options, &needs, &mut report)?;
    snapshots::run(&program, options, &needs, &mut report)?;
    if options.inputs.is_empty() {
        plans::run(&program, options, &mut report)?;
        hostile::run(&program, options, &mut report)?;
    }
    print!("{report}");
    if let Some(path) = &options.report {
        std::fs::write(path, report.lines()).map_err(Error::file(path))?;
    }
    if options.keep == Keep::Counts {
        document::write(&report)?;
    }
    match report.findings() {
        0 => Ok(()),
        count => Err(FindingsError { count }.into()),
    }
}

/// Where the files of runs are.
fn folder() -> Result<PathBuf, Error> {
    Ok(repo::target()?.join("attack"))
}

/// Does all work with as many threads as there are cores, each with a folder of its own; results in the order
/// of the work.
fn in_parallel<W: Sync, R: Send>(
    work: &[W],
    task: impl Fn(&Runner, &W) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let folder = folder()?;
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(work.len());
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(work.len()));
    let worker = |thread: usize| -> Result<(), Error> {
        let runner = Runner::new(folder.join(format!("{}-{thread}", std::process::id())))?;
        while let Some((place, work)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            work.get(place).map(|work| (place, work))
        } {
            let result = task(&runner, work)?;
            results.lock().expect("no thread panicked").push((place, result));
        }
        runner.remove()
    };
    std::thread::scope(|scope| {
        let worker = &worker;
        let threads: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || worker(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panicked"))
    })?;
    let mut results = results.into_inner().expect("no thread panicked");
    results.sort_by_key(|(place, _)| *place);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}
