//! The changes that are tried: measures of the hook, and settings of PyTorch's allocator.

use super::args::FitArgs;
use crate::measures::{Change, SETTING, variables};
use std::num::NonZeroU32;
use xmem::analyzer::Role;
use xmem::{Answer, Bytes};
use xmem_recorder::{Changes, Measure, measures};
use xmem_studies::fit;

/// Options that are tried beside the usual one: less is recomputed, or more micro-batches need less.
const FURTHER: [(&str, &str); 2] =
    [("checkpointing", "checkpointing=2"), ("micro-batches", "micro-batches=4")];

/// Measures that take minutes to record, or that are a number of their own: tried where they are named.
const NAMED_ONLY: [&str; 2] = ["compile", "batch-size"];

/// The measures that divide a job over several GPUs, in the order in which they are tried: the GPUs of a machine.
const OVER_GPUS: [&str; 3] = ["fsdp=2", "fsdp=4", "fsdp=8"];

/// All changes that the arguments allow, those first that change least in the numbers of the job, and those last that need
/// several GPUs.
pub(super) fn of(args: &FitArgs) -> Vec<Change> {
    if let Some(named) = &args.measures {
        let mut all = named.0.clone();
        all.sort_by_key(gpus);
        return all;
    }
    let is_allowed = |measure: &Measure| {
        let is_of_one_gpu = measure.gpus().is_none();
        measure.info().changes <= args.allow
            && is_of_one_gpu
            && !NAMED_ONLY.contains(&measure.name())
    };
    let further = |usual: &Measure| {
        let other = FURTHER.iter().find(|(name, _)| *name == usual.name());
        other.and_then(|(_, text)| text.parse().ok())
    };
    let usual = measures().iter().map(Measure::of).collect::<Vec<_>>();
    let all = usual.into_iter().flat_map(|usual| [further(&usual), Some(usual)]).flatten();
    let mut all: Vec<Measure> = all.filter(is_allowed).collect();
    all.sort_by_key(|measure| measure.info().changes);
    let dividing = OVER_GPUS.iter().filter_map(|text| text.parse().ok());
    let measures = all.into_iter().chain(dividing).map(Change::Measure);
    [Change::ExpandableSegments].into_iter().chain(measures).collect()
}

/// The GPUs that a change divides a job over.
pub(super) fn gpus(change: &Change) -> Option<NonZeroU32> {
    change.measure().and_then(Measure::gpus)
}

/// The number of changes with which a job stays on one GPU, which come before the others.
pub(super) fn of_one_gpu(changes: &[Change]) -> usize {
    changes.iter().filter(|change| gpus(change).is_none()).count()
}

/// Some changes, without those that cannot be combined with another one.
pub(super) fn combinable(changes: &[Change], with: &Change, some: &[usize]) -> Vec<usize> {
    let is_combinable = |at: &&usize| {
        let change = &changes[**at];
        !excludes(change, with) && !excludes(with, change)
    };
    some.iter().filter(is_combinable).copied().collect()
}

/// What is said about a change.
pub(super) fn described(change: &Change) -> fit::Measure {
    let (title, changes, code) = match change {
        Change::Measure(measure) => (measure.title(), measure.info().changes, measure.code()),
        Change::ExpandableSegments => (
            "segments of the allocator that grow".to_owned(),
            Changes::Nothing,
            format!("export {}={SETTING}", variables()[0]),
        ),
    };
    let (name, changes) = (change.name(), changes.name());
    fit::Measure { name, title, changes, code, gpus: gpus(change), places: None }
}

fn excludes(one: &Change, other: &Change) -> bool {
    match (one, other) {
        (Change::Measure(one), Change::Measure(other)) => {
            one.name() == other.name() || one.info().excludes.contains(&other.name())
        }
        _ => false,
    }
}

/// The candidates of the search, for a job as it is.
pub(super) fn candidates(changes: &[Change], answer: &Answer) -> Vec<fit::Candidate> {
    let excluded = |one: &Change| {
        let others = changes.iter().enumerate().filter(|(_, other)| *other != one);
        others.filter(|(_, other)| excludes(one, other)).map(|(at, _)| at).collect()
    };
    let candidate = |change: &Change| fit::Candidate {
        excludes: excluded(change),
        expected: expected(change, answer),
    };
    changes.iter().map(candidate).collect()
}

/// What a change may save at the peak of a job, roughly: a share of the memory of the kind that it lowers.
fn expected(change: &Change, answer: &Answer) -> Bytes {
    let peak = &answer.memory.peak;
    let of = |roles: &[Role]| -> Bytes {
        let shares = answer.memory.by_role.iter().filter(|share| roles.contains(&share.role));
        shares.map(|share| share.bytes).sum()
    };
    let activations = of(&[Role::Activation, Role::Temporary, Role::Unknown]);
    let parameters = of(&[Role::Parameter]);
    let Change::Measure(measure) = change else {
        return peak.reserved.saturating_sub(peak.allocated);
    };
    let parts = measure.option().and_then(|option| option.parse().ok()).unwrap_or(1);
    let (of, percent) = match measure.name() {
        "checkpointing" => (activations, 80 / parts),
        "host-activations" => (activations, 75),
        "micro-batches" => (activations, 100 - 100 / parts),
        "bfloat16" => (activations + parameters, 45),
        "autocast" | "sdpa" | "chunked-cross-entropy" => (activations, 30),
        "lora" => (of(&[Role::Gradient, Role::OptimizerState]), 95),
        "host-parameters" => (of(&[Role::Parameter, Role::Gradient, Role::OptimizerState]), 80),
        "host-optimizer" | "adafactor" => (of(&[Role::OptimizerState]), 95),
        "adam8bit" => (of(&[Role::OptimizerState]), 70),
        "step-in-backward" => (of(&[Role::Gradient]), 80),
        _ => (parameters, 50),
    };
    Bytes(of.get() / 100 * percent)
}
