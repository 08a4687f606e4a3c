//! What would help a job that does not fit: changes, each replayed, and those that `xmem fit` recorded and kept with the job.

use crate::check::{Outcome, Question, certainly_fits};
use xmem::analyzer::recording::TriedMeasures;
use xmem::orchestrator::{OptimizerImpl, ZeroGradPlace};
use xmem::predict::CapacitySearch;
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
    /// Several of the last three, of different kinds.
    Together(Vec<Self>),
    /// Measures of `xmem run --with`, which were recorded.
    Measures {
        /// Their names (`fused,checkpointing=2`).
        names: String,
        /// The GPUs that they divide the job over.
        gpus: u32,
    },
    /// A smaller value of a number in the command, which was recorded.
    Value {
        /// The name of the number.
        name: String,
        /// The largest value that fits.
        value: u64,
    },
}

impl Change {
    /// Changes of one kind do not go together.
    fn kind(&self) -> std::mem::Discriminant<Self> {
        std::mem::discriminant(self)
    }
}

/// A change that was replayed or recorded.
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

/// The most recorded measures that are listed.
const MAX_MEASURES: usize = 2;

/// The least saving that is worth a line, in thousandths of the need.
const WORTHWHILE: u64 = 10;

/// The changes that help: each that alone makes the job fit; else the fewest that do so together; else the two that save most. The device comes first.
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
        match together(&found, |change| replayed(job, question, outcome, change)) {
            Some(advice) => found = vec![advice],
            None => found.truncate(2),
        }
    }
    if let Some(device) = larger(job, question, outcome)? {
        found.insert(0, device);
    }
    if let Some(tried) = job.profile().recording().and_then(|recording| recording.tried.as_ref()) {
        found.extend(recorded(tried, &outcome.device, outcome.usable()));
    }
    Ok(found)
}

/// What was recorded with the job for this device, and fits into the memory of it that may be used.
fn recorded(tried: &TriedMeasures, device: &Device, usable: Bytes) -> Vec<Advice> {
    let measures = tried.fitting(&device.name, usable).take(MAX_MEASURES).map(|one| {
        let change = Change::Measures { names: one.names.clone(), gpus: one.gpus };
        Advice { change, need: one.needs, fits: true }
    });
    let value = tried.fitting_value(&device.name, usable).map(|one| {
        let change = Change::Value { name: one.name.clone(), value: one.value };
        Advice { change, need: one.needs, fits: true }
    });
    measures.chain(value).collect()
}

/// The fewest changes with which the job fits, each the best of its kind; none if it does not even with all of them. `found` have the
/// best ones first.
fn together(found: &[Advice], replayed: impl Fn(Change) -> Option<Advice>) -> Option<Advice> {
    let mut best: Vec<&Change> = Vec::new();
    for Advice { change, .. } in found {
        if best.iter().all(|other| other.kind() != change.kind()) {
            best.push(change);
        }
    }
    if best.len() < 2 {
        return None;
    }
    let fitting = |some: &[&Change]| {
        let all = some.iter().map(|&change| change.clone()).collect();
        replayed(Change::Together(all)).filter(|advice| advice.fits)
    };
    let all = fitting(&best)?;
    // Without the one that saves least.
    let fewer = (2..best.len()).find_map(|count| fitting(&best[..count]));
    Some(fewer.unwrap_or(all))
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
    let builder = changed(question, usable, std::slice::from_ref(&change));
    let answer = builder.capacity_search(CapacitySearch::Run).build().job(job).ok()?;
    let need = answer.memory.min_capacity?;
    Some(Advice { change, need, fits: certainly_fits(&answer) })
}

fn changed(question: &Question<'_>, device: Device, changes: &[Change]) -> EstimateBuilder {
    let changes = match changes {
        [Change::Together(all)] => all,
        one => one,
    };
    let mut allocator = question.allocator.clone();
    let mut on = device;
    for change in changes {
        match change {
            Change::Device(other) => on = (**other).clone(),
            Change::AllocConf(conf) => allocator.conf = Some(conf.clone()),
            _ => {}
        }
    }
    changes.iter().fold(question.builder(on, allocator), |builder, change| match change {
        Change::Optimizer(kind) => builder.optimizer(*kind),
        Change::ZeroGrad(place) => builder.zero_grad(*place),
        _ => builder,
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use xmem::analyzer::recording::{LargestValue, TriedMeasure};

    #[test]
    fn measures_recorded_for_the_device_are_listed_where_they_leave_the_margin_free() {
        let measure = |names: &str, needs: u64| TriedMeasure {
            names: names.to_owned(),
            gpus: 1,
            needs: Bytes(needs),
            step_percent: None,
        };
        let tried = TriedMeasures {
            device: "card".to_owned(),
            measures: vec![measure("fused", 95), measure("sdpa", 80), measure("checkpointing", 70)],
            largest: Some(LargestValue { name: "batch".to_owned(), value: 6, needs: Bytes(90) }),
        };
        let card = Device { name: "card".to_owned(), ..Device::custom(Bytes(100)) };
        let named = |device: &Device, usable: u64| -> Vec<String> {
            let all = recorded(&tried, device, Bytes(usable)).into_iter();
            all.map(|advice| match advice.change {
                Change::Measures { names, .. } => names,
                Change::Value { name, value } => format!("{name}={value}"),
                other => format!("{other:?}"),
            })
            .collect()
        };
        assert_eq!(named(&card, 100), ["fused", "sdpa", "batch=6"]);
        assert_eq!(named(&card, 85), ["sdpa", "checkpointing"]);
        assert!(named(&Device::custom(Bytes(100)), 100).is_empty(), "another device");
    }

    fn saves(change: Change, need: u64) -> Advice {
        Advice { change, need: Bytes(need), fits: false }
    }

    #[test]
    fn as_few_changes_as_are_enough_are_taken_together() {
        let conf = || Change::AllocConf("expandable_segments:True".to_owned());
        let found = [
            saves(conf(), 80),
            saves(Change::AllocConf("max_split_size_mb:128".to_owned()), 85),
            saves(Change::Optimizer(OptimizerImpl::Fused), 90),
            saves(Change::ZeroGrad(ZeroGradPlace::IterationStart), 95),
        ];
        // What all kinds save adds up: 65 with all three, 70 with two.
        let replayed = |room: u64| {
            move |change: Change| {
                let Change::Together(all) = &change else { return None };
                let need = if all.len() == 3 { 65 } else { 70 };
                Some(Advice { change, need: Bytes(need), fits: need <= room })
            }
        };
        let taken = |room| match together(&found, replayed(room))?.change {
            Change::Together(all) => Some(all),
            _ => None,
        };
        assert_eq!(taken(75), Some(vec![conf(), Change::Optimizer(OptimizerImpl::Fused)]));
        assert_eq!(taken(66).map(|all| all.len()), Some(3));
        assert_eq!(taken(60), None);
        assert_eq!(together(&found[..2], replayed(100)), None, "one kind");
    }
}
