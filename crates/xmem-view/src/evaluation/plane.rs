//! A plane with two axes, and marks on it.

use super::WIDTH;
use crate::svg::canvas::{Anchor, Canvas, Path};
use crate::svg::palette::Palette;

/// The edges of the plane within a figure, in pixels.
const LEFT: f64 = 64.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 96.0;
const BOTTOM: f64 = 460.0;

/// The height of the figure.
pub(super) const HEIGHT: f64 = 510.0;

/// The radius of a mark.
const RADIUS: f64 = 4.5;

/// An axis from zero, or of powers of ten.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) name: &'static str,
    /// Values with their labels, ascending.
    pub(super) marks: Vec<(f64, String)>,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) is_logarithmic: bool,
}

impl Axis {
    /// An axis from zero with round marks, at most six.
    pub(super) fn linear(name: &'static str, highest: f64, unit: &str) -> Self {
        let step = round_step(highest.max(f64::MIN_POSITIVE) / 5.0);
        let count = (highest / step).ceil().max(1.0);
        let marks = (0..=count as u32).map(|number| {
            let value = f64::from(number) * step;
            (value, format!("{}{unit}", (value * 100.0).round() / 100.0))
        });
        Self { name, marks: marks.collect(), low: 0.0, high: step * count, is_logarithmic: false }
    }

    /// An axis of powers of ten around positive values.
    pub(super) fn logarithmic(
        name: &'static str,
        (lowest, highest): (f64, f64),
        unit: &str,
    ) -> Self {
        let (low, high) = (lowest.log10().floor() as i32, highest.log10().ceil() as i32);
        let high = high.max(low + 1);
        let marks = (low..=high).map(|power| {
            let value = 10_f64.powi(power);
            (value, format!("{value}{unit}"))
        });
        Self {
            name,
            marks: marks.collect(),
            low: 10_f64.powi(low),
            high: 10_f64.powi(high),
            is_logarithmic: true,
        }
    }

    /// The place of a value between 0 and 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        let scale =
            |value: f64| if self.is_logarithmic { value.max(self.low).log10() } else { value };
        let (low, high) = (scale(self.low), scale(self.high));
        ((scale(value) - low) / (high - low)).clamp(0.0, 1.0)
    }
}

/// The least of 1, 2 and 5 times a power of ten that is not below a number.
fn round_step(least: f64) -> f64 {
    let decade = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * decade >= least * 0.999_999);
    factor.unwrap_or(10.0) * decade
}

/// The plane that is drawn on.
pub(super) struct Plane {
    pub(super) canvas: Canvas,
    x: Axis,
    y: Axis,
}

impl Plane {
    /// An empty plane below a title.
    pub(super) fn new(title: &str, (x, y): (Axis, Axis)) -> Self {
        let mut canvas = Canvas::new();
        canvas.text((20.0, 28.0), Anchor::Start, "title", title);
        for (value, label) in &y.marks {
            let height = BOTTOM - y.place(*value) * (BOTTOM - TOP);
            canvas.line((LEFT, height), (RIGHT, height), "grid");
            canvas.text((LEFT - 8.0, height + 4.0), Anchor::End, "dim", label);
        }
        for (value, label) in &x.marks {
            let at = LEFT + x.place(*value) * (RIGHT - LEFT);
            canvas.line((at, TOP), (at, BOTTOM), "grid");
            canvas.text((at, BOTTOM + 18.0), Anchor::Middle, "dim", label);
        }
        canvas.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis");
        canvas.line((LEFT, TOP), (LEFT, BOTTOM), "axis");
        canvas.text((RIGHT, BOTTOM + 38.0), Anchor::End, "dim", x.name);
        canvas.text((20.0, TOP - 14.0), Anchor::Start, "dim", y.name);
        Self { canvas, x, y }
    }

    /// A mark, with a text for the pointer.
    pub(super) fn mark(&mut self, (x, y): (f64, f64), color: Palette, hint: &str) {
        let (x, y) = self.at(x, y);
        self.canvas.circle((x, y), RADIUS, color.fill(), hint);
    }

    /// Values that each hold from their place to that of the next, the last one to `end`: a line, or the area beneath it.
    pub(super) fn steps(&mut self, steps: &[(f64, f64)], end: f64, is_area: bool, class: &str) {
        let Some(&(first, value)) = steps.first() else { return };
        let start = if is_area { 0.0 } else { value };
        let mut path = Path::start(self.at(first, start));
        for &(x, y) in steps {
            let (x, y) = self.at(x, y);
            path.horizontal(x);
            path.vertical(y);
        }
        path.horizontal(self.at(end, 0.0).0);
        if is_area {
            path.vertical(BOTTOM);
            path.close();
        }
        self.canvas.path(&path, class, None);
    }

    /// Lines through a point, along both axes.
    pub(super) fn cross(&mut self, (x, y): (f64, f64)) {
        let (x, y) = self.at(x, y);
        self.canvas.line((LEFT, y), (RIGHT, y), "axis");
        self.canvas.line((x, TOP), (x, BOTTOM), "axis");
    }

    /// A word in the plane.
    pub(super) fn word(&mut self, (x, y): (f64, f64), anchor: Anchor, word: &str) {
        let at = self.at(x, y);
        self.canvas.text(at, anchor, "dim strong", word);
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let across = LEFT + self.x.place(x) * (RIGHT - LEFT);
        (across, BOTTOM - self.y.place(y) * (BOTTOM - TOP))
    }
}

/// The names of estimators with their colors, in a row.
pub(super) fn legend(canvas: &mut Canvas, y: f64, names: &[String], colors: &[Palette]) {
    let mut x = 20.0;
    for (name, color) in names.iter().zip(colors) {
        canvas.rect((x, y - 9.0, 10.0, 10.0), color.fill(), None);
        canvas.text((x + 16.0, y), Anchor::Start, "ink", name);
        x += 16.0 + crate::svg::canvas::width_of(name, 12.0) + 18.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        let labels = |highest| -> Vec<String> {
            Axis::linear("", highest, " %").marks.into_iter().map(|(_, label)| label).collect()
        };
        assert_eq!(labels(23.0), ["0 %", "5 %", "10 %", "15 %", "20 %", "25 %"]);
        assert_eq!(labels(0.9), ["0 %", "0.2 %", "0.4 %", "0.6 %", "0.8 %", "1 %"]);
        assert_eq!(labels(0.0).len(), 2);
        let powers = Axis::logarithmic("", (0.2, 35.0), " s");
        let labels: Vec<&str> = powers.marks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, ["0.1 s", "1 s", "10 s", "100 s"]);
        assert!((powers.place(1.0) - 1.0 / 3.0).abs() < 1e-9);
    }
}
