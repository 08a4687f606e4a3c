//! The time of each estimate against the size of the job.

use super::plane::{Axis, HEIGHT, Plane, legend};
use super::{WIDTH, colors};
use xmem_eval::evaluation::Evaluation;

/// The figure; none where no time is known.
pub(super) fn draw(evaluation: &Evaluation) -> Option<String> {
    let colors = colors(evaluation);
    let mut dots = Vec::new();
    for run in &evaluation.runs {
        for (at, estimate) in run.estimates.iter().enumerate() {
            let seconds = estimate.as_ref().and_then(|estimate| estimate.runtime);
            let Some(seconds) = seconds.map(|time| time.as_secs_f64()).filter(|s| *s > 0.0) else {
                continue;
            };
            let gib = run.truth.peak.get() as f64 / (1_u64 << 30) as f64;
            let hint =
                format!("{}, {}: {seconds:.2} s", evaluation.estimators[at], run.configuration);
            dots.push(((gib, seconds), colors[at], hint));
        }
    }
    let largest = dots.iter().map(|((x, _), ..)| *x).fold(0.0, f64::max);
    let times = dots.iter().map(|((_, y), ..)| *y);
    let range =
        times.fold((f64::INFINITY, 0.0_f64), |(low, high), time| (low.min(time), high.max(time)));
    if dots.is_empty() {
        return None;
    }
    let title = "Time of an estimate against the peak of the job";
    let x = Axis::linear("peak", largest, " GiB");
    let mut plane = Plane::new(title, (x, Axis::logarithmic("time", range, " s")));
    for (at, color, hint) in &dots {
        plane.mark(*at, *color, hint);
    }
    legend(&mut plane.canvas, 52.0, &evaluation.estimators, &colors);
    Some(plane.canvas.finish(WIDTH, HEIGHT, title, "A dot for each estimate"))
}
