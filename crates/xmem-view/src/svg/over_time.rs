//! Memory over time: allocated bytes stacked by a property, the reserved bytes as a line, phases and iterations below.

use super::canvas::{self, Anchor, Canvas, Path};
use super::palette::Palette;
use super::{EDGE, WIDTH, legend_entry, scale};
use crate::Run;
use std::ops::Range;
use xmem::Bytes;
use xmem::analyzer::{Phase, ScriptPart};
use xmem::predict::{BlockKey, Stacked};
use xmem::types::IterationId;

/// The area of the plot: the space left of it for labels, right of it for the legend, and its height.
const LEFT: f64 = 76.0;
const LEGEND: f64 = 232.0;
const PLOT_HEIGHT: f64 = 280.0;
/// The strip of phases below the plot.
const STRIP: f64 = 16.0;
/// The points over time, about one for two pixels, and the groups that have a color.
const POINTS: usize = 320;
const GROUPS: usize = 9;

/// The places of moments and bytes.
struct Axes {
    top: f64,
    moments: Range<u32>,
    highest: Bytes,
}

impl Axes {
    const RIGHT: f64 = WIDTH - EDGE - LEGEND;

    fn x(&self, moment: u32) -> f64 {
        let (from, count) = (self.moments.start, self.moments.len().max(1));
        let part = f64::from(moment.saturating_sub(from)) / count as f64;
        LEFT + part.min(1.0) * (Self::RIGHT - LEFT)
    }

    fn y(&self, bytes: Bytes) -> f64 {
        let part = bytes.get() as f64 / self.highest.get().max(1) as f64;
        self.bottom() - part * PLOT_HEIGHT
    }

    fn bottom(&self) -> f64 {
        self.top + PLOT_HEIGHT
    }
}

/// Draws the picture below `top`, and returns where it ends.
pub(super) fn draw(run: &Run<'_>, by: BlockKey, top: f64, canvas: &mut Canvas) -> f64 {
    let timeline = run.timeline;
    let top = top + 14.0;
    if timeline.moments.is_empty() || timeline.within.is_empty() {
        canvas.text((EDGE, top + 12.0), Anchor::Start, "dim", "no GPU memory is requested");
        return top + 32.0;
    }
    let stacked = timeline.stacked(by, POINTS, GROUPS);
    let reserved = reserved(run, &stacked);
    let used = reserved.iter().copied().max().unwrap_or_default();
    let used = used.max(run.answer.memory.peak.allocated);
    let limit = limit(run).filter(|limit| limit.get() <= used.get().saturating_mul(5) / 4);
    let highest = used.max(limit.unwrap_or_default());
    let axes = Axes {
        top,
        moments: timeline.within.clone(),
        highest: highest + Bytes(highest.get() / 14),
    };
    grid(&axes, canvas);
    let colors = colors(by, &stacked);
    areas(by, &axes, &stacked, &colors, canvas);
    lines(&axes, &stacked, &reserved, canvas);
    if let Some(limit) = limit {
        let y = axes.y(limit);
        canvas.line((LEFT, y), (Axes::RIGHT, y), "limit");
        let label = format!("{limit} of device memory for the allocator");
        canvas.text((LEFT + 6.0, y - 5.0), Anchor::Start, "small alarm", &label);
    }
    peak(run, &axes, canvas);
    out_of_memory(run, &axes, canvas);
    phases(run, &axes, canvas);
    iterations(run, &axes, canvas);
    legend(run, by, &axes, &stacked, &colors, canvas);
    axes.bottom() + STRIP + 44.0
}

/// The reserved bytes around each point, the highest that there were.
fn reserved(run: &Run<'_>, stacked: &Stacked) -> Vec<Bytes> {
    let (moments, within) = (&stacked.moments, &run.timeline.within);
    (0..moments.len())
        .map(|point| {
            let from = if point == 0 { within.start } else { moments[point - 1] + 1 };
            let last = point + 1 == moments.len();
            let to = if last { within.end } else { moments[point] + 1 };
            let around = &run.timeline.moments[from as usize..to as usize];
            around.iter().map(|moment| moment.reserved).max().unwrap_or_default()
        })
        .collect()
}

/// The device memory that the context leaves to the allocator.
fn limit(run: &Run<'_>) -> Option<Bytes> {
    let peak = &run.answer.memory.peak;
    let context = peak.device.saturating_sub(peak.reserved);
    Some(run.answer.device().memory.saturating_sub(context)).filter(|limit| limit.get() > 0)
}

