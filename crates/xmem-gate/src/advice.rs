//! What would help a job that does not fit: changes, each replayed.

use crate::check::{Outcome, Question, certainly_fits};
use xmem::orchestrator::{OptimizerImpl, ZeroGradPlace};
use xmem::predict::{AllocatorSettings, CapacitySearch};
use xmem::{Bytes, Device, EstimateBuilder, EstimateError, Job};

/// A change of the request or of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Another device.
    Device(Box<Device>),
    /// All options of `PYTORCH_CUDA_ALLOC_CONF`, the recorded ones included.
    AllocConf(String),
    /// Another implementation of the optimizer.
    Optimizer(OptimizerImpl),
    /// Gradients are cleared earlier.
    ZeroGrad(ZeroGradPlace),
}

/// A change that was replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The change.
    pub change: Change,
    /// The device memory that the job then needs, context included.
    pub need: Bytes,
    /// True if the job then certainly runs and leaves the margin free.
    pub fits: bool,
}

/// Options of the allocator that may save memory, the most likely first.
const OPTIONS: [(&str, &str); 3] = [
    ("expandable_segments", "expandable_segments:True"),
    ("max_split_size_mb", "max_split_size_mb:128"),
    ("garbage_collection_threshold", "garbage_collection_threshold:0.8"),
];

/// The least saving that is worth a line, in thousandths of the need.
const WORTHWHILE: u64 = 10;

/// The changes that help: those that alone make the job fit, and where there is none, those that save
/// most. The device comes first.
pub(crate) fn advise(
    job: &Job,
    question: &Question<'_>,
    outcome: &Outcome,
) -> Result<Vec<Advice>, EstimateError> {
    let mut found: Vec<Advice> = changes(outcome)
        .filter_map(|change| replayed(job, question, outcome, change))
        .filter(|advice| advice.fits || saves(advice, outcome))
        .collect();
    if found.iter().any(|advice| advice.fits) {
        found.retain(|advice| advice.fits);
    } else {
        found.sort_by_key(|advice| advice.need);
        found.truncate(2);
    }
    if let Some(device) = larger(job, question, outcome)? {
        found.insert(0, device);
    }
    Ok(found)
}

fn saves(advice: &Advice, outcome: &Outcome) -> bool {
    let saved = outcome.need.saturating_sub(advice.need);
    saved.get() > outcome.need.get() / 1000 * WORTHWHILE
}

fn changes(outcome: &Outcome) -> impl Iterator<Item = Change> {
    let conf = outcome.answer.setup.conf.clone();
    let options = OPTIONS.into_iter().filter_map(move |(key, option)| {
        let joined = if conf.is_empty() { option.to_owned() } else { format!("{conf},{option}") };
        (!conf.contains(key)).then_some(Change::AllocConf(joined))
    });
    let optimizers = [OptimizerImpl::Fused, OptimizerImpl::ForLoop].map(Change::Optimizer);
    let places =
        [ZeroGradPlace::BeforeBackward, ZeroGradPlace::IterationStart].map(Change::ZeroGrad);
    options.chain(optimizers).chain(places)
}

/// What a change brings; none if it does not go with the job.
fn replayed(
    job: &Job,
    question: &Question<'_>,
    outcome: &Outcome,
    change: Change,
) -> Option<Advice> {
    let usable = question.without_margin(&outcome.device);
    let builder = changed(question, usable, &change);
    let answer = builder.capacity_search(CapacitySearch::Run).build().job(job).ok()?;
    let need = answer.memory.min_capacity?;
    Some(Advice { change, need, fits: certainly_fits(&answer) })
}

fn changed(question: &Question<'_>, device: Device, change: &Change) -> EstimateBuilder {
    let allocator = question.allocator.clone();
    match change {
        Change::Device(device) => question.builder((**device).clone(), allocator),
        Change::AllocConf(conf) => {
            let allocator = AllocatorSettings { conf: Some(conf.clone()), ..allocator };
            question.builder(device, allocator)
        }
        Change::Optimizer(kind) => question.builder(device, allocator).optimizer(*kind),
        Change::ZeroGrad(place) => question.builder(device, allocator).zero_grad(*place),
    }
}

/// The smallest other device that holds the job: of the site, or of the built-in ones if the site's are
/// not known.
fn larger(
    job: &Job,
    question: &Question<'_>,
    outcome: &Outcome,
) -> Result<Option<Advice>, EstimateError> {
    let known: Vec<&Device> =
        if question.site.is_empty() { xmem::devices::cards() } else { question.site.to_vec() };
    let others = known.iter().filter(|device| device.memory > outcome.device.memory);
    let found = question.smallest(job, others, &outcome.answer)?;
    Ok(found.map(|device| Advice {
        change: Change::Device(Box::new(device.clone())),
        need: outcome.need,
        fits: true,
    }))
}
