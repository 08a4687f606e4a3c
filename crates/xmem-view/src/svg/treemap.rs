//! The memory at the peak as rectangles: one inside the other by a property, their area by bytes, their color by role.

use super::canvas::{self, Anchor, Canvas};
use super::palette::Palette;
use super::squares::{self, Rect};
use super::{EDGE, WIDTH, legend_entry};
use crate::Run;
use std::borrow::Cow;
use std::cmp::Reverse;
use xmem::Bytes;
use xmem::analyzer::Role;
use xmem::predict::{BlockKey, Timeline, TreeNode};

/// The height of all rectangles together.
const HEIGHT: f64 = 420.0;
/// The height of a name above what is inside, and the edge around that.
const NAME: f64 = 17.0;
const INSET: f64 = 2.0;
/// The area below which a part has no rectangle of its own; in square pixels.
const SMALLEST: f64 = 36.0;
/// The width of an entry of the legend.
const ENTRY: f64 = 236.0;

/// A part of the memory: other parts, or bytes of one role.
#[derive(Clone, Debug)]
struct Part {
    name: String,
    bytes: Bytes,
    inside: Inside,
}

#[derive(Clone, Debug)]
enum Inside {
    Parts(Vec<Part>),
    Blocks(Role),
}

/// Draws the picture below `top`, and returns where it ends.
pub(super) fn draw(run: &Run<'_>, by: BlockKey, top: f64, canvas: &mut Canvas) -> f64 {
    let timeline = run.timeline;
    let tree = timeline.tree(timeline.peak, by);
    let heading = format!("{} allocated at the peak, by {}", tree.bytes, by.name());
    canvas.text((EDGE, top + 18.0), Anchor::Start, "strong", &heading);
    if let Some(place) = place(run) {
        let x = EDGE + canvas::width_of(&heading, 12.0) + 12.0;
        let room = WIDTH - EDGE - x;
        canvas.text(
            (WIDTH - EDGE, top + 18.0),
            Anchor::End,
            "dim",
            &canvas::fitted(&place, room, 12.0),
        );
    }
    let y = top + 28.0;
    let root = part(timeline, &tree, by);
    match &root.inside {
        Inside::Parts(parts) if parts.is_empty() => {}
        Inside::Parts(_) => within(&root, (EDGE, y, WIDTH - 2.0 * EDGE, HEIGHT), 0, canvas),
        Inside::Blocks(role) => leaf(&root, *role, (EDGE, y, WIDTH - 2.0 * EDGE, HEIGHT), canvas),
    }
    legend(&root, y + HEIGHT + 24.0, canvas)
}

/// The phase and iteration of the peak.
fn place(run: &Run<'_>) -> Option<String> {
    let timeline = run.timeline;
    let span = timeline.phases.iter().find(|span| span.moments.contains(&timeline.peak))?;
    let phase = span.name();
    Some(match span.iteration {
        Some(iteration) => format!("iteration {}, {phase}", iteration.index()),
        None => phase.to_owned(),
    })
}

/// A node of the tree as a part. Chains of nodes with a single part become one.
fn part(timeline: &Timeline, node: &TreeNode, by: BlockKey) -> Part {
    let mut parts: Vec<Part> =
        node.children.iter().map(|child| part(timeline, child, by)).collect();
    for role in Role::ALL {
        let own = node.own.iter().map(|&row| &timeline.blocks[row as usize]);
        let bytes: Bytes = own.filter(|block| block.role == role).map(|block| block.size).sum();
        if bytes > Bytes::ZERO {
            parts.push(Part { name: String::new(), bytes, inside: Inside::Blocks(role) });
        }
    }
    let is_unknown = node.name.is_empty() && node.children.is_empty();
    let name = match by {
        _ if is_unknown => "[unknown]".to_owned(),
        BlockKey::Role => node.name.replace('_', " "),
        _ => node.name.clone(),
    };
    if parts.len() == 1 {
        let only = parts.remove(0);
        let name = [name, only.name].into_iter().filter(|name| !name.is_empty());
        return Part { name: name.collect::<Vec<_>>().join(" › "), ..only };
    }
    parts.sort_by_key(|part| Reverse(part.bytes));
    Part { name, bytes: node.bytes, inside: Inside::Parts(parts) }
}

/// Draws a part in a rectangle.
fn rectangle(part: &Part, at: Rect, depth: usize, canvas: &mut Canvas) {
    match &part.inside {
        Inside::Blocks(role) => leaf(part, *role, at, canvas),
        Inside::Parts(_) => within(part, at, depth, canvas),
    }
}

