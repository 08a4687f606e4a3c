//! An estimate, held against a recording of the same job: how far off are the peaks, and because of
//! what?
//!
//! A recording has no roles, modules or phases. It is a sequence of requests, as the estimate is;
//! the two are aligned as `diff` aligns two texts, request by request and by size alone, and the
//! recording inherits what the estimate says of the requests that are the same. What is left over
//! on either side is what the estimate gets wrong.

mod align;
mod curves;
mod diff;
mod differences;
mod phases;
mod predicted;
mod result;

pub use result::{
    CurveDistance, CurvePoint, DifferenceGroup, DifferenceKind, Judged, Moment, Peaks, PhasePeaks,
    RequestCounts, RoleBytes, Validation,
};

use crate::findings::findings;
use crate::rerun::{Rerun, RerunError, RerunOptions, rerun_with_requests};
use crate::setup::SetupError;
use crate::side::Side;
use align::{Alignment, MatchKind};
use differences::{At, Compared};
use predicted::Predicted;
use xmem::analyzer::Role;
use xmem::{Estimate, EstimateError, Job};
use xmem_snapshot::Site;
use xmem_snapshot::Snapshot;
use xmem_types::{Bytes, Diagnostics, Severity};

/// A recording that begins with other memory than the estimate has there is told if the difference is more than one
/// in this many bytes.
const START_SHARE: u64 = 50;

