//! Many creations at the same time, by several kubectls, for as long as something is done to the server.

use super::kubectl::Kubectl;
use super::{Bench, LARGE, SMALL};
use crate::daemon::wait;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use xmem_task::Error;

/// The kubectls at the same time.
const THREADS: usize = 4;
/// The Jobs that each creates at a time. One fits, the next does not.
const JOBS: usize = 20;
/// The longest time until all kubectls have been run once more.
const RUN_LIMIT: Duration = Duration::from_secs(180);

/// What the API server says about a connection that the server has not accepted. The system resets those that
/// wait for it when it ends.
const NOT_ACCEPTED: [&str; 2] = ["connection refused", "connection reset by peer"];

/// kubectls that create Jobs, again and again. They are dry runs, so that all have the same names.
#[derive(Debug)]
pub(super) struct Load {
    threads: Vec<JoinHandle<Result<Vec<Run>, Error>>>,
    stop: Arc<AtomicBool>,
    runs: Arc<AtomicUsize>,
}

/// What became of the Jobs of one kubectl.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// They fit, and were created.
    pub(super) created: usize,
    /// They do not fit, and were rejected.
    pub(super) rejected: usize,
    /// They do not fit, and were created.
    pub(super) unchecked: usize,
    /// They were refused because the webhook could not be called.
    pub(super) refused: usize,
    /// Of these, those whose connection the server closed, instead of not accepting it.
    pub(super) cut_off: Vec<String>,
    /// Lines of something else.
    pub(super) others: Vec<String>,
}

/// One kubectl.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) start: Instant,
    pub(super) end: Instant,
    pub(super) counts: Counts,
}

impl Load {
    /// Starts the kubectls.
    pub(super) fn start(bench: &Bench) -> Result<Self, Error> {
        let list = list(bench)?;
        let (stop, runs) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let thread = |_| {
            let (stop, runs) = (Arc::clone(&stop), Arc::clone(&runs));
            let (kubectl, list) = (bench.kubectl.clone(), list.display().to_string());
            std::thread::spawn(move || {
                let mut done = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    done.push(create(&kubectl, &list)?);
                    runs.fetch_add(1, Ordering::Relaxed);
                }
                Ok(done)
            })
        };
        let threads = (0..THREADS).map(thread).collect();
        Ok(Self { threads, stop, runs })
    }

    /// Waits until every kubectl has been started and has ended.
    pub(super) fn wait_for_runs(&self) -> Result<(), Error> {
        // Those that run now, and as many again.
        let wanted = self.runs.load(Ordering::Relaxed) + 2 * THREADS;
        wait("kubectl to create a list of Jobs", RUN_LIMIT, || {
            self.runs.load(Ordering::Relaxed) >= wanted
        })
    }

    /// Ends the kubectls, and says what became of the Jobs.
    pub(super) fn finish(mut self) -> Result<Vec<Run>, Error> {
        self.stop.store(true, Ordering::Relaxed);
        let mut runs = Vec::new();
        for thread in self.threads.drain(..) {
            runs.extend(thread.join().expect("no panic in a thread")?);
        }
        Ok(runs)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The error that is on its way says more.
            drop(thread.join());
        }
    }
}

/// The file with the Jobs.
fn list(bench: &Bench) -> Result<PathBuf, Error> {
    let mut documents = Vec::new();
    for number in 0..JOBS {
        let (name, gpu) = match number % 2 {
            0 => (format!("fits-{number}"), LARGE),
            _ => (format!("large-{number}"), SMALL),
        };
        let path = bench.manifest("annotated-job.yaml", &name, gpu)?;
        documents.push(std::fs::read_to_string(&path).map_err(Error::file(&path))?);
    }
    let path = bench.folder.join("list.yaml");
    std::fs::write(&path, documents.join("---\n")).map_err(Error::file(&path))?;
    Ok(path)
}

fn create(kubectl: &Kubectl, list: &str) -> Result<Run, Error> {
    let start = Instant::now();
    let said = kubectl.run(&["create", "--dry-run=server", "-n", "research", "-f", list])?;
    Ok(Run { start, end: Instant::now(), counts: Counts::of(&said.text) })
}

impl Counts {
    fn of(text: &str) -> Self {
        let mut counts = Self::default();
        for line in text.lines() {
            let created = line.ends_with(" created (server dry run)");
            if created && line.starts_with("job.batch/fits-") {
                counts.created += 1;
            } else if created && line.starts_with("job.batch/large-") {
                counts.unchecked += 1;
            } else if line.contains(
                "admission webhook \"validate.xmem.dev\" denied the request: xmem: does not fit",
            ) {
                counts.rejected += 1;
            } else if line.contains("failed calling webhook \"validate.xmem.dev\"") {
                counts.refused += 1;
                if !NOT_ACCEPTED.iter().any(|reason| line.contains(reason)) {
                    counts.cut_off.push(line.to_owned());
                }
            } else {
                counts.others.push(line.to_owned());
            }
        }
        let all = counts.jobs();
        if all != JOBS {
            counts.others.push(format!("{all} answers to {JOBS} Jobs"));
        }
        counts
    }

    /// The Jobs that were answered.
    pub(super) fn jobs(&self) -> usize {
        self.created + self.unchecked + self.rejected + self.refused
    }

    /// Returns whether all were decided about.
    pub(super) fn is_decided(&self) -> bool {
        self.unchecked == 0 && self.refused == 0 && self.others.is_empty()
    }

    /// The sums.
    pub(super) fn sum<'a>(all: impl IntoIterator<Item = &'a Run>) -> Self {
        all.into_iter().fold(Self::default(), |sum, Run { counts, .. }| Self {
            created: sum.created + counts.created,
            rejected: sum.rejected + counts.rejected,
            unchecked: sum.unchecked + counts.unchecked,
            refused: sum.refused + counts.refused,
            cut_off: [sum.cut_off, counts.cut_off.clone()].concat(),
            others: [sum.others, counts.others.clone()].concat(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_and_others_kept() {
        let rejected = "Error from server (Forbidden): error when creating \"list.yaml\": admission webhook \
                        \"validate.xmem.dev\" denied the request: xmem: does not fit: needs 2.91 GiB\n";
        let refused = "Error from server (InternalError): Internal error occurred: failed calling webhook \
                       \"validate.xmem.dev\": EOF\n";
        let created = "job.batch/fits-0 created (server dry run)\n";
        let unchecked = "job.batch/large-1 created (server dry run)\n";
        let text = format!("{}{unchecked}{rejected}{refused}", created.repeat(JOBS - 3));
        let expected = Counts {
            created: JOBS - 3,
            rejected: 1,
            unchecked: 1,
            refused: 1,
            cut_off: vec![refused.trim_end().to_owned()],
            others: Vec::new(),
        };
        assert_eq!(Counts::of(&text), expected);
        let counts = Counts::of("error: something else\n");
        assert_eq!(counts.others, ["error: something else", "0 answers to 20 Jobs"]);
    }
}
