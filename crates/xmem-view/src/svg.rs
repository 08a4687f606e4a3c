//! Pictures for a README or a pull request: memory over time, and the memory at the peak. They follow the color scheme of
//! the reader, need no font and run no script.
//!
//! Left to others: elements and their style ([`canvas`]), the two pictures ([`over_time`], [`treemap`]).

pub(crate) mod canvas;
mod over_time;
pub(crate) mod palette;
mod scale;
mod squares;
mod treemap;

use crate::Run;
use canvas::{Anchor, Canvas};
use palette::Palette;
use xmem::Verdict;
use xmem::predict::BlockKey;

/// The pictures in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SvgView {
    /// Memory over time.
    Timeline,
    /// The memory at the peak, as rectangles.
    Treemap,
    /// One above the other.
    Both,
}

/// Width of the picture, in CSS pixels, and the empty edge on both sides.
const WIDTH: f64 = 960.0;
const EDGE: f64 = 20.0;
/// Height of the title with the line of figures below it.
const HEAD: f64 = 60.0;

/// The run as an SVG document. `by` is the property by which memory is told apart; by default the role over time, and
/// the module at the peak.
#[must_use]
pub fn svg(run: &Run<'_>, view: SvgView, by: Option<BlockKey>) -> String {
    let over_time = by.unwrap_or(BlockKey::Role);
    let at_peak = by.unwrap_or(BlockKey::Module);
    let mut canvas = Canvas::new();
    head(run, &mut canvas);
    let mut y = HEAD;
    if view != SvgView::Treemap {
        y = over_time::draw(run, over_time, y, &mut canvas);
    }
    if view != SvgView::Timeline {
        y = treemap::draw(run, at_peak, y, &mut canvas);
    }
    canvas.finish(WIDTH, y, &title(run), &figures(run))
}

fn title(run: &Run<'_>) -> String {
    format!("{} on {}", run.name, run.answer.device().title)
}

/// The figures in a sentence.
fn figures(run: &Run<'_>) -> String {
    let (peak, device) = (&run.answer.memory.peak, run.answer.device());
    let said = run.answer.decision().0.words().to_lowercase();
    let verdict = match run.answer.verdict {
        Verdict::Fits | Verdict::DoesNotFit => said.as_str(),
        Verdict::DamagedFits => "fits, by a damaged recording",
        Verdict::DamagedDoesNotFit => "does not fit, by a damaged recording",
        Verdict::Withheld => "verdict withheld",
    };
    format!(
        "Predicted peak: {} allocated, {} reserved, {} of {} with the context: {verdict}",
        peak.allocated, peak.reserved, peak.device, device.memory
    )
}

fn head(run: &Run<'_>, canvas: &mut Canvas) {
    let room = WIDTH - 2.0 * EDGE;
    canvas.text((EDGE, 28.0), Anchor::Start, "title", &canvas::fitted(&title(run), room, 16.0));
    canvas.text((EDGE, 47.0), Anchor::Start, "dim", &figures(run));
}

/// A swatch with its name, and what is written after it at the right end of `width`.
fn legend_entry(
    canvas: &mut Canvas,
    (x, y): (f64, f64),
    width: f64,
    color: Palette,
    (name, value): (&str, &str),
) {
    canvas.rect((x, y - 9.0, 10.0, 10.0), color.fill(), None);
    let room = width - 16.0 - canvas::width_of(value, 12.0) - 6.0;
    canvas.text((x + 16.0, y), Anchor::Start, "ink", &canvas::fitted(name, room, 12.0));
    canvas.text((x + width, y), Anchor::End, "dim", value);
}