/// The reason why an estimate cannot be compared with a recording.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// There is no recording to hold it against.
    #[error(transparent)]
    Recording(#[from] RerunError),
    /// There is no estimate.
    #[error(transparent)]
    Estimate(#[from] EstimateError),
}

impl From<SetupError> for ValidateError {
    fn from(error: SetupError) -> Self {
        Self::Recording(error.into())
    }
}

/// Holds an estimate of `job` against a recording.
///
/// # Errors
/// If the snapshot has no history for the device of `options`, or one of the two allocators is not
/// simulated.
pub fn validate(
    estimate: &Estimate,
    job: &Job,
    snapshot: &Snapshot,
    options: &RerunOptions,
) -> Result<Validation, ValidateError> {
    let predicted = estimate.predict(job)?;
    let prediction = predicted.prediction();
    let (rerun, recorded) = rerun_with_requests(snapshot, options)?;
    let predicted = Predicted::of(prediction);
    let starts = predicted.iteration_starts(prediction);
    let alignment = Alignment::of(&predicted.side, &recorded.side, &starts);
    let compared = Compared {
        prediction,
        snapshot,
        predicted: &predicted,
        recorded: &recorded,
        alignment: &alignment,
    };
    Ok(compared.judge(rerun, job.diagnostics()))
}

impl Compared<'_> {
    fn judge(&self, rerun: Rerun, read: &Diagnostics) -> Validation {
        let peaks = self.peaks(&rerun);
        let requests = self.requests();
        let mut notes = read.clone();
        notes.extend(self.prediction.diagnostics().clone());
        for doubt in rerun.findings.iter().filter(|finding| finding.severity == Severity::Serious) {
            let message = || format!("in the snapshot: {}", doubt.message);
            notes.report_many(doubt.code, Severity::Serious, None, doubt.count, message);
        }
        note(&rerun, &requests, &mut notes);
        self.note_start(&mut notes);
        let at = self.recorded_peak();
        Validation {
            peaks,
            requests,
            phases: self.phases(),
            curves: self.curves(),
            points: self.points(),
            moment: at.map(|at| self.moment(at)),
            roles: at.map(|at| self.roles(at)).unwrap_or_default(),
            differences: at.map(|at| self.differences(at)).unwrap_or_default(),
            findings: findings(&notes),
            rerun,
        }
    }

    fn peaks(&self, rerun: &Rerun) -> Peaks {
        let window = self.alignment.window.clone();
        let (ours, theirs) = (&self.predicted.side, &self.recorded.side);
        let most = |values: &[Bytes]| values.iter().copied().max().unwrap_or_default();
        let within = |values: &[Bytes]| most(&values[window.clone()]);
        Peaks {
            allocated: Judged {
                estimated: within(&ours.allocated),
                recorded: most(&theirs.allocated),
            },
            requested: Judged {
                estimated: within(&ours.requested()),
                recorded: most(&theirs.requested()),
            },
            reserved: Judged {
                estimated: within(&ours.reserved),
                recorded: rerun.figures.reserved_peak.recorded,
            },
        }
    }

    /// Says that the recording begins with other memory than the estimate has where the comparison starts, such as
    /// in a later iteration than the trace has.
    fn note_start(&self, notes: &mut Diagnostics) {
        let (ours, theirs) = (&self.predicted.side, &self.recorded.side);
        let before = theirs.blocks.iter().filter(|block| block.alloc.is_none());
        let recorded: Bytes = before.map(|block| block.size).sum();
        let start = self.alignment.window.start;
        let last = start.checked_sub(1);
        let estimated = last.map_or(Bytes::ZERO, |at| ours.allocated[at]);
        if recorded == Bytes::ZERO
            || recorded.get().abs_diff(estimated.get()) <= recorded.get() / START_SHARE
        {
            return;
        }
        let starts = self.predicted.iteration_starts(self.prediction);
        let place = match starts.partition_point(|&first| first <= start) {
            _ if start == 0 => "the start of the trace".to_owned(),
            later => format!("iteration {}", later.saturating_sub(1)),
        };
        notes.report("begins-elsewhere", Severity::Warning, None, || {
            format!(
                "the recording begins with {recorded} allocated, and is compared from {place} on, where the \
                 estimate has {estimated}: record the snapshot from the start of the script \
                 (torch.cuda.memory._record_memory_history before the model is made), or the trace with more iterations"
            )
        });
    }

    fn requests(&self) -> RequestCounts {
        let (ours, theirs) = (&self.predicted.side.blocks, &self.recorded.side.blocks);
        let mut counts =
            RequestCounts { recorded: theirs.len() as u64, ..RequestCounts::default() };
        for (row, life) in ours.iter().enumerate() {
            let partner = self.alignment.of_predicted[row];
            let covered = life.alloc.is_some_and(|alloc| self.alignment.window.contains(&alloc));
            if partner.is_none() && !covered {
                counts.outside += 1;
                continue;
            }
            counts.estimated += 1;
            match partner.map(|partner| partner.kind) {
                Some(MatchKind::Same | MatchKind::Before) => counts.same += 1,
                Some(MatchKind::Moved) => counts.moved += 1,
                Some(MatchKind::Resized) => counts.resized += 1,
                None => counts.extra += 1,
            }
        }
        counts.missing = self.alignment.of_recorded.iter().filter(|p| p.is_none()).count() as u64;
        counts
    }

    /// The moment at which the recording allocates most; none if it never allocates.
    fn recorded_peak(&self) -> Option<At> {
        let (ours, theirs) = (&self.predicted.side, &self.recorded.side);
        let recorded = Side::peak(&theirs.allocated)?;
        if ours.events.is_empty() {
            return None;
        }
        Some(At { predicted: self.alignment.predicted_at(recorded, ours, theirs), recorded })
    }

    fn moment(&self, at: At) -> Moment {
        let (ours, theirs) = (&self.predicted.side, &self.recorded.side);
        let place = |event: usize| {
            let block = ours.events[event].block;
            self.prediction.place(self.predicted.ids[block])
        };
        let window = self.alignment.window.clone();
        let highest = Side::peak(&ours.allocated[window.clone()]).map(|row| window.start + row);
        let elsewhere = highest.filter(|&peak| ours.allocated[peak] > ours.allocated[at.predicted]);
        let stack = self.recorded.stacks[theirs.events[at.recorded].block];
        Moment {
            allocated: Judged {
                estimated: ours.allocated[at.predicted],
                recorded: theirs.allocated[at.recorded],
            },
            entry: self.recorded.entries[at.recorded],
            site: Site::of(self.snapshot, stack),
            place: place(at.predicted),
            estimated_peak: elsewhere.map(place),
        }
    }

    fn roles(&self, at: At) -> Vec<RoleBytes> {
        let role_of = |row: usize| self.prediction.block(self.predicted.ids[row]).role;
        let mut list: Vec<RoleBytes> = Role::ALL
            .into_iter()
            .map(Some)
            .chain([None])
            .map(|role| RoleBytes { role, bytes: Judged::default() })
            .collect();
        let mut add = |role: Option<Role>, add: &dyn Fn(&mut Judged)| {
            let row = list.iter_mut().find(|row| row.role == role);
            add(&mut row.expect("all roles are listed").bytes);
        };
        for (row, life) in self.predicted.side.blocks.iter().enumerate() {
            if life.is_live(at.predicted) {
                add(Some(role_of(row)), &|judged| judged.estimated += life.size);
            }
        }
        for (row, life) in self.recorded.side.blocks.iter().enumerate() {
            if life.is_live(at.recorded) {
                let partner = self.alignment.of_recorded[row];
                let role = partner.map(|partner| role_of(partner.block));
                add(role, &|judged| judged.recorded += life.size);
            }
        }
        list.retain(|row| row.bytes != Judged::default());
        list
    }
}

/// Says what makes the comparison less than it seems.
fn note(rerun: &Rerun, requests: &RequestCounts, notes: &mut Diagnostics) {
    if !rerun.is_exact() {
        notes.report("recording-not-reproduced", Severity::Warning, None, || {
            "the simulator does not reproduce the recording exactly, so the rounding of block sizes \
             may be wrong: see `xmem snapshot replay`"
                .to_owned()
        });
    }
    let alike = requests.same + requests.moved;
    if alike * 2 < requests.recorded.max(requests.estimated) {
        notes.report("few-blocks-match", Severity::Warning, None, || {
            format!(
                "only {alike} blocks match, of {} estimated and {} recorded: is it the same job?",
                requests.estimated, requests.recorded
            )
        });
    }
}
