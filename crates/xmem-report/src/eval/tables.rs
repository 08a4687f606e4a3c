//! The tables of an evaluation, as cells of text.

mod of_jobs;

use xmem_eval::evaluation::{
    Configuration, Evaluation, FactorEffect, Share, Spread, Summary, TruthSource,
};

/// The group of all runs.
pub(crate) const ALL: &str = "all";

/// The factor by which figures are grouped first.
pub(crate) const FAMILY: &str = "family";

/// A table.
#[derive(Clone, Debug)]
pub struct EvalTable {
    /// The heading of the table; empty for the first one.
    pub heading: String,
    /// The headings of its columns.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

impl EvalTable {
    fn new(heading: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Option<Self> {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        (!rows.is_empty()).then(|| Self { heading: heading.to_owned(), columns, rows })
    }
}

/// The tables of an evaluation: estimators; second rounds and times; median errors by factor; effects of factors; of a few
/// jobs, each one.
#[must_use]
pub fn tables(evaluation: &Evaluation) -> Vec<EvalTable> {
    const ESTIMATORS: [&str; 10] = [
        "estimator",
        "jobs",
        "runs",
        "median error",
        "95 % interval",
        "90th percentile",
        "PEF",
        "OOM seen",
        "false alarms",
        "MCP",
    ];
    const ROUNDS: [&str; 7] = [
        "estimator",
        "peaks in its range",
        "second rounds that ran",
        "median error of both rounds",
        "mean time",
        "MCP, estimate deducted",
        "MCP, device deducted",
    ];
    const EFFECTS: [&str; 5] = ["estimator", "factor", "F", "p", "η²"];
    let names = || evaluation.estimators.iter().map(String::as_str);
    let by_factor = factors(evaluation).into_iter().map(|factor| {
        let columns: Vec<&str> = [factor, "runs"].into_iter().chain(names()).collect();
        let heading = format!("Median error by {factor}");
        EvalTable::new(&heading, &columns, by_value(evaluation, factor))
    });
    let effects_heading = "Effects on the error (one-way analysis of variance)";
    [
        EvalTable::new("", &ESTIMATORS, estimators(evaluation)),
        EvalTable::new("Ranges, second rounds and times", &ROUNDS, rounds(evaluation)),
    ]
    .into_iter()
    .chain(by_factor)
    .chain([EvalTable::new(effects_heading, &EFFECTS, effects(evaluation))])
    .chain(of_jobs::tables(evaluation))
    .flatten()
    .collect()
}

/// The groups of the table of estimators: each family if there are several, and all.
fn groups(evaluation: &Evaluation) -> Vec<&str> {
    let families = evaluation.values(FAMILY).into_keys();
    let mut groups: Vec<&str> = families.filter(|&family| family != ALL).collect();
    if groups.len() < 2 {
        groups.clear();
    }
    groups.push(ALL);
    groups
}

/// The figures of an estimator over a group.
pub(crate) fn of_group(evaluation: &Evaluation, estimator: usize, group: &str) -> Summary {
    evaluation.summary(estimator, |configuration: &Configuration| {
        group == ALL || configuration.value(FAMILY) == Some(group)
    })
}

/// A row for each group of each estimator that has runs in it.
fn estimators(evaluation: &Evaluation) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (place, name) in evaluation.estimators.iter().enumerate() {
        for group in groups(evaluation) {
            let summary = of_group(evaluation, place, group);
            if summary.runs == 0 {
                continue;
            }
            let errors = summary.errors;
            let oom = summary.out_of_memory;
            rows.push(vec![
                name.clone(),
                group.to_owned(),
                summary.runs.to_string(),
                errors.map_or_else(String::new, |errors| percent(errors.median)),
                errors.map_or_else(String::new, interval),
                errors.map_or_else(String::new, |errors| percent(errors.p90)),
                summary.failures.value().map_or_else(String::new, percent),
                of(Share { count: oom.recognized, of: oom.of_failed }),
                of(Share { count: oom.false_alarms, of: oom.of_ended }),
                summary
                    .conserved
                    .map_or_else(String::new, |conserved| gib(conserved.without_penalty)),
            ]);
        }
    }
    rows
}

/// Factors by which tables are worth their space: several values, and several runs of some.
pub(crate) fn factors(evaluation: &Evaluation) -> Vec<&str> {
    let shown = |factor: &&str| {
        let values = evaluation.values(factor);
        *factor != FAMILY && values.len() > 1 && values.len() <= MAX_VALUES
    };
    evaluation.factors().into_iter().filter(shown).collect()
}

/// The most values of a factor that has a table.
const MAX_VALUES: usize = 40;

/// The median errors by the values of a factor: the value, its runs, and a cell for each estimator.
fn by_value(evaluation: &Evaluation, factor: &str) -> Vec<Vec<String>> {
    let mut values: Vec<(&str, usize)> = evaluation.values(factor).into_iter().collect();
    values.sort_by_key(|(value, _)| (value.parse::<u64>().ok(), *value));
    values
        .into_iter()
        .map(|(value, count)| {
            let cells = (0..evaluation.estimators.len()).map(|estimator| {
                let chosen = |one: &Configuration| one.value(factor) == Some(value);
                let errors = evaluation.summary(estimator, chosen).errors;
                errors.map_or_else(String::new, |errors| percent(errors.median))
            });
            [value.to_owned(), count.to_string()].into_iter().chain(cells).collect()
        })
        .collect()
}

/// The effects of factors on errors.
fn effects(evaluation: &Evaluation) -> Vec<Vec<String>> {
    let factors: Vec<&str> = evaluation.factors().into_iter().collect();
    let mut rows = Vec::new();
    for (place, name) in evaluation.estimators.iter().enumerate() {
        for effect in evaluation.effects(place, &factors) {
            let FactorEffect { factor, degrees: (between, within), f, p, eta_squared } = effect;
            let p = if p < 1e-4 { "< 0.0001".to_owned() } else { format!("{p:.4}") };
            rows.push(vec![
                name.clone(),
                factor,
                format!("F({between}, {within}) = {f:.2}"),
                p,
                format!("{eta_squared:.3}"),
            ]);
        }
    }
    rows
}

/// The second rounds and times of each estimator, over all runs.
fn rounds(evaluation: &Evaluation) -> Vec<Vec<String>> {
    let rows = evaluation.estimators.iter().enumerate().map(|(place, name)| {
        let summary = of_group(evaluation, place, ALL);
        let conserved = summary.conserved;
        vec![
            name.clone(),
            of(summary.in_range),
            of(summary.second_runs),
            summary.second_errors.map_or_else(String::new, |errors| percent(errors.median)),
            summary.runtimes.map_or_else(String::new, |times| seconds(times.mean)),
            conserved.map_or_else(String::new, |c| gib(c.deducting_estimate)),
            conserved.map_or_else(String::new, |c| gib(c.deducting_capacity)),
        ]
    });
    rows.collect()
}

/// How many jobs it is about, and where their memory is known from.
#[must_use]
pub fn subject(evaluation: &Evaluation) -> String {
    let source = match evaluation.truth {
        TruthSource::Readings => "their memory was measured elsewhere",
        TruthSource::VirtualGpu => {
            "their memory is that of PyTorch's CUDA build on a virtual GPU, where nothing is computed"
        }
        TruthSource::Gpu => "their memory was measured on a GPU of this machine",
        TruthSource::Snapshots => "their memory is that of memory snapshots",
    };
    format!("{} of {} jobs; {source}", evaluation.runs.len(), evaluation.of)
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn interval(errors: Spread) -> String {
    let (low, high) = errors.median_interval;
    format!("{:.1}–{:.1} %", low * 100.0, high * 100.0)
}

fn of(share: Share) -> String {
    match share.of {
        0 => String::new(),
        of => format!("{} of {of}", share.count),
    }
}

fn gib(bytes: f64) -> String {
    format!("{:.2} GiB", bytes / (1_u64 << 30) as f64)
}

fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1000.0),
        s => format!("{s:.1} s"),
    }
}
