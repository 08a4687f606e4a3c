//! Heap maps as SVG: the best plan and the allocator side by side, time from left to right, addresses from the bottom
//! up, and below them the part of the free memory that requests cannot use.

use std::fmt::Write;
use xmem::Bytes;
use xmem::analyzer::Role;
use xmem::predict::AllocatorKind;
use xmem::types::printable;
use xmem_studies::planning::{FragmentationSeries, PlanAnswer};

/// The rectangles of a panel, at most: the largest on the screen. An image of a long job stays a file that a browser
/// shows at once.
const MAX_RECTANGLES: usize = 6000;

/// The rectangles of a panel that have a tooltip: the largest.
const MAX_TOOLTIPS: usize = 300;

const PANEL_WIDTH: f64 = 560.0;
const PANEL_HEIGHT: f64 = 380.0;
const MARGIN: f64 = 16.0;
const TOP: f64 = 44.0;
const LEGEND: f64 = 58.0;

/// The strip below a panel: a row for each class of requests, and a column for each span of time.
const STRIP_GAP: f64 = 24.0;
const STRIP_HEIGHT: f64 = 80.0;
const STRIP_SPANS: usize = 128;

/// The shades of a cell of the strip.
const SHADES: f64 = 8.0;

/// Classes of the style, with their colors on a light and on a dark background: those of the roles in the order of
/// [`Role::ALL`], and that of blocks without a role.
const COLORS: [(&str, &str); 10] = [
    ("#3b6fb6", "#6fa0e6"),
    ("#7f9cc7", "#4d6a96"),
    ("#c0504d", "#e88581"),
    ("#7d5ba6", "#ad8fd6"),
    ("#4f9d69", "#7cc794"),
    ("#c79a2d", "#e3bf62"),
    ("#8c8c8c", "#a8a8a8"),
    ("#2a9d9d", "#62cccc"),
    ("#b38867", "#d1aa8b"),
    ("#6b8f71", "#93b89a"),
];

/// A block on the map.
#[derive(Clone, Copy)]
struct Rectangle {
    block: usize,
    start: u32,
    end: u32,
    offset: Bytes,
    size: Bytes,
}

/// A part of memory with a border, over some time.
struct Frame {
    start: u32,
    end: u32,
    offset: Bytes,
    size: Bytes,
}

struct Panel<'a> {
    title: String,
    series: Option<&'a FragmentationSeries>,
    rectangles: Vec<Rectangle>,
    frames: Vec<Frame>,
    /// The blocks that are not drawn.
    left_out: usize,
}

/// The heap map of an answer. Of a panel with more than 6,000 blocks the largest rectangles are drawn, and the image
/// says how many are left out.
#[must_use]
pub fn heap_map(answer: &PlanAnswer) -> String {
    let blocks = answer.blocks.list.blocks();
    let first = blocks.iter().map(|block| block.start).min().unwrap_or(0);
    let last = blocks.iter().map(|block| block.end).max().unwrap_or(1).max(first + 1);
    let mut panels = Vec::new();
    panels.extend(planned(answer));
    panels.push(actual(answer, last));
    let highest = panels.iter().flat_map(|panel| {
        let blocks = panel.rectangles.iter().map(|block| block.offset + block.size);
        blocks.chain(panel.frames.iter().map(|frame| frame.offset + frame.size))
    });
    let highest = highest.max().unwrap_or(Bytes(1)).max(Bytes(1));
    let scale = Scale { first, ticks: f64::from(last - first), bytes: highest.get() as f64 };
    let width = MARGIN + panels.len() as f64 * (PANEL_WIDTH + MARGIN);
    let height = TOP + PANEL_HEIGHT + STRIP_GAP + STRIP_HEIGHT + LEGEND;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n<style>\n{}</style>\n\
         <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
        styles()
    );
    for (at, panel) in panels.iter_mut().enumerate() {
        let left = MARGIN + at as f64 * (PANEL_WIDTH + MARGIN);
        panel.keep_largest(&scale);
        panel.draw(&mut svg, left, &scale, answer);
    }
    legend(&mut svg, answer);
    svg += "</svg>\n";
    svg
}

/// From ticks and bytes to the panel.
struct Scale {
    first: u32,
    ticks: f64,
    bytes: f64,
}

impl Scale {
    fn x(&self, tick: u32) -> f64 {
        f64::from(tick.saturating_sub(self.first)) / self.ticks * PANEL_WIDTH
    }

    fn y(&self, offset: Bytes) -> f64 {
        PANEL_HEIGHT - offset.get() as f64 / self.bytes * PANEL_HEIGHT
    }

    fn area(&self, block: &Rectangle) -> f64 {
        (self.x(block.end) - self.x(block.start)) * (block.size.get() as f64 / self.bytes)
    }
}

