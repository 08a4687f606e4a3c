//! The median error of each estimator for each model against the probability that its estimate fails.

use super::plane::{Axis, HEIGHT, Plane, legend};
use super::{WIDTH, colors, subject};
use crate::svg::canvas::Anchor;
use xmem_eval::evaluation::{Configuration, Evaluation};

/// Where the paper's quadrants meet, in percent on both axes.
const LIMIT: f64 = 20.0;

/// The figure; none where it is not known which estimates fail.
pub(super) fn draw(evaluation: &Evaluation) -> Option<String> {
    let factor = subject(evaluation);
    let colors = colors(evaluation);
    let mut dots = Vec::new();
    for value in evaluation.values(factor).into_keys() {
        for (at, name) in evaluation.estimators.iter().enumerate() {
            let chosen = |one: &Configuration| one.value(factor) == Some(value);
            let summary = evaluation.summary(at, chosen);
            if let (Some(failures), Some(errors)) = (summary.failures.value(), summary.errors) {
                let (x, y) = (failures * 100.0, errors.median * 100.0);
                let hint = format!(
                    "{name}, {value}: {x:.0} % fail, median error {y:.1} %, {} runs",
                    summary.runs
                );
                dots.push(((x, y), colors[at], hint));
            }
        }
    }
    let highest = dots.iter().map(|((_, y), ..)| *y).fold(LIMIT * 1.5, f64::max);
    let x = Axis::linear("estimates that fail (PEF)", 100.0, " %");
    let y = Axis::linear("median error", highest, " %");
    let title = format!("Error against failures, by {factor}");
    let top = y.high;
    let mut plane = Plane::new(&title, (x, y));
    plane.cross((LIMIT, LIMIT));
    plane.word((LIMIT / 2.0, LIMIT * 0.9), Anchor::Middle, "optimal");
    plane.word((60.0, LIMIT * 0.9), Anchor::Middle, "underestimates");
    plane.word((LIMIT / 2.0, top * 0.97), Anchor::Middle, "overestimates");
    plane.word((60.0, top * 0.97), Anchor::Middle, "worst");
    for (at, color, hint) in &dots {
        plane.mark(*at, *color, hint);
    }
    legend(&mut plane.canvas, 52.0, &evaluation.estimators, &colors);
    let description = "Dots at the lower left are estimates that are close and rarely fail";
    (!dots.is_empty()).then(|| plane.canvas.finish(WIDTH, HEIGHT, &title, description))
}
