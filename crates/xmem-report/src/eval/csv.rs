//! The evaluation as rows: one for each estimate of each job.

use std::time::Duration;
use xmem_eval::evaluation::Evaluation;

/// Columns after those of the factors.
const COLUMNS: [&str; 14] = [
    "peak_bytes",
    "out_of_memory",
    "capacity_bytes",
    "estimator",
    "memory_bytes",
    "low_bytes",
    "high_bytes",
    "estimated_out_of_memory",
    "error",
    "signed_error",
    "second_out_of_memory",
    "second_error",
    "usable",
    "runtime_s",
];

/// The rows under their headings.
#[must_use]
pub fn evaluation(evaluation: &Evaluation) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let factors: Vec<&str> = evaluation.factors().into_iter().collect();
    let mut put = |row: Vec<String>| {
        writer.write_record(row).expect("rows have one length, and memory takes them");
    };
    put(factors.iter().chain(&COLUMNS).map(|&heading| heading.to_owned()).collect());
    for run in &evaluation.runs {
        for (name, estimate) in evaluation.estimators.iter().zip(&run.estimates) {
            let Some(estimate) = estimate else { continue };
            let outcome = estimate.outcome(&run.truth);
            let factor =
                |factor: &&str| run.configuration.value(factor).unwrap_or_default().to_owned();
            let mut row: Vec<String> = factors.iter().map(factor).collect();
            row.extend([
                run.truth.peak.get().to_string(),
                run.truth.out_of_memory.to_string(),
                run.truth.capacity.get().to_string(),
                name.clone(),
                estimate.memory.get().to_string(),
                text(estimate.range.map(|(low, _)| low.get())),
                text(estimate.range.map(|(_, high)| high.get())),
                estimate.out_of_memory.to_string(),
                text(outcome.error),
                text(outcome.signed_error),
                text(estimate.second.map(|second| second.out_of_memory)),
                text(estimate.second.and_then(|second| second.error)),
                text(outcome.usable),
                text(estimate.runtime.as_ref().map(Duration::as_secs_f64)),
            ]);
            put(row);
        }
    }
    let bytes = writer.into_inner().expect("memory takes everything");
    String::from_utf8(bytes).expect("cells are text")
}

fn text(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