fn planned(answer: &PlanAnswer) -> Option<Panel<'_>> {
    let best = answer.best()?;
    let blocks = answer.blocks.list.blocks().iter().zip(best.plan.offsets()).enumerate();
    let rectangles = blocks.map(|(block, (of, &offset))| Rectangle {
        block,
        start: of.start,
        end: of.end,
        offset,
        size: of.size,
    });
    Some(Panel {
        title: format!("planned by {}: {}", best.planner, best.plan.peak()),
        series: answer.fragmentation.as_ref(),
        rectangles: rectangles.collect(),
        frames: Vec::new(),
        left_out: 0,
    })
}

/// The segments of the allocator, one above the other in the order in which they were obtained.
fn actual(answer: &PlanAnswer, last: u32) -> Panel<'_> {
    let run = &answer.pytorch;
    let (mut base, mut bases) = (Bytes::ZERO, Vec::new());
    let mut frames = Vec::new();
    for segment in &run.segments {
        let end = segment.end.unwrap_or(last);
        frames.push(Frame { start: segment.start, end, offset: base, size: segment.size });
        bases.push(base);
        base += segment.size;
    }
    let blocks = answer.blocks.list.blocks().iter().zip(&run.placements).enumerate();
    let rectangles = blocks.filter_map(|(block, (of, place))| {
        let place = (*place)?;
        let offset = bases[place.segment] + place.offset;
        Some(Rectangle { block, start: of.start, end: of.end, offset, size: of.size })
    });
    let name = match run.kind {
        AllocatorKind::Native => "PyTorch's caching allocator",
        other => other.name(),
    };
    Panel {
        title: format!("{name}: {} reserved", run.reserved),
        series: Some(&run.fragmentation),
        rectangles: rectangles.collect(),
        frames,
        left_out: 0,
    }
}

impl Panel<'_> {
    fn keep_largest(&mut self, scale: &Scale) {
        let all = self.rectangles.len();
        self.rectangles
            .sort_by(|a, b| scale.area(b).total_cmp(&scale.area(a)).then(a.block.cmp(&b.block)));
        self.rectangles.truncate(MAX_RECTANGLES);
        self.left_out = all - self.rectangles.len();
    }

    fn draw(&self, svg: &mut String, left: f64, scale: &Scale, answer: &PlanAnswer) {
        let title = escaped(&self.title);
        let bound = answer.lower_bound();
        text(svg, (left, 20.0), "title", &title);
        if self.left_out > 0 {
            let note = format!("{} smaller blocks are not drawn", self.left_out);
            text(svg, (left, 36.0), "note", &note);
        }
        let _ = writeln!(svg, "<g transform=\"translate({left} {TOP})\">");
        let _ = writeln!(
            svg,
            "<rect class=\"panel\" width=\"{PANEL_WIDTH}\" height=\"{PANEL_HEIGHT}\"/>"
        );
        for (at, block) in self.rectangles.iter().enumerate() {
            let class = class(answer.blocks.facts[block.block].role);
            let shape = rectangle(scale, (block.start, block.end), block.offset, block.size);
            let _ = match at < MAX_TOOLTIPS {
                true => {
                    let words = escaped(&tooltip(answer, block));
                    writeln!(
                        svg,
                        "<rect class=\"b c{class}\" {shape}><title>{words}</title></rect>"
                    )
                }
                false => writeln!(svg, "<rect class=\"c{class}\" {shape}/>"),
            };
        }
        for frame in &self.frames {
            let shape = rectangle(scale, (frame.start, frame.end), frame.offset, frame.size);
            let _ = writeln!(svg, "<rect class=\"segment\" {shape}/>");
        }
        let y = scale.y(bound);
        let _ = writeln!(
            svg,
            "<line class=\"bound\" x1=\"0\" x2=\"{PANEL_WIDTH}\" y1=\"{y:.2}\" y2=\"{y:.2}\"/>"
        );
        self.strip(svg, scale, answer);
        svg.push_str("</g>\n");
    }

    /// The unusable free memory by class of requests, the smallest at the bottom: the darker, the larger its part.
    fn strip(&self, svg: &mut String, scale: &Scale, answer: &PlanAnswer) {
        let Some(series) = self.series else { return };
        let top = PANEL_HEIGHT + STRIP_GAP;
        let classes = FragmentationSeries::classes(&answer.blocks);
        let of_class = |class: u32| Bytes(1 << class);
        let (least, most) = (of_class(*classes.start()), of_class(*classes.end()));
        let words =
            format!("free memory that requests of {least} (bottom) to {most} (top) cannot use");
        text(svg, (0.0, top - 6.0), "note", &words);
        let _ = writeln!(
            svg,
            "<rect class=\"panel\" y=\"{top}\" width=\"{PANEL_WIDTH}\" height=\"{STRIP_HEIGHT}\"/>"
        );
        let starts: Vec<f64> = series
            .spans(STRIP_SPANS)
            .map(|span| scale.x(span[0].tick))
            .chain([PANEL_WIDTH])
            .collect();
        let height = STRIP_HEIGHT / classes.clone().count() as f64;
        for (row, class) in classes.rev().enumerate() {
            let values = series.over_time(STRIP_SPANS, |free| free.unusable(of_class(class)));
            let shades: Vec<f64> =
                values.iter().map(|value| (value * SHADES).round() / SHADES).collect();
            let mut at = 0;
            for same in shades.chunk_by(|a, b| a == b) {
                let (from, to) = (starts[at], starts[at + same.len()]);
                at += same.len();
                if same[0] > 0.0 {
                    let (y, width) = (top + row as f64 * height, to - from);
                    let _ = writeln!(
                        svg,
                        "<rect class=\"u\" x=\"{from:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" \
                         height=\"{height:.2}\" opacity=\"{}\"/>",
                        same[0]
                    );
                }
            }
        }
    }
}

