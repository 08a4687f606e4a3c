//! `xmem.eval/1`.

use super::tables;
use serde::Serialize;
use std::collections::BTreeMap;
use xmem::Bytes;
use xmem_eval::evaluation::{
    Configuration, EstimatedRun, EvaluatedRun, Evaluation, EvaluationFailure, FactorEffect,
    MemoryByClass, Share, Spread, Summary,
};

/// Estimators judged by many runs, by the definitions of the xMem paper.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EvalDocument<'a> {
    schema: &'static str,
    /// What is evaluated, in words.
    title: &'a str,
    /// Where the memory of the runs is known from: `readings`, `virtual-gpu`, `gpu` or `snapshots`.
    truth: &'static str,
    /// Jobs that were evaluated.
    runs: usize,
    /// Jobs from which they were drawn.
    of: u64,
    /// By estimator, by family (`cnn`, `transformer`) and for `all`.
    estimators: BTreeMap<&'a str, BTreeMap<&'a str, SummaryDto>>,
    /// By factor, by its value, by estimator.
    by: BTreeMap<&'a str, BTreeMap<&'a str, BTreeMap<&'a str, SummaryDto>>>,
    /// By estimator, the effect of each factor on the error, by a one-way analysis of variance.
    effects: BTreeMap<&'a str, Vec<EffectDto>>,
    /// Each job.
    jobs: Vec<JobDto<'a>>,
    /// Jobs without a run, or without one of the estimates.
    failures: Vec<FailureDto<'a>>,
}

/// The figures of an estimator over runs.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SummaryDto {
    /// Runs with an estimate.
    runs: usize,
    /// The median of the errors: |estimate − peak| / peak of the first round, for runs that did not run out of memory.
    median_error: Option<f64>,
    /// The interval of the median at 95 %, by a bootstrap.
    median_error_interval: Option<(f64, f64)>,
    /// The quartiles of the errors.
    error_quartiles: Option<(f64, f64)>,
    /// The 90th percentile of the errors.
    p90_error: Option<f64>,
    /// The greatest error.
    max_error: Option<f64>,
    /// The mean error.
    mean_error: Option<f64>,
    /// The median of the errors with their signs.
    median_signed_error: Option<f64>,
    /// The median relative error of the paper's equation 3: of the second round where there is one, else of the first.
    mre: Option<f64>,
    /// The share of runs whose peak lies in the range of the estimator, of those with a range.
    in_range: Option<f64>,
    /// The probability of estimation failure: the share of estimates that could not have been used as they are.
    pef: Option<f64>,
    /// Runs of which that is known.
    pef_runs: usize,
    /// The memory conservation potential, in GiB: the mean memory of the device that estimates leave to other jobs; an
    /// estimate that fails costs nothing.
    mcp: Option<f64>,
    /// The same if an estimate that fails costs what was estimated.
    mcp_deducting_estimate: Option<f64>,
    /// The same if an estimate that fails costs the memory of the device.
    mcp_deducting_capacity: Option<f64>,
    /// Second rounds that were made.
    second_rounds: usize,
    /// Second rounds that ran.
    second_rounds_ran: usize,
    /// Runs that ran out of memory.
    out_of_memory: usize,
    /// Those of which the estimator said so.
    out_of_memory_seen: usize,
    /// Runs that did not run out of memory, although the estimator said so.
    false_alarms: usize,
    /// The mean time of an estimate, in seconds.
    mean_runtime_s: Option<f64>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EffectDto {
    /// The factor.
    factor: String,
    /// Degrees of freedom between the values of the factor.
    degrees_between: usize,
    /// Degrees of freedom within them.
    degrees_within: usize,
    /// The variance between over that within; null if there is none within.
    f: Option<f64>,
    /// The probability of such an F without an effect.
    p: f64,
    /// The share of the variance between the values.
    eta_squared: f64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JobDto<'a> {
    /// Values by factor.
    factors: BTreeMap<&'a str, &'a str>,
    /// The peak.
    peak_bytes: u64,
    /// Whether it ran out of memory.
    out_of_memory: bool,
    /// The memory of the device.
    capacity_bytes: u64,
    /// The peak by class, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<ClassesDto>,
    /// By estimator.
    estimates: BTreeMap<&'a str, EstimateDto>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EstimateDto {
    /// The estimate.
    memory_bytes: u64,
    /// The least that the peak may be, as the estimator says.
    low_bytes: Option<u64>,
    /// The most that the peak may be.
    high_bytes: Option<u64>,
    /// Whether the job runs out of memory, as the estimator says.
    out_of_memory: bool,
    /// The error of the first round, with its sign.
    signed_error: Option<f64>,
    /// Whether the job ran out of memory with only as much as was estimated.
    second_out_of_memory: Option<bool>,
    /// The error against the second round.
    second_error: Option<f64>,
    /// Whether the estimate could have been used as it is.
    usable: Option<bool>,
    /// The time of the estimate, in seconds.
    runtime_s: Option<f64>,
    /// The estimate by class, where the estimator says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<ClassesDto>,
}

/// Reserved memory by the classes of DNNMem's breakdown.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ClassesDto {
    /// Bytes that the program requested and has not freed.
    live_bytes: u64,
    /// Bytes by which blocks are larger.
    rounding_bytes: u64,
    /// Reserved memory that holds no block.
    reservation_bytes: u64,
}

