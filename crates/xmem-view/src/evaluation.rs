//! Figures of an evaluation: errors as boxes, failures against errors, and times against sizes, after figures 7 to 9 of the
//! xMem paper (Shi, Pezaros and Elkhatib, Middleware 2025), alone, or in a page with the tables; and an estimate over time
//! beside a recording, after figure 6.

mod boxes;
mod curves;
mod page;
mod plane;
mod quadrants;
mod runtimes;

pub use curves::validation_figure;
pub use page::{PageTable, evaluation_page};

use crate::svg::palette::Palette;
use xmem_eval::evaluation::Evaluation;

/// The width of a figure, in CSS pixels.
const WIDTH: f64 = 960.0;

/// The factor by which boxes and dots are grouped: the model, or the factor with most values.
fn subject(evaluation: &Evaluation) -> &str {
    let factors = evaluation.factors();
    match factors.get("model") {
        Some(model) => model,
        None => factors.into_iter().max_by_key(|f| evaluation.values(f).len()).unwrap_or_default(),
    }
}

/// The figures as SVG documents, by name: `errors`, `quadrants` and `runtimes`. A figure without data is left out.
#[must_use]
pub fn evaluation_figures(evaluation: &Evaluation) -> Vec<(&'static str, String)> {
    let figures = [
        ("errors", boxes::draw(evaluation)),
        ("quadrants", quadrants::draw(evaluation)),
        ("runtimes", runtimes::draw(evaluation)),
    ];
    figures.into_iter().filter_map(|(name, figure)| Some((name, figure?))).collect()
}

/// The color of each estimator.
fn colors(evaluation: &Evaluation) -> Vec<Palette> {
    Palette::of_groups(evaluation.estimators.iter().map(String::as_str))
}
