//! All that is known of the selected block, or where the selected part of the tree is.

use super::palette::{Ink, Palette};
use super::text::{Line, put, put_end, row};
use crate::browser::{Browser, phase};
use crate::layout::{Layout, List};
use ratatui_core::buffer::Buffer;
use xmem::predict::{Timeline, TimelineBlock};

pub(super) fn draw(browser: &Browser, layout: &Layout, palette: Palette, screen: &mut Buffer) {
    let timeline = &browser.subject.timeline;
    let (first, style) = (layout.details(), palette.style(Ink::Plain));
    if browser.list == List::Tree && layout.split().is_none() {
        let path = browser.tree.selected().map(|row| row.path.join(" > ")).unwrap_or_default();
        put_end(screen, row(layout, first), &path, palette.style(Ink::Faint));
        return;
    }
    let selected = browser.blocks.rows.get(browser.blocks.selected);
    let Some(block) = selected.map(|&row| &timeline.blocks[row as usize]) else { return };
    put(screen, row(layout, first), &what(timeline, block), palette.style(Ink::Heading));
    put(screen, row(layout, first + 1), &life(timeline, block), style);
    let path = timeline.path(block.path).iter().map(|&id| timeline.text(id));
    let path = path.collect::<Vec<_>>().join(" > ");
    let place = [block.module, block.line].map(|id| timeline.text(id));
    let place = place.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ");
    for (number, (name, text)) in [("at", path), ("in", place)].into_iter().enumerate() {
        let line = row(layout, first + 2 + number as u16);
        let x = put(screen, line, &format!("{name} "), palette.style(Ink::Faint));
        let rest = Line { x, width: layout.width.saturating_sub(x), ..line };
        put_end(screen, rest, if text.is_empty() { "an unknown place" } else { &text }, style);
    }
}

/// Size, role and address.
fn what(timeline: &Timeline, block: &TimelineBlock) -> String {
    let because = match (block.rule, block.evidence) {
        (Some(rule), _) => format!(" (rule {rule})"),
        (None, "") => String::new(),
        (None, evidence) => format!(" ({evidence})"),
    };
    let segment = block.segment.and_then(|row| timeline.segments.get(row as usize));
    let segment = segment.map(|segment| format!(", in {} of device memory", segment.size));
    format!(
        "{}{because}: {} for {} requested, at {:#x}{}",
        block.role.name(),
        block.size,
        block.requested,
        block.addr.0,
        segment.unwrap_or_default()
    )
}

/// When it is allocated and freed.
fn life(timeline: &Timeline, block: &TimelineBlock) -> String {
    let at = |moment: u32| {
        let (phase, iteration) = phase(timeline, moment);
        let of = iteration.map_or_else(String::new, |n| format!(" of iteration {n}"));
        format!("request {} ({}{of})", moment + 1, phase.name())
    };
    let freed =
        block.freed.map_or_else(|| "never freed".to_owned(), |f| format!("freed by {}", at(f)));
    format!("allocated by {}, {freed}", at(block.start))
}