/// The place of a rectangle as attributes.
fn rectangle(scale: &Scale, (start, end): (u32, u32), offset: Bytes, size: Bytes) -> String {
    let (x, y) = (scale.x(start), scale.y(offset + size));
    let (width, height) = (scale.x(end) - x, scale.y(offset) - y);
    format!("x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\"")
}

fn tooltip(answer: &PlanAnswer, block: &Rectangle) -> String {
    let facts = &answer.blocks.facts[block.block];
    let role = facts.role.map_or("", Role::name).replace('_', " ");
    let words = [role, facts.op.clone(), format!("{} at {}", block.size, block.offset)];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}

fn legend(svg: &mut String, answer: &PlanAnswer) {
    let facts = &answer.blocks.facts;
    let y = TOP + PANEL_HEIGHT + STRIP_GAP + STRIP_HEIGHT + 22.0;
    let mut x = MARGIN;
    let roles = Role::ALL.into_iter().map(Some).chain([None]);
    for role in roles.filter(|role| facts.iter().any(|block| block.role == *role)) {
        let name = role.map_or("block", Role::name).replace('_', " ");
        let class = class(role);
        let _ = writeln!(
            svg,
            "<rect class=\"c{class}\" x=\"{x:.0}\" y=\"{:.0}\" width=\"10\" height=\"10\"/>",
            y - 9.0
        );
        text(svg, (x + 14.0, y), "note", &name);
        x += 30.0 + 7.0 * name.len() as f64;
    }
    let bound = format!(
        "dashed: {} live at once. Time in requests from left to right, addresses from the bottom up; borders: segments. \
         Below: the darker, the larger the part",
        answer.lower_bound()
    );
    text(svg, (MARGIN, y + 20.0), "note", &bound);
}

fn text(svg: &mut String, (x, y): (f64, f64), class: &str, text: &str) {
    let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x:.0}\" y=\"{y:.0}\">{text}</text>");
}

/// The class of a role: its place among the colors.
fn class(role: Option<Role>) -> usize {
    let known = role.and_then(|role| Role::ALL.iter().position(|&other| other == role));
    known.unwrap_or(COLORS.len() - 1)
}

fn escaped(text: &str) -> String {
    quick_xml::escape::escape(printable(text)).into_owned()
}

fn styles() -> String {
    let light = theme(["#ffffff", "#f4f4f4", "#222222", "#555555", "#000000"], |color| color.0);
    let dark = theme(["#16181c", "#22252b", "#eeeeee", "#b0b0b0", "#ffffff"], |color| color.1);
    format!("{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n")
}

/// The style of a theme: page, panel, title, note and line, and the colors of the blocks.
fn theme(
    [page, panel, title, note, line]: [&str; 5],
    color: impl Fn(&(&'static str, &'static str)) -> &'static str,
) -> String {
    let mut style = format!(
        ".page {{ fill: {page} }} .panel {{ fill: {panel} }} .title {{ fill: {title}; font-weight: bold }} \
         .note {{ fill: {note} }}\n\
         .b {{ stroke: {panel}; stroke-width: 0.3 }} .u {{ fill: {note} }} .segment {{ fill: none; stroke: {line}; stroke-width: 0.8 }}\n\
         .bound {{ stroke: {line}; stroke-width: 1; stroke-dasharray: 5 4 }}\n"
    );
    for (class, colors) in COLORS.iter().enumerate() {
        let _ = write!(style, ".c{class} {{ fill: {} }} ", color(colors));
    }
    style.push('\n');
    style
}
