//! The memory of an estimate and of a recording over the same requests, after figure 6 of the xMem paper.

use super::WIDTH;
use super::plane::{Axis, HEIGHT, Plane};
use crate::svg::canvas::{Anchor, Canvas, width_of};
use crate::svg::palette::Palette;
use xmem::Bytes;
use xmem_eval::{CurvePoint, Validation};

/// Columns of the figure; each shows the most of its requests.
const COLUMNS: usize = 800;

/// One of the curves.
struct Curve {
    name: &'static str,
    class: &'static str,
    is_area: bool,
    bytes: fn(&CurvePoint) -> Bytes,
}

/// In the order in which they are drawn: what was recorded as areas, the estimate as lines above them.
fn curves() -> [Curve; 4] {
    let allocated = Palette::of_groups(["allocated"].into_iter())[0].fill();
    let curve = |name, class, is_area, bytes| Curve { name, class, is_area, bytes };
    [
        curve("recorded reserved", "mid", true, |point| point.reserved.recorded),
        curve("recorded allocated", allocated, true, |point| point.allocated.recorded),
        curve("estimated reserved", "reserved", false, |point| point.reserved.estimated),
        curve("estimated allocated", "top", false, |point| point.allocated.estimated),
    ]
}

/// The figure of a comparison, as an SVG document. Without a request that is the same on both sides, it has no curves.
#[must_use]
pub fn validation_figure(validation: &Validation, subject: &str) -> String {
    let points = &validation.points;
    let highest = points.iter().flat_map(|point| {
        [point.allocated, point.reserved].map(|judged| judged.estimated.max(judged.recorded))
    });
    let highest = gib(highest.max().unwrap_or_default());
    let title = format!("Estimated and recorded memory: {subject}");
    let x = Axis::linear("request that is the same on both sides", points.len() as f64, "");
    let mut plane = Plane::new(&title, (x, Axis::linear("memory", highest, " GiB")));
    let column = points.len().div_ceil(COLUMNS).max(1);
    for curve in curves() {
        let most = points.chunks(column).map(|chunk| chunk.iter().map(curve.bytes).max());
        let steps: Vec<(f64, f64)> = (0..)
            .zip(most)
            .map(|(at, most): (u32, _)| {
                (f64::from(at) * column as f64, gib(most.unwrap_or_default()))
            })
            .collect();
        plane.steps(&steps, points.len() as f64, curve.is_area, curve.class);
    }
    legend(&mut plane.canvas);
    let peak = validation.peaks.reserved;
    let text = format!(
        "Peak reserved: {} estimated, {} recorded ({:+.2} %)",
        peak.estimated,
        peak.recorded,
        peak.relative() * 100.0
    );
    plane.canvas.text((WIDTH - 24.0, 82.0), Anchor::End, "dim", &text);
    plane.canvas.finish(WIDTH, HEIGHT, &title, &text)
}

fn gib(bytes: Bytes) -> f64 {
    bytes.get() as f64 / (1_u64 << 30) as f64
}

fn legend(canvas: &mut Canvas) {
    let mut x = 20.0;
    for curve in curves() {
        match curve.is_area {
            true => canvas.rect((x, 43.0, 14.0, 10.0), curve.class, None),
            false => canvas.line((x, 48.0), (x + 14.0, 48.0), curve.class),
        }
        canvas.text((x + 20.0, 52.0), Anchor::Start, "ink", curve.name);
        x += 20.0 + width_of(curve.name, 12.0) + 18.0;
    }
}
