//! The recorded requests once more, through the simulator: does it do what PyTorch did?

mod compare;
mod driver;
mod end;
mod first;
mod place;
mod requests;
mod result;
mod run;

pub use compare::Difference;
pub use end::EndComparison;
pub use first::{BlockRequest, Candidate, FirstDivergence, PlaceContent};
pub use place::{AllocatorAction, MemoryPlace};
pub(crate) use requests::ServedRequests;
pub use result::{Counts, Divergences, Figures, Pair, Rerun, RerunVerdict, StartFacts};

use crate::findings::findings;
use crate::recording::{Levels, Recording, Start, begins_empty, doubts, steps};
use crate::setup::{Setup, SetupError};
use run::Run;
use xmem_simulator::{AddressOrder, FrameworkAllocator, SeedError};
use xmem_snapshot::{DeviceIndex, Snapshot};
use xmem_types::{Bytes, Diagnostics, Severity, TorchVersion};

/// The settings of a rerun, where the snapshot does not have them or others are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RerunOptions {
    /// The device.
    pub device: DeviceIndex,
    /// The release, instead of the one that the snapshot looks like.
    pub torch: Option<TorchVersion>,
    /// The allocator's options, instead of those of the snapshot.
    pub conf: Option<String>,
    /// The addresses of new segments.
    pub addresses: Addresses,
    /// The memory that the device has for the allocator. Without it the device refuses memory where
    /// it was seen to do so.
    pub capacity: Option<Bytes>,
    /// `torch.cuda.set_per_process_memory_fraction`, of the capacity.
    pub memory_fraction: Option<f64>,
}

/// The addresses of new segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// The recorded addresses.
    #[default]
    Recorded,
    /// In some order, as if nothing was known.
    Order(AddressOrder),
}

/// The reason why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RerunError {
    /// There is nothing to run.
    #[error(
        "the snapshot has no history of device {}: record one with \
         torch.cuda.memory._record_memory_history() before the job", device.0
    )]
    NoTrace {
        /// The device.
        device: DeviceIndex,
    },
    /// The allocator is not simulated.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The segments do not go together with the trace.
    #[error(
        "the segments of the snapshot contradict {contradictions} entries of its history; take the \
         snapshot before recording is stopped"
    )]
    Start {
        /// Entries that contradict the segments.
        contradictions: u64,
        /// The problem.
        #[source]
        source: SeedError,
    },
}

/// Runs the recorded requests of one device again.
///
/// # Errors
/// If there are none, or the allocator is not simulated, or the snapshot contradicts
/// itself.
pub fn rerun(snapshot: &Snapshot, options: &RerunOptions) -> Result<Rerun, RerunError> {
    let (recording, setup, notes) = opened(snapshot, options)?;
    prepared(recording, &setup, options)?.result(notes)
}

/// Runs the recorded requests of one device again, and returns them too.
///
/// # Errors
/// As [`rerun`].
pub(crate) fn rerun_with_requests(
    snapshot: &Snapshot,
    options: &RerunOptions,
) -> Result<(Rerun, ServedRequests), RerunError> {
    let (recording, setup, notes) = opened(snapshot, options)?;
    let run = prepared(recording, &setup, options)?;
    let requests = run.requests().map_err(|source| run.failed(source))?;
    Ok((run.result(notes)?, requests))
}

/// The recording and its allocator.
fn opened<'s>(
    snapshot: &'s Snapshot,
    options: &RerunOptions,
) -> Result<(Recording<'s>, Setup, Diagnostics), RerunError> {
    let recording = Recording::new(snapshot, options.device);
    if recording.trace().is_empty() {
        return Err(RerunError::NoTrace { device: options.device });
    }
    let (setup, notes) = Setup::of(snapshot, options.conf.as_deref(), options.torch)?;
    Ok((recording, setup, notes))
}

/// All that a run needs, with the start as well known as it can be.
fn prepared<'r, 's>(
    recording: Recording<'s>,
    setup: &'r Setup,
    options: &'r RerunOptions,
) -> Result<Run<'r, 's>, RerunError> {
    let mut start = Start::of(&recording, &setup.config);
    if start.uncertainty.contradictions > 0 && begins_empty(&recording) {
        start.segments.clear();
    }
    let mut run = Run {
        steps: steps(&recording, &setup.config),
        levels: Levels::new(&recording, start.reserved()),
        start,
        setup,
        options,
        recording,
    };
    match run.refine_start() {
        Ok(()) => Ok(run),
        Err(source) => Err(run.failed(source)),
    }
}

impl Run<'_, '_> {
    fn failed(&self, source: SeedError) -> RerunError {
        RerunError::Start { contradictions: self.start.uncertainty.contradictions, source }
    }

    /// Runs through all steps, and compares the end.
    fn result(&self, mut notes: Diagnostics) -> Result<Rerun, RerunError> {
        note_uncertainty(self, &mut notes);
        let done = self.to_the_end().map_err(|source| self.failed(source))?;
        let unknown = done.driver.unknown_frees;
        notes.report_many("free-of-unknown", Severity::Warning, None, unknown, || {
            "a block is freed that was never allocated; ignored".to_owned()
        });
        let counts = self.counts();
        let mut doubts = doubts(&self.recording);
        let frees = counts.frees.saturating_sub(unknown);
        if counts.allocations + frees + counts.failures + counts.empty_caches == 0 {
            doubts.report("nothing-replayed", Severity::Serious, None, || {
                "the history has no allocation and no free that could be replayed".to_owned()
            });
        }
        let kinds = doubts.iter().count();
        notes.extend(doubts);
        let state = done.driver.allocator.state();
        let is_comparable = self.start.uncertainty.contradictions == 0;
        Ok(Rerun {
            device: self.options.device,
            addresses: self.options.addresses,
            start: self.start_facts(),
            counts,
            figures: self.figures(&done.driver),
            divergences: done.divergences,
            end: is_comparable.then(|| EndComparison::of(&self.recording, &done.naming, &state)),
            findings: findings(&notes),
            doubts: kinds,
            setup: self.setup.clone(),
        })
    }
}

/// Says what cannot be known, as far as the result may depend on it.
fn note_uncertainty(run: &Run<'_, '_>, notes: &mut Diagnostics) {
    let uncertainty = run.start.uncertainty;
    notes.report_many("end-contradicts-trace", Severity::Warning, None, uncertainty.contradictions, || {
        "an entry of the history contradicts the segments of the snapshot, perhaps \
         because recording was stopped before it was taken; segments and blocks are not compared at \
         the end"
            .to_owned()
    });
    notes.report_many("size-before-recording", Severity::Note, None, uncertainty.open_ended, || {
        "a block from before the recording is followed by free memory, of which up to 1 MiB may have \
         belonged to it"
            .to_owned()
    });
    notes.report_many("size-from-later-blocks", Severity::Note, None, uncertainty.refined, || {
        "some of the free memory behind such a block belonged to it: later blocks would have been \
         placed there otherwise"
            .to_owned()
    });
    notes.report_many("beginning-left-out", Severity::Note, None, uncertainty.left_out, || {
        "the history begins with released segments; these may be the end of an operation that was \
         not recorded, and are left out"
            .to_owned()
    });
    let config = &run.setup.config;
    let limited = run.options.memory_fraction.is_some() || config.memory_fraction.is_some();
    if config.garbage_collection_threshold.is_some() && !limited {
        notes.report("unknown-fraction", Severity::Warning, None, || {
            "garbage collection depends on the process's memory fraction, which a snapshot does not \
             contain; it is simulated only if capacity and fraction are given"
                .to_owned()
        });
    }
}
