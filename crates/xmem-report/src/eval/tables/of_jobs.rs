//! Tables with a row for each job, of evaluations of a few: its peak and the estimates, in all and by class.

use super::{EvalTable, FAMILY};
use std::collections::BTreeSet;
use xmem::Bytes;
use xmem_eval::evaluation::{Configuration, EvaluatedRun, Evaluation};

/// The most jobs that are shown one by one.
const MAX_JOBS: usize = 40;

/// The tables; none of many jobs.
pub(super) fn tables(evaluation: &Evaluation) -> [Option<EvalTable>; 2] {
    let shown = evaluation.runs.len() <= MAX_JOBS;
    let runs = if shown { evaluation.runs.as_slice() } else { &[] };
    [each(evaluation, runs), by_class(evaluation, runs)]
}

/// A row for each job, with a cell for each estimate.
fn each(evaluation: &Evaluation, runs: &[EvaluatedRun]) -> Option<EvalTable> {
    let named = varying(evaluation);
    let rows = runs.iter().map(|run| {
        let truth = if run.truth.out_of_memory {
            "out of memory".to_owned()
        } else {
            run.truth.peak.to_string()
        };
        let estimates = run.estimates.iter().map(|estimate| {
            estimate.as_ref().map_or_else(String::new, |estimate| {
                let error = estimate.outcome(&run.truth).signed_error;
                match error {
                    Some(error) => format!("{} ({})", estimate.memory, signed(error)),
                    None if estimate.out_of_memory => "out of memory".to_owned(),
                    None => estimate.memory.to_string(),
                }
            })
        });
        [name(&run.configuration, &named), truth].into_iter().chain(estimates).collect()
    });
    let names = evaluation.estimators.iter().map(String::as_str);
    let columns: Vec<&str> = ["job", "peak"].into_iter().chain(names).collect();
    EvalTable::new("Each job", &columns, rows.collect())
}

/// A row for each class of each job whose peak is known by class, with a cell for each estimator that has classes.
fn by_class(evaluation: &Evaluation, runs: &[EvaluatedRun]) -> Option<EvalTable> {
    let named = varying(evaluation);
    let has_classes = |place: &usize| {
        let estimates = runs.iter().filter_map(|run| run.estimates[*place].as_ref());
        estimates.filter_map(|estimate| estimate.classes).next().is_some()
    };
    let places: Vec<usize> = (0..evaluation.estimators.len()).filter(has_classes).collect();
    let mut rows = Vec::new();
    for run in runs {
        let Some(truth) = run.truth.classes else { continue };
        for (class, (name_of_class, bytes)) in truth.named().into_iter().enumerate() {
            let estimates = places.iter().map(|&place| {
                let classes = run.estimates[place].as_ref().and_then(|estimate| estimate.classes);
                classes.map_or_else(String::new, |classes| {
                    let (_, estimated) = classes.named()[class];
                    let share = difference(estimated, bytes) / run.truth.peak.get() as f64;
                    format!("{estimated} ({})", signed(share))
                })
            });
            let first =
                [name(&run.configuration, &named), name_of_class.to_owned(), bytes.to_string()];
            rows.push(first.into_iter().chain(estimates).collect());
        }
    }
    let names = places.iter().map(|&place| evaluation.estimators[place].as_str());
    let columns: Vec<&str> = ["job", "class", "recorded"].into_iter().chain(names).collect();
    EvalTable::new("Each job by class, and differences in percent of its peak", &columns, rows)
}

/// The factors by which jobs differ.
fn varying(evaluation: &Evaluation) -> BTreeSet<&str> {
    let varies = |factor: &&str| evaluation.values(factor).len() > 1 && *factor != FAMILY;
    evaluation.factors().into_iter().filter(varies).collect()
}

/// The values of a job by which it differs from others; all of them, if there are no others.
fn name(configuration: &Configuration, varying: &BTreeSet<&str>) -> String {
    let values = configuration.iter().filter(|(factor, _)| varying.contains(factor));
    let values: Vec<&str> = values.map(|(_, value)| value).collect();
    match values.as_slice() {
        [] => configuration.to_string(),
        values => values.join(" "),
    }
}

fn difference(one: Bytes, other: Bytes) -> f64 {
    one.get() as f64 - other.get() as f64
}

/// A share with its sign. What rounds to zero has none.
fn signed(share: f64) -> String {
    let percent = (share * 1000.0).round() / 10.0;
    match percent {
        0.0 => "0.0 %".to_owned(),
        percent if percent < 0.0 => format!("−{:.1} %", -percent),
        percent => format!("+{percent:.1} %"),
    }
}