fn colors(by: BlockKey, stacked: &Stacked) -> Vec<Palette> {
    let names = stacked.groups.iter().map(|group| group.name.as_str());
    match by {
        BlockKey::Role => names.map(Palette::of_role_named).collect(),
        _ => Palette::of_groups(names),
    }
}

fn grid(axes: &Axes, canvas: &mut Canvas) {
    for (bytes, label) in scale::marks(axes.highest) {
        let y = axes.y(bytes);
        let class = if bytes == Bytes::ZERO { "axis" } else { "grid" };
        canvas.line((LEFT, y), (Axes::RIGHT, y), class);
        canvas.text((LEFT - 8.0, y + 4.0), Anchor::End, "small dim", &label);
    }
}

/// The groups, one above the other, as steps from point to point.
fn areas(by: BlockKey, axes: &Axes, stacked: &Stacked, colors: &[Palette], canvas: &mut Canvas) {
    let edges = edges(axes, stacked);
    let mut below = vec![Bytes::ZERO; stacked.moments.len()];
    for (group, color) in stacked.groups.iter().zip(colors) {
        let above: Vec<Bytes> =
            below.iter().zip(&group.bytes).map(|(below, bytes)| *below + *bytes).collect();
        let mut path = Path::start((edges[0], axes.y(above[0])));
        for (point, bytes) in above.iter().enumerate() {
            path.vertical(axes.y(*bytes));
            path.horizontal(edges[point + 1]);
        }
        for (point, bytes) in below.iter().enumerate().rev() {
            path.vertical(axes.y(*bytes));
            path.horizontal(edges[point]);
        }
        path.close();
        let most = group.bytes.iter().max().copied().unwrap_or_default();
        let hint = format!("{}: up to {most}", label(by, &group.name));
        canvas.path(&path, color.fill(), Some(&hint));
        below = above;
    }
}

/// The place of each point's left edge, and that of the right end.
fn edges(axes: &Axes, stacked: &Stacked) -> Vec<f64> {
    let mut edges: Vec<f64> = stacked.moments.iter().map(|&moment| axes.x(moment)).collect();
    if let Some(first) = edges.first_mut() {
        *first = LEFT;
    }
    edges.push(Axes::RIGHT);
    edges
}

/// The outline of allocated bytes, and reserved bytes.
fn lines(axes: &Axes, stacked: &Stacked, reserved: &[Bytes], canvas: &mut Canvas) {
    let edges = edges(axes, stacked);
    let mut steps = |class: &str, bytes: &dyn Fn(usize) -> Bytes| {
        let mut path = Path::start((LEFT, axes.y(bytes(0))));
        for point in 0..stacked.moments.len() {
            path.vertical(axes.y(bytes(point)));
            path.horizontal(edges[point + 1]);
        }
        canvas.path(&path, class, None);
    };
    steps("top", &|point| stacked.groups.iter().map(|group| group.bytes[point]).sum());
    steps("reserved", &|point| reserved[point]);
}

fn peak(run: &Run<'_>, axes: &Axes, canvas: &mut Canvas) {
    let (x, y) = (axes.x(run.timeline.peak), axes.y(run.answer.memory.peak.allocated));
    canvas.dot((x, y));
}

fn out_of_memory(run: &Run<'_>, axes: &Axes, canvas: &mut Canvas) {
    let Some(at) = run.timeline.out_of_memory.filter(|at| axes.moments.contains(at)) else {
        return;
    };
    let x = axes.x(at);
    canvas.line((x, axes.top), (x, axes.bottom()), "limit");
    let (anchor, x) = if x > (LEFT + Axes::RIGHT) / 2.0 {
        (Anchor::End, x - 6.0)
    } else {
        (Anchor::Start, x + 6.0)
    };
    canvas.text((x, axes.top + 9.0), anchor, "small alarm", "out of memory");
}

/// A strip with the phases, and their names where they have room.
fn phases(run: &Run<'_>, axes: &Axes, canvas: &mut Canvas) {
    let y = axes.bottom() + 4.0;
    for span in &run.timeline.phases {
        let moments =
            span.moments.start.max(axes.moments.start)..span.moments.end.min(axes.moments.end);
        if moments.is_empty() {
            continue;
        }
        let (from, to) = (axes.x(moments.start), axes.x(moments.end));
        let name = span.part.map_or_else(|| phase_name(span.phase), ScriptPart::name);
        let class = match span.phase {
            Phase::Forward | Phase::OptimizerStep => "panel",
            _ => "mid",
        };
        canvas.rect((from, y, to - from, STRIP), class, Some(name));
        if canvas::width_of(name, 11.0) + 6.0 <= to - from {
            let middle = f64::midpoint(from, to);
            canvas.text((middle, y + 12.0), Anchor::Middle, "small dim", name);
        }
    }
}

const fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Init => "init",
        Phase::Data => "data",
        Phase::Forward => "forward",
        Phase::Backward => "backward",
        Phase::ZeroGrad => "zero_grad",
        Phase::OptimizerStep => "optimizer",
    }
}

/// The iterations, with their numbers where they have room.
fn iterations(run: &Run<'_>, axes: &Axes, canvas: &mut Canvas) {
    let y = axes.bottom() + STRIP + 22.0;
    let mut spans: Vec<(Option<IterationId>, Range<u32>)> = Vec::new();
    for span in &run.timeline.phases {
        match spans.last_mut() {
            Some((last, moments)) if *last == span.iteration => moments.end = span.moments.end,
            _ => spans.push((span.iteration, span.moments.clone())),
        }
    }
    spans.retain_mut(|(_, moments)| {
        *moments = moments.start.max(axes.moments.start)..moments.end.min(axes.moments.end);
        moments.start < moments.end
    });
    let mut free_from = LEFT;
    for (iteration, moments) in &spans {
        let (from, to) = (axes.x(moments.start), axes.x(moments.end));
        if from > LEFT {
            canvas.line((from, axes.top), (from, axes.bottom() + 4.0 + STRIP), "grid");
        }
        let Some(iteration) = iteration else { continue };
        let long = format!("iteration {}", iteration.index());
        let short = iteration.index().to_string();
        let fits = |text: &str| canvas::width_of(text, 11.0) <= to - from - 4.0;
        let label = if fits(&long) { long } else { short };
        let half = canvas::width_of(&label, 11.0) / 2.0;
        let middle = f64::midpoint(from, to);
        if middle - half >= free_from {
            canvas.text((middle, y), Anchor::Middle, "small dim", &label);
            free_from = middle + half + 8.0;
        }
    }
    let requests = axes.moments.len();
    let caption = format!("{requests} allocations and frees, in order");
    canvas.text((Axes::RIGHT, y + 16.0), Anchor::End, "small dim", &caption);
}

/// The groups with their bytes at the peak, in the order in which they lie, and the lines.
fn legend(
    run: &Run<'_>,
    by: BlockKey,
    axes: &Axes,
    stacked: &Stacked,
    colors: &[Palette],
    canvas: &mut Canvas,
) {
    let (x, width) = (Axes::RIGHT + 24.0, LEGEND - 24.0);
    let mut y = axes.top + 8.0;
    canvas.dot((x + 5.0, y - 4.0));
    canvas.text((x + 16.0, y), Anchor::Start, "strong", "at the peak");
    canvas.text(
        (x + width, y),
        Anchor::End,
        "strong",
        &run.answer.memory.peak.allocated.to_string(),
    );
    let point = stacked.moments.iter().position(|&moment| moment == run.timeline.peak);
    for (group, color) in stacked.groups.iter().zip(colors).rev() {
        y += 20.0;
        let bytes = point.map(|point| group.bytes[point]).unwrap_or_default();
        let name = label(by, &group.name);
        legend_entry(canvas, (x, y), width, *color, (&name, &bytes.to_string()));
    }
    y += 30.0;
    canvas.line((x - 2.0, y - 4.0), (x + 12.0, y - 4.0), "top");
    canvas.text((x + 18.0, y), Anchor::Start, "dim", "allocated");
    y += 20.0;
    canvas.line((x - 2.0, y - 4.0), (x + 12.0, y - 4.0), "reserved");
    let reserved = match run.answer.memory.out_of_memory {
        Some(_) => "reserved, with room for all",
        None => "reserved",
    };
    canvas.text((x + 18.0, y), Anchor::Start, "dim", reserved);
    if run.answer.memory.out_of_memory.is_none() {
        let most = format!("up to {}", run.answer.memory.peak.reserved);
        canvas.text((x + width, y), Anchor::End, "dim", &most);
    }
}

/// The name of a group for readers.
fn label(by: BlockKey, name: &str) -> String {
    match by {
        _ if name.is_empty() => "[unknown]".to_owned(),
        BlockKey::Role => name.replace('_', " "),
        _ => name.to_owned(),
    }
}
