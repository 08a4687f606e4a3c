//! Errors by model as boxes: quartiles and median, with lines to the least and the greatest.

use super::plane::{Axis, legend};
use super::{WIDTH, colors, subject};
use crate::svg::canvas::{self, Anchor, Canvas};
use xmem_eval::evaluation::{Configuration, Evaluation, Spread};

/// The place of the boxes, in pixels.
const LEFT: f64 = 190.0;
const RIGHT: f64 = WIDTH - 60.0;
const TOP: f64 = 84.0;

/// The height of one box with the space below it, and the space between models.
const ROW: f64 = 12.0;
const BETWEEN: f64 = 8.0;

/// Errors beyond this are drawn at the edge, in percent.
const HIGHEST: f64 = 100.0;

/// The figure; none without errors.
pub(super) fn draw(evaluation: &Evaluation) -> Option<String> {
    let factor = subject(evaluation);
    let colors = colors(evaluation);
    let groups: Vec<(&str, Vec<(usize, Spread)>)> = evaluation
        .values(factor)
        .into_keys()
        .map(|value| {
            let chosen = |one: &Configuration| one.value(factor) == Some(value);
            let of = |at| evaluation.summary(at, chosen).errors.map(|errors| (at, errors));
            (value, (0..evaluation.estimators.len()).filter_map(of).collect::<Vec<_>>())
        })
        .filter(|(_, boxes)| !boxes.is_empty())
        .collect();
    let all = || groups.iter().flat_map(|(_, boxes)| boxes).map(|(_, errors)| errors);
    let highest = all().map(|errors| errors.extremes.1 * 100.0).fold(0.0, f64::max);
    let axis = Axis::linear("error", highest.min(HIGHEST), " %");
    let rows: f64 = groups.iter().map(|(_, boxes)| boxes.len() as f64 * ROW + BETWEEN).sum();
    let bottom = TOP + rows;
    let mut canvas = Canvas::new();
    let title = format!("Error of estimates by {factor}");
    canvas.text((20.0, 28.0), Anchor::Start, "title", &title);
    legend(&mut canvas, 52.0, &evaluation.estimators, &colors);
    let at = |error: f64| LEFT + axis.place(error * 100.0) * (RIGHT - LEFT);
    for (value, label) in &axis.marks {
        canvas.line((at(value / 100.0), TOP), (at(value / 100.0), bottom), "grid");
        canvas.text((at(value / 100.0), bottom + 18.0), Anchor::Middle, "dim", label);
    }
    let mut y = TOP + BETWEEN / 2.0;
    for (value, boxes) in &groups {
        let middle = y + boxes.len() as f64 * ROW / 2.0 + 4.0;
        let name = canvas::fitted(value, LEFT - 30.0, 12.0);
        canvas.text((LEFT - 10.0, middle), Anchor::End, "ink", &name);
        for (estimator, errors) in boxes {
            one(
                &mut canvas,
                (y, &at),
                errors,
                (colors[*estimator].fill(), &evaluation.estimators[*estimator]),
            );
            y += ROW;
        }
        y += BETWEEN;
    }
    let description = "Boxes from the first to the third quartile with the median; lines to the least and the greatest error";
    (!groups.is_empty()).then(|| canvas.finish(WIDTH, bottom + 34.0, &title, description))
}

/// One box.
fn one(
    canvas: &mut Canvas,
    (y, at): (f64, &impl Fn(f64) -> f64),
    errors: &Spread,
    (fill, name): (&str, &str),
) {
    let (first, third) = errors.quartiles;
    let hint = format!(
        "{name}: median {:.1} %, quartiles {:.1} and {:.1} %, {:.1} to {:.1} %, {} runs",
        errors.median * 100.0,
        first * 100.0,
        third * 100.0,
        errors.extremes.0 * 100.0,
        errors.extremes.1 * 100.0,
        errors.count
    );
    let middle = y + ROW / 2.0;
    canvas.line((at(errors.extremes.0), middle), (at(errors.extremes.1), middle), "axis");
    let width = (at(third) - at(first)).max(2.0);
    canvas.rect((at(first), y + 1.5, width, ROW - 3.0), fill, Some(&hint));
    canvas.line((at(errors.median), y), (at(errors.median), y + ROW), "top");
}