impl ClassesDto {
    const fn new(classes: MemoryByClass) -> Self {
        Self {
            live_bytes: classes.live.get(),
            rounding_bytes: classes.rounding.get(),
            reservation_bytes: classes.reservation.get(),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FailureDto<'a> {
    /// Values by factor.
    factors: BTreeMap<&'a str, &'a str>,
    /// The estimator; null if the job has no run.
    estimator: Option<&'a str>,
    /// Why.
    reason: &'a str,
}

impl<'a> EvalDocument<'a> {
    /// The document of an evaluation.
    #[must_use]
    pub fn new(evaluation: &'a Evaluation) -> Self {
        let names = || evaluation.estimators.iter().map(String::as_str).enumerate();
        let factors: Vec<&str> = evaluation.factors().into_iter().collect();
        let with_all = |place: usize| {
            let families = evaluation.values(tables::FAMILY).into_keys();
            families
                .chain([tables::ALL])
                .map(|group| (group, SummaryDto::new(&tables::of_group(evaluation, place, group))))
                .collect()
        };
        let of_value = |factor: &'a str, value: &'a str| {
            let chosen = move |one: &Configuration| one.value(factor) == Some(value);
            names()
                .map(|(at, name)| (name, SummaryDto::new(&evaluation.summary(at, chosen))))
                .collect()
        };
        let by_factor = |factor: &'a str| {
            let values = evaluation.values(factor).into_keys();
            values.map(|value| (value, of_value(factor, value))).collect()
        };
        Self {
            schema: "xmem.eval/1",
            title: &evaluation.title,
            truth: evaluation.truth.name(),
            runs: evaluation.runs.len(),
            of: evaluation.of,
            estimators: names().map(|(at, name)| (name, with_all(at))).collect(),
            by: tables::factors(evaluation)
                .into_iter()
                .map(|factor| (factor, by_factor(factor)))
                .collect(),
            effects: names()
                .map(|(at, name)| {
                    let effects = evaluation.effects(at, &factors);
                    (name, effects.into_iter().map(EffectDto::new).collect())
                })
                .collect(),
            jobs: evaluation.runs.iter().map(|run| JobDto::new(run, evaluation)).collect(),
            failures: evaluation.failures.iter().map(FailureDto::new).collect(),
        }
    }
}

fn factors(configuration: &Configuration) -> BTreeMap<&str, &str> {
    configuration.iter().collect()
}

impl SummaryDto {
    fn new(summary: &Summary) -> Self {
        let errors = summary.errors;
        let gib = |bytes: f64| bytes / (1_u64 << 30) as f64;
        let Share { count: ran, of: made } = summary.second_runs;
        Self {
            runs: summary.runs,
            median_error: errors.map(|errors| errors.median),
            median_error_interval: errors.map(|errors| errors.median_interval),
            error_quartiles: errors.map(|errors| errors.quartiles),
            p90_error: errors.map(|errors| errors.p90),
            max_error: errors.map(|errors| errors.extremes.1),
            mean_error: errors.map(|errors| errors.mean),
            median_signed_error: summary.signed_errors.map(|errors| errors.median),
            mre: summary.second_errors.map(|errors: Spread| errors.median),
            in_range: summary.in_range.value(),
            pef: summary.failures.value(),
            pef_runs: summary.failures.of,
            mcp: summary.conserved.map(|conserved| gib(conserved.without_penalty)),
            mcp_deducting_estimate: summary.conserved.map(|c| gib(c.deducting_estimate)),
            mcp_deducting_capacity: summary.conserved.map(|c| gib(c.deducting_capacity)),
            second_rounds: made,
            second_rounds_ran: ran,
            out_of_memory: summary.out_of_memory.of_failed,
            out_of_memory_seen: summary.out_of_memory.recognized,
            false_alarms: summary.out_of_memory.false_alarms,
            mean_runtime_s: summary.runtimes.map(|times| times.mean),
        }
    }
}

impl EffectDto {
    fn new(effect: FactorEffect) -> Self {
        let FactorEffect { factor, degrees: (degrees_between, degrees_within), f, p, eta_squared } =
            effect;
        let f = f.is_finite().then_some(f);
        Self { factor, degrees_between, degrees_within, f, p, eta_squared }
    }
}

impl<'a> JobDto<'a> {
    fn new(run: &'a EvaluatedRun, evaluation: &'a Evaluation) -> Self {
        let estimates = evaluation.estimators.iter().zip(&run.estimates);
        Self {
            factors: factors(&run.configuration),
            peak_bytes: run.truth.peak.get(),
            out_of_memory: run.truth.out_of_memory,
            capacity_bytes: run.truth.capacity.get(),
            classes: run.truth.classes.map(ClassesDto::new),
            estimates: estimates
                .filter_map(|(name, estimate)| {
                    Some((name.as_str(), EstimateDto::new(estimate.as_ref()?, run)))
                })
                .collect(),
        }
    }
}

impl EstimateDto {
    fn new(estimate: &EstimatedRun, run: &EvaluatedRun) -> Self {
        let outcome = estimate.outcome(&run.truth);
        Self {
            memory_bytes: estimate.memory.get(),
            low_bytes: estimate.range.map(|(low, _)| Bytes::get(low)),
            high_bytes: estimate.range.map(|(_, high)| Bytes::get(high)),
            out_of_memory: estimate.out_of_memory,
            signed_error: outcome.signed_error,
            second_out_of_memory: estimate.second.map(|second| second.out_of_memory),
            second_error: estimate.second.and_then(|second| second.error),
            usable: outcome.usable,
            runtime_s: estimate.runtime.map(|runtime| runtime.as_secs_f64()),
            classes: estimate.classes.map(ClassesDto::new),
        }
    }
}

impl<'a> FailureDto<'a> {
    fn new(failure: &'a EvaluationFailure) -> Self {
        Self {
            factors: factors(&failure.configuration),
            estimator: failure.estimator.as_deref(),
            reason: &failure.reason,
        }
    }
}
