//! The integrity of a recording: whether its events agree with each other as those of an intact one do.
//!
//! A profiler writes much twice: running totals beside sizes, numbers of events beside their order,
//! the shapes of an operator's inputs beside the memory of its output. Each [`Check`] counts where the
//! two disagree. Its bounds come from intact recordings: no intact one may be called damaged.

mod checks;
mod device;
mod events;
mod history;
mod iterations;
mod memory;
mod operators;
mod shapes;
mod signatures;

pub use checks::{Bounds, CHECKS, Check};
pub use history::SnapshotEvidence;

use crate::gpu::GpuMemory;
use crate::lifetime::{Lifetime, Origin};
use crate::optree::ROUNDING;
use crate::pairing::PairingCounts;
use crate::program::Program;
use crate::spans::Iteration;
use xmem_trace::{DeviceKind, OpTable};
use xmem_types::{Bytes, Diagnostics, Location, Sealed, Severity};

/// What a check found.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The check.
    pub check: &'static Check,
    /// The number of events or operators that disagree.
    pub affected: u64,
    /// The number of those that were checked.
    pub checked: u64,
    /// The first that disagrees, where it has a place.
    pub first: Option<Location>,
    /// The worst that the check can say of this recording.
    pub worst: Condition,
    /// Whether the recording is known to be as it was written: what disagrees does so in an odd job.
    pub is_sealed: bool,
}

/// The judgment of a recording, or of one check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// Nothing disagrees.
    #[default]
    Intact,
    /// Something disagrees, within the bounds of intact recordings.
    Doubtful,
    /// More disagrees than in any intact recording.
    Damaged,
}

/// The integrity of a recording: what was checked, and what disagrees.
#[derive(Clone, Debug, Default)]
pub struct Integrity {
    findings: Vec<Finding>,
}

impl Condition {
    /// The name in machine-readable output (`damaged`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Intact => "intact",
            Self::Doubtful => "doubtful",
            Self::Damaged => "damaged",
        }
    }
}

impl Finding {
    /// The judgment of this check alone.
    #[must_use]
    pub fn condition(&self) -> Condition {
        let judged = self.check.bounds.judge(self.affected, self.checked).min(self.worst);
        match judged {
            Condition::Damaged if self.is_sealed => Condition::Doubtful,
            Condition::Doubtful if self.is_sealed => Condition::Intact,
            judged => judged,
        }
    }
}

impl Integrity {
    /// Every check that the recording has the means for, in the order of [`CHECKS`].
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The judgment of the recording: the worst of all checks.
    #[must_use]
    pub fn condition(&self) -> Condition {
        self.findings.iter().map(Finding::condition).max().unwrap_or_default()
    }

    /// The number of checks that found something.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.findings.iter().filter(|f| f.affected > 0).count()
    }

    fn add(
        &mut self,
        check: &'static Check,
        (affected, checked): (u64, u64),
        first: Option<Location>,
    ) {
        if checked > 0 || affected > 0 {
            let worst = Condition::Damaged;
            let is_sealed = false;
            self.findings.push(Finding { check, affected, checked, first, worst, is_sealed });
        }
    }

    /// Adds a diagnostic for every check that found something.
    pub(crate) fn report(&self, notes: &mut Diagnostics) {
        Self::report_all(&self.findings, notes);
    }

    fn report_all(findings: &[Finding], notes: &mut Diagnostics) {
        for finding in findings {
            let severity = match finding.condition() {
                Condition::Intact => continue,
                Condition::Doubtful => Severity::Warning,
                Condition::Damaged => Severity::Serious,
            };
            let (affected, first) = (finding.affected, finding.first);
            notes.report_many(finding.check.name, severity, first, affected, || {
                finding.check.meaning.to_owned()
            });
        }
    }
}

