//! The reasons to doubt an answer: what the replay of a recording cannot show, or shows of another job than the one that will
//! run.
//!
//! A [`Doubt`] is one file: a name, and a function that looks at what the answer rests on ([`Subject`]) and changes what is
//! said ([`Assessment`]). It may report a note, extend the range, lower the confidence, or withhold the verdict; it never
//! raises a confidence, and never changes a peak. Registration is a line in [`DOUBTS`]. The range of sizes that are not known
//! is not a doubt: the job is replayed at its ends (`range`).

mod assumed_values;
mod autocast;
mod compiled;
mod condition;
mod convolution_splits;
mod distributed;
mod from_graph;
mod full_device;
mod gpu_timing;
mod growth;
mod incomplete_history;
mod one_length;
mod other_orders;
mod other_replay;
mod ran_out_of_memory;
mod recorded_peaks;
mod script_goes_on;
mod starts_late;
mod unknown_branches;
mod without_shapes;

use crate::memory::PredictedMemory;
use crate::prediction::Prediction;
use crate::range::{Bounds, Confidence, UncertaintyEffect};
use std::ops::Range;
use xmem_analyzer::Profile;
use xmem_analyzer::integrity::Integrity;
use xmem_convolutions::ConvolutionAnswers;
use xmem_devices::Device;
use xmem_orchestrator::{ChosenWhatIf, StreamCompletion, Target};
use xmem_types::{Bytes, Diagnostics, IterationId, WithheldReason};

/// A reason to doubt an answer.
#[derive(Clone, Copy, Debug)]
pub struct Doubt {
    /// Its name, that of its file.
    pub name: &'static str,
    assess: fn(&Subject<'_>, &mut Assessment),
}

/// All doubts, in the order in which they are assessed. The order of notes in the answer is theirs.
pub const DOUBTS: [Doubt; 20] = [
    // What the recording itself says comes first: it may find that the recording is damaged, on which the last one rests.
    recorded_peaks::DOUBT,
    one_length::DOUBT,
    incomplete_history::DOUBT,
    ran_out_of_memory::DOUBT,
    // Other peaks of the same job, before those of another one.
    assumed_values::DOUBT,
    gpu_timing::DOUBT,
    other_orders::DOUBT,
    unknown_branches::DOUBT,
    // What the GPU decides, and was asked without one.
    convolution_splits::DOUBT,
    // What runs on the GPU in another way than it was recorded. The range around the eager job is around its peaks, not around
    // the range that others have extended, so that these may stand in any order.
    compiled::DOUBT,
    autocast::DOUBT,
    distributed::DOUBT,
    // What the recording does not show, or what was never run.
    from_graph::DOUBT,
    starts_late::DOUBT,
    other_replay::DOUBT,
    without_shapes::DOUBT,
    // Iterations beyond the recorded ones: what a longer run needs is not less certain than the recorded ones are.
    growth::DOUBT,
    full_device::DOUBT,
    script_goes_on::DOUBT,
    // A damaged recording makes all of the above doubtful, and none of it certain.
    condition::DOUBT,
];

/// What an answer rests on.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The recorded job, as it was replayed.
    pub prediction: &'a Prediction<'a>,
    /// GPU, PyTorch version and what-ifs. What others than the allocator take from the GPU is part of its context
    /// ([`DeviceBudget`](crate::DeviceBudget)).
    pub target: &'a Target,
    /// The plans of its convolutions.
    pub convolutions: &'a ConvolutionAnswers,
    /// The iterations that the answer is about.
    pub iterations: &'a Range<IterationId>,
}

/// What is said about a job, as far as it has been assessed.
#[derive(Clone, Debug)]
pub struct Assessment {
    /// The predicted memory. Doubts extend its range.
    pub memory: PredictedMemory,
    /// The integrity of the recording.
    pub integrity: Integrity,
    /// Reasons for withholding the verdict, beyond those of [`notes`](Self::notes).
    pub withheld: Vec<WithheldReason>,
    /// What was odd so far.
    pub notes: Diagnostics,
}

impl Assessment {
    /// Assesses predicted memory by all doubts. `notes` are those of the recording and of the prediction.
    #[must_use]
    pub fn new(subject: &Subject<'_>, mut memory: PredictedMemory, mut notes: Diagnostics) -> Self {
        notes.extend(std::mem::take(&mut memory.diagnostics));
        let integrity = subject.profile().integrity.clone();
        let mut assessment = Self { memory, integrity, withheld: Vec::new(), notes };
        for doubt in &DOUBTS {
            (doubt.assess)(subject, &mut assessment);
        }
        assessment
    }

    /// Lowers the confidence to this one, if it is higher.
    fn lower_to(&mut self, confidence: Confidence) {
        let known = &mut self.memory.range.confidence;
        *known = confidence.min(*known);
    }

    /// Extends the range of the peaks by an uncertainty that was not replayed: at its ends, peaks of allocated and of
    /// reserved memory are these. Lowers the confidence if the verdict is another there, and else to `inside`.
    fn extend(
        &mut self,
        name: &'static str,
        (allocated, reserved): (Bounds, Bounds),
        device: &Device,
        inside: Confidence,
    ) {
        let effect = UncertaintyEffect { name, blocks: None, allocated, reserved };
        let other_verdict = self.memory.extend(effect, device.available_bounds());
        self.lower_to(other_verdict.unwrap_or(inside));
    }

    /// Extends the range to other peaks of allocated and of reserved memory.
    fn extend_to(&mut self, name: &'static str, others: &[(Bytes, Bytes)], device: &Device) {
        let around = |peak: Bytes, others: &mut dyn Iterator<Item = Bytes>| {
            others.fold(Bounds { low: peak, high: peak }, |whole, other| Bounds {
                low: whole.low.min(other),
                high: whole.high.max(other),
            })
        };
        let peak = &self.memory.peak;
        let allocated = around(peak.allocated, &mut others.iter().map(|peaks| peaks.0));
        let reserved = around(peak.reserved, &mut others.iter().map(|peaks| peaks.1));
        self.extend(name, (allocated, reserved), device, Confidence::Certain);
    }
}

impl<'a> Subject<'a> {
    fn profile(&self) -> &'a Profile {
        self.prediction.profile()
    }

    /// The device, with what others take in its context.
    fn device(&self) -> &'a Device {
        &self.target.device
    }

    /// Returns whether the job is replayed as it was recorded, and not as another one by a what-if.
    fn is_as_recorded(&self) -> bool {
        self.target.completion == StreamCompletion::AtOnce
            && !self.target.what_ifs.iter().any(ChosenWhatIf::is_other_job)
    }

    /// Returns whether the answer is about all recorded iterations.
    fn has_all_iterations(&self) -> bool {
        let count = self.profile().iterations.len();
        *self.iterations == (IterationId(0)..IterationId::new(count))
    }
}

#[cfg(test)]
mod tests {
    use super::DOUBTS;

    #[test]
    fn a_doubt_has_the_name_of_its_file_and_stands_once_in_the_list() {
        let source = include_str!("doubts.rs");
        let files: Vec<&str> = source
            .lines()
            .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
            .collect();
        let mut names: Vec<&str> = DOUBTS.iter().map(|doubt| doubt.name).collect();
        names.sort_unstable();
        assert_eq!(names, files);
    }
}
