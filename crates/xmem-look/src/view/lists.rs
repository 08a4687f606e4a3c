//! The tree of what is allocated at the cursor, and the list of its blocks.

use super::palette::{Ink, Palette};
use super::text::{Line, put, put_end};
use crate::browser::{Browser, TreeRow};
use crate::layout::{Layout, List};
use ratatui_core::buffer::Buffer;
use xmem::Bytes;

pub(super) fn tree(
    browser: &Browser,
    layout: &Layout,
    palette: Palette,
    screen: &mut Buffer,
    line: Line,
) {
    let rows = browser.tree.rows();
    let timeline = &browser.subject.timeline;
    let special = match browser.cursor {
        at if Some(at) == timeline.out_of_memory => ", where memory runs out",
        at if at == timeline.peak => ", at the peak",
        at if at == timeline.reserved_peak => ", at the peak of reserved",
        _ => "",
    };
    let by = browser.key.name();
    let title = format!("{:>11} {:>6} {:>7}  by {by}{special}", "bytes", "%", "blocks");
    heading(browser, List::Tree, palette, screen, (line, &title));
    let all = browser.figures().map_or(Bytes::ZERO, |figures| figures.allocated);
    let first = first_row(browser.tree.selected, layout.page(), rows.len());
    for (number, row) in rows.iter().enumerate().skip(first).take(layout.page()) {
        let line = Line { y: line.y + 1 + (number - first) as u16, ..line };
        let is_selected = number == browser.tree.selected && browser.list == List::Tree;
        let style = palette.style(if is_selected { Ink::Selected } else { Ink::Plain });
        let share = match all.get() {
            0 => 0.0,
            all => 100.0 * row.bytes.get() as f64 / all as f64,
        };
        let figures = format!("{:>11} {share:>6.1} {:>7}  ", row.bytes.to_string(), row.blocks);
        let x = put(screen, line, &figures, style);
        let rest = Line { x, width: (line.x + line.width).saturating_sub(x), ..line };
        let indent = format!("{}{} ", "  ".repeat(row.depth().min(20)), sign(row));
        let x = put(screen, rest, &indent, style);
        let rest = Line { x, width: (line.x + line.width).saturating_sub(x), ..line };
        let end = put_end(screen, rest, &name(row, browser), style);
        let blank = usize::from((line.x + line.width).saturating_sub(end));
        put(screen, Line { x: end, width: blank as u16, ..line }, &" ".repeat(blank), style);
    }
}

/// Whether a row opens.
fn sign(row: &TreeRow) -> char {
    match (row.has_children, row.is_open) {
        (false, _) => ' ',
        (true, false) => '+',
        (true, true) => '-',
    }
}

fn name(row: &TreeRow, browser: &Browser) -> String {
    match row.name() {
        "" => format!("(no {})", browser.key.name()),
        name => name.to_owned(),
    }
}

pub(super) fn blocks(
    browser: &Browser,
    layout: &Layout,
    palette: Palette,
    screen: &mut Buffer,
    line: Line,
) {
    let timeline = &browser.subject.timeline;
    let list = &browser.blocks;
    let of = list.of.as_ref().map_or_else(String::new, |name| format!(" of {name}"));
    let title = format!("{:>11}  {:<15} block{of}, {} in all", "bytes", "role", list.rows.len());
    heading(browser, List::Blocks, palette, screen, (line, &title));
    let first = first_row(list.selected, layout.page(), list.rows.len());
    for (number, &row) in list.rows.iter().enumerate().skip(first).take(layout.page()) {
        let block = &timeline.blocks[row as usize];
        let line = Line { y: line.y + 1 + (number - first) as u16, ..line };
        let is_selected = number == list.selected && browser.list == List::Blocks;
        let style = palette.style(if is_selected { Ink::Selected } else { Ink::Plain });
        let figures = format!("{:>11}  {:<15} ", block.size.to_string(), block.role.name());
        let x = put(screen, line, &figures, style);
        let [op, module, line_of] =
            [block.op, block.module, block.line].map(|id| timeline.text(id));
        let place = if module.is_empty() { line_of } else { module };
        let gap = if op.is_empty() || place.is_empty() { "" } else { "  " };
        let x = put(
            screen,
            Line { x, width: (line.x + line.width).saturating_sub(x), ..line },
            &format!("{op}{gap}"),
            style,
        );
        let rest = (line.x + line.width).saturating_sub(x);
        let end = put_end(screen, Line { x, width: rest, ..line }, place, style);
        let blank = usize::from((line.x + line.width).saturating_sub(end));
        put(screen, Line { x: end, width: blank as u16, ..line }, &" ".repeat(blank), style);
    }
}

fn heading(
    browser: &Browser,
    list: List,
    palette: Palette,
    screen: &mut Buffer,
    (line, title): (Line, &str),
) {
    let ink = if browser.list == list { Ink::Heading } else { Ink::Faint };
    put(screen, line, title, palette.style(ink));
}

/// The first row that is shown, so that the selected one is in the middle where it can be.
fn first_row(selected: usize, page: usize, count: usize) -> usize {
    selected.saturating_sub(page / 2).min(count.saturating_sub(page))
}