/// Runs all checks.
pub(crate) fn check(subject: &Subject<'_>) -> Integrity {
    let mut integrity = Integrity::default();
    // The host's part of a GPU's recording is no basis for an estimate, intact or not.
    let has_gpu = subject.program.trace.memory.device.contains(&DeviceKind::Cuda);
    if has_gpu && subject.gpu.is_none() {
        return integrity;
    }
    events::check(subject, &mut integrity);
    memory::check(subject, &mut integrity);
    device::check(subject, &mut integrity);
    shapes::lost(subject, &mut integrity);
    iterations::steps(subject, &mut integrity);
    let before = integrity.findings.len();
    operators::check(subject, &mut integrity);
    shapes::check(subject, &mut integrity);
    let between = integrity.findings.len();
    iterations::check(subject, &mut integrity);
    for (row, finding) in integrity.findings.iter_mut().enumerate().skip(before) {
        let is_of_program = row >= between || finding.check.name == checks::EMPTY_SHAPES.name;
        finding.worst =
            if is_of_program { subject.worst_of_program() } else { subject.worst_of_operators() };
    }
    let sealed = subject.program.trace.evidence.sealed;
    if sealed == Sealed::Intact {
        // The memory of a GPU is held against what PyTorch counted.
        let first = if subject.gpu.is_some() { before } else { 0 };
        let (odd, of_iterations) = integrity.findings[first..].split_at_mut(between - first);
        for finding in odd {
            finding.is_sealed = finding.check.name != checks::UNEQUAL_STEPS.name;
        }
        // Iterations that differ are a doubt about the next ones.
        for finding in of_iterations {
            finding.worst = finding.worst.min(Condition::Doubtful);
        }
    }
    let broken = u64::from(sealed == Sealed::Broken);
    integrity.add(&checks::SEAL, (broken, u64::from(sealed != Sealed::No)), None);
    integrity
}

/// All that the checks look at.
pub(crate) struct Subject<'a> {
    pub(crate) program: Program<'a>,
    /// Rows of the device's memory events in time order.
    pub(crate) rows: &'a [u32],
    pub(crate) pairing: PairingCounts,
    pub(crate) lifetimes: &'a [Lifetime],
    pub(crate) origins: &'a [Origin],
    /// The recording, if it is one of a GPU.
    pub(crate) gpu: Option<&'a GpuMemory>,
    pub(crate) iterations: &'a [Iteration],
    /// Marks of the recorder in a trace without its notes, and all of its marks.
    pub(crate) marks_without_notes: (u64, u64),
    /// True if the script compiled on a virtual GPU.
    pub(crate) compiled: bool,
    /// The number of optimizer steps in each iteration that the recorder marked.
    pub(crate) steps: Vec<usize>,
    /// False if the recorder was stopped within an iteration.
    pub(crate) complete: bool,
    /// True if times are whole microseconds.
    pub(crate) coarse: bool,
    /// True if the profiler recorded shapes, as the file says.
    pub(crate) records_shapes: bool,
    /// Peaks of allocated and of reserved memory that PyTorch counted on a virtual GPU.
    pub(crate) counted_peaks: Option<(Bytes, Bytes)>,
    /// True if an option makes the allocator's segments larger (`large_segment_size_mb`).
    pub(crate) larger_segments: bool,
}

impl Subject<'_> {
    /// The worst that operators can say of the recording. In that of a GPU with running totals they only name
    /// the memory, whose events are the answer; and a compiler runs operators of its own, without memory, in
    /// the iteration that it compiles.
    fn worst_of_operators(&self) -> Condition {
        match self.gpu {
            Some(_) if self.compiled => Condition::Intact,
            Some(gpu) if gpu.recording.peak_allocated.is_some() => Condition::Doubtful,
            _ => Condition::Damaged,
        }
    }

    /// The worst that a program can say of the recording that does other things in the next iteration, or has
    /// tensors without elements: it may save a checkpoint, or begin an average of its weights. Where running
    /// totals show that no memory event is missing, that is no doubt about the recording.
    fn worst_of_program(&self) -> Condition {
        match self.worst_of_operators() {
            Condition::Doubtful => Condition::Intact,
            worst => worst,
        }
    }

    /// The number of allocations that the recording of a GPU lacks, which are the first.
    fn earlier(&self) -> usize {
        self.gpu.map_or(0, |gpu| gpu.recording.earlier)
    }

    /// Rows of the device's memory events that the file has.
    fn recorded_rows(&self) -> &[u32] {
        self.rows.get(self.earlier()..).unwrap_or_default()
    }
}

/// Returns whether times are whole microseconds.
pub(crate) fn is_coarse(ops: &OpTable) -> bool {
    ops.start.iter().all(|start| start.get() % ROUNDING.get() == 0)
}