/// Draws the parts of a part, below its name where that has room.
fn within(part: &Part, at: Rect, depth: usize, canvas: &mut Canvas) {
    let Inside::Parts(parts) = &part.inside else { return };
    let (mut x, mut y, mut width, mut height) = at;
    let is_root = depth == 0 && part.name.is_empty();
    let is_named = !is_root && !part.name.is_empty() && width > 48.0 && height > 2.0 * NAME;
    if !is_root {
        let class = if depth.is_multiple_of(2) { "mid edge" } else { "panel edge" };
        canvas.rect(at, class, Some(&hint(part)));
    }
    if is_named {
        named(part, (x + 5.0, y + 12.5), width - 10.0, "small ink", canvas);
        (y, height) = (y + NAME, height - NAME);
    }
    if !is_root && width > 12.0 && height > 12.0 {
        let above = if is_named { 0.0 } else { INSET };
        (x, width) = (x + INSET, width - 2.0 * INSET);
        (y, height) = (y + above, height - above - INSET);
    }
    let per_byte = width * height / part.bytes.get().max(1) as f64;
    let parts = merged(parts, per_byte);
    let weights: Vec<f64> = parts.iter().map(|part| part.bytes.get() as f64).collect();
    for (part, rect) in parts.iter().zip(squares::divide(&weights, (x, y, width, height))) {
        rectangle(part, rect, depth + 1, canvas);
    }
}

/// The parts, those too small for a rectangle as one part for each role.
fn merged(parts: &[Part], per_byte: f64) -> Vec<Cow<'_, Part>> {
    let is_small = |part: &&Part| (part.bytes.get() as f64) * per_byte < SMALLEST;
    if parts.iter().filter(is_small).count() < 2 {
        return parts.iter().map(Cow::Borrowed).collect();
    }
    let mut kept: Vec<Cow<'_, Part>> =
        parts.iter().filter(|part| !is_small(part)).map(Cow::Borrowed).collect();
    let mut sums = vec![Bytes::ZERO; Role::ALL.len()];
    for part in parts.iter().filter(is_small) {
        add_roles(part, &mut sums);
    }
    let count = parts.len() - kept.len();
    let sums = Role::ALL.into_iter().zip(sums).filter(|(_, bytes)| *bytes > Bytes::ZERO);
    kept.extend(sums.map(|(role, bytes)| {
        let name = format!("{count} small parts");
        Cow::Owned(Part { name, bytes, inside: Inside::Blocks(role) })
    }));
    kept.sort_by_key(|part| Reverse(part.bytes));
    kept
}

/// Adds the bytes of a part, by the place of the role in [`Role::ALL`].
fn add_roles(part: &Part, sums: &mut [Bytes]) {
    match &part.inside {
        Inside::Parts(parts) => parts.iter().for_each(|part| add_roles(part, sums)),
        Inside::Blocks(role) => {
            if let Some(at) = Role::ALL.iter().position(|known| known == role) {
                sums[at] += part.bytes;
            }
        }
    }
}

/// Draws the bytes of one role.
fn leaf(part: &Part, role: Role, at: Rect, canvas: &mut Canvas) {
    let (x, y, width, height) = at;
    let color = Palette::of_role(role);
    let role = role.name().replace('_', " ");
    let name = if part.name.is_empty() { role.clone() } else { part.name.clone() };
    let text = if name == role { name.clone() } else { format!("{name} ({role})") };
    canvas.rect(at, &format!("{} edge", color.fill()), Some(&format!("{text}: {}", part.bytes)));
    if width > 30.0 && height > 15.0 {
        let part = Part { name, ..part.clone() };
        named(&part, (x + 5.0, y + 12.5), width - 9.0, color.text(), canvas);
    }
}

/// Writes the name, and the bytes behind it where they have room too.
fn named(part: &Part, (x, y): (f64, f64), room: f64, class: &str, canvas: &mut Canvas) {
    let bytes = part.bytes.to_string();
    let space = canvas::width_of(&bytes, 11.0) + 10.0;
    let name_width = canvas::width_of(&part.name, 11.0);
    if name_width + space <= room {
        canvas.text((x, y), Anchor::Start, class, &part.name);
        canvas.text((x + room, y), Anchor::End, class, &bytes);
    } else {
        canvas.text((x, y), Anchor::Start, class, &canvas::fitted(&part.name, room, 11.0));
    }
}

fn hint(part: &Part) -> String {
    format!("{}: {}", part.name, part.bytes)
}

/// The roles with their bytes, in as many lines as they need.
fn legend(root: &Part, top: f64, canvas: &mut Canvas) -> f64 {
    let mut sums = vec![Bytes::ZERO; Role::ALL.len()];
    add_roles(root, &mut sums);
    let (mut x, mut y) = (EDGE, top);
    for (role, bytes) in Role::ALL.into_iter().zip(sums).filter(|(_, bytes)| *bytes > Bytes::ZERO) {
        if x + ENTRY > WIDTH - EDGE + 36.0 {
            (x, y) = (EDGE, y + 20.0);
        }
        let name = role.name().replace('_', " ");
        let entry = (name.as_str(), bytes.to_string());
        legend_entry(canvas, (x, y), ENTRY - 36.0, Palette::of_role(role), (entry.0, &entry.1));
        x += ENTRY;
    }
    y + 20.0
}
