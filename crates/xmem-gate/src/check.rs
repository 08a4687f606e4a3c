//! From a job and the devices on which it may start to a decision.

use crate::advice::{self, Advice};
use crate::margin::Margin;
use xmem::predict::{AllocatorSettings, CapacitySearch};
use xmem::{Answer, Bytes, Decision, Device, EstimateBuilder, EstimateError, Job, Need, TightBy};

/// What is asked about a job.
pub struct Question<'a> {
    /// The devices on which the job may be started, the smallest first; at least one.
    pub devices: &'a [&'a Device],
    /// Memory that is to stay free.
    pub margin: Margin,
    /// The devices of the site, the smallest first, among which a smaller or a larger one is looked for;
    /// empty if they are not known.
    pub site: &'a [&'a Device],
    /// The allocator's settings. Those of `estimate` do not count.
    pub allocator: AllocatorSettings,
    /// The estimate for a device, as to everything else.
    pub estimate: &'a dyn Fn(Device) -> EstimateBuilder,
}

/// What is decided about a job, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The decision.
    pub decision: Decision,
    /// Why it is tight, if it is.
    pub tight_by: Option<TightBy>,
    /// The device that it is about: the smallest on which the job may be started.
    pub device: Device,
    /// Memory of the device that is to stay free.
    pub margin: Bytes,
    /// Device memory that the job needs, context included: what it takes if it leaves the margin free,
    /// else the smallest device memory in which it runs. Zero without a verdict.
    pub need: Bytes,
    /// Other devices on which it may be started, and whether it fits there; the smaller one first.
    pub elsewhere: Vec<(Device, bool)>,
    /// The smallest device of the site that holds it and has less memory, if it is over-requested.
    pub smaller: Option<Device>,
    /// What would help: changes that were replayed.
    pub advice: Vec<Advice>,
    /// The answer of the replay on the device, with its whole memory; of every block that is alive at the
    /// peak.
    pub answer: Answer,
}

impl Outcome {
    /// The memory of the device without the margin.
    #[must_use]
    pub fn usable(&self) -> Bytes {
        self.device.memory - self.margin
    }
}

/// Decides about a job.
///
/// # Errors
/// If the job lacks the selected iterations, or the allocator's settings do not go with its PyTorch release.
///
/// # Panics
/// If there is no device.
pub fn check(job: &Job, question: &Question<'_>) -> Result<Outcome, EstimateError> {
    let (device, others) = question.devices.split_first().expect("a question has a device");
    let mut outcome = on_device(job, question, device)?;
    if !matches!(outcome.decision, Decision::DoesNotFit | Decision::Tight) {
        return Ok(outcome);
    }
    for other in others {
        let fits = question.fits(job, other)?;
        outcome.elsewhere.push(((*other).clone(), fits));
    }
    if outcome.decision == Decision::DoesNotFit && outcome.elsewhere.iter().any(|(_, fits)| *fits) {
        outcome.decision = Decision::Tight;
        outcome.tight_by = Some(TightBy::Placement);
    }
    outcome.advice = advice::advise(job, question, &outcome)?;
    Ok(outcome)
}

fn on_device(
    job: &Job,
    question: &Question<'_>,
    device: &Device,
) -> Result<Outcome, EstimateError> {
    let margin = question.margin.of(device.memory);
    let search = CapacitySearch::WhereShort;
    let mut answer = question.answer(job, device, question.allocator.clone(), search)?;
    let (mut decision, mut tight_by) = answer.decision();
    if decision == Decision::Fits && answer.memory.peak.device > device.memory - margin {
        // What the job needs may be less than what it takes.
        let search = CapacitySearch::Run;
        answer = question.answer(job, device, question.allocator.clone(), search)?;
        let least = answer.memory.min_capacity.unwrap_or(answer.memory.peak.device);
        answer.need = Need { least, ..answer.need };
        if !question.fits(job, device)? {
            (decision, tight_by) = (Decision::Tight, Some(TightBy::Margin));
        }
    }
    let need = if decision == Decision::NoVerdict { Bytes::ZERO } else { answer.need.least };
    let mut outcome = Outcome {
        decision,
        tight_by,
        device: device.clone(),
        margin,
        need,
        elsewhere: Vec::new(),
        smaller: None,
        advice: Vec::new(),
        answer,
    };
    if decision == Decision::Fits {
        let smaller = question.site.iter().filter(|other| other.memory < device.memory);
        if let Some(found) = question.smallest(job, smaller, &outcome.answer)? {
            outcome.smaller = Some(found.clone());
            outcome.decision = Decision::OverRequested;
        }
    }
    Ok(outcome)
}

impl Question<'_> {
    /// The answer for a device.
    pub(crate) fn answer(
        &self,
        job: &Job,
        device: &Device,
        allocator: AllocatorSettings,
        search: CapacitySearch,
    ) -> Result<Answer, EstimateError> {
        self.builder(device.clone(), allocator).capacity_search(search).build().job(job)
    }

    /// An estimate that keeps every block of the peak.
    pub(crate) fn builder(&self, device: Device, allocator: AllocatorSettings) -> EstimateBuilder {
        (self.estimate)(device).allocator(allocator).largest(usize::MAX)
    }

    /// Returns whether the job certainly runs on a device and leaves the margin free.
    pub(crate) fn fits(&self, job: &Job, device: &Device) -> Result<bool, EstimateError> {
        let device = self.without_margin(device);
        let answer = self.answer(job, &device, self.allocator.clone(), CapacitySearch::Skip)?;
        Ok(certainly_fits(&answer))
    }

    /// The device with the memory that the job may use.
    pub(crate) fn without_margin(&self, device: &Device) -> Device {
        let memory = device.memory - self.margin.of(device.memory);
        Device { memory, ..device.clone() }
    }

    /// The first of the devices, smallest first, on which the job certainly runs; `answer` is that of
    /// another device.
    pub(crate) fn smallest<'d>(
        &self,
        job: &Job,
        devices: impl IntoIterator<Item = &'d &'d Device>,
        answer: &Answer,
    ) -> Result<Option<&'d Device>, EstimateError> {
        // Tensors need their memory on any device; convolutions may need less workspace on another.
        let workspace = answer
            .memory
            .by_role
            .iter()
            .find(|share| share.role == xmem::analyzer::Role::Workspace);
        let least =
            answer.memory.peak.allocated - workspace.map_or(Bytes::ZERO, |share| share.bytes);
        for device in devices {
            if device.available() >= least && self.fits(job, device)? {
                return Ok(Some(device));
            }
        }
        Ok(None)
    }
}

/// Returns whether the job runs over the whole range of an answer.
pub(crate) fn certainly_fits(answer: &Answer) -> bool {
    answer.decision().0 == Decision::Fits
}
