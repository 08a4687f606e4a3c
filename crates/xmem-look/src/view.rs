//! The state as cells of a screen. The same state gives the same cells.

mod chart;
mod details;
mod help;
mod lists;
mod palette;
mod text;

pub use palette::Palette;

use crate::browser::Browser;
use crate::layout::{Layout, List};
use palette::Ink;
use ratatui_core::buffer::Buffer;
use text::{Line, put, put_end, row};

/// Draws the browser on all of a screen, whose size it is fit for.
pub fn draw(browser: &Browser, palette: Palette, screen: &mut Buffer) {
    let layout = Layout::new(screen.area.width, screen.area.height, browser.list);
    screen.reset();
    if layout.is_too_small() {
        let smallest = Layout::smallest();
        let words = format!("too small: {smallest} at least; q quits");
        put(screen, Line { x: 0, y: 0, width: layout.width }, &words, palette.style(Ink::Plain));
        return;
    }
    headline(browser, palette, screen);
    if browser.shows_help {
        help::draw(palette, screen);
    } else {
        chart::draw(browser, &layout, palette, screen);
        lists(browser, &layout, palette, screen);
        details::draw(browser, &layout, palette, screen);
    }
    keys(browser, &layout, palette, screen);
}

fn headline(browser: &Browser, palette: Palette, screen: &mut Buffer) {
    let subject = &browser.subject;
    let timeline = &subject.timeline;
    let at = |moment: u32| timeline.moments.get(moment as usize).copied().unwrap_or_default();
    let (allocated, reserved) = (at(timeline.peak).allocated, at(timeline.reserved_peak).reserved);
    let right = format!("peak {allocated} allocated, {reserved} reserved");
    let width = screen.area.width;
    let style = palette.style(Ink::Heading);
    let middle = format!("  on {}: {}  ", subject.device, subject.verdict);
    let taken = (right.chars().count() + middle.chars().count()) as u16;
    let name = Line { x: 0, y: 0, width: width.saturating_sub(taken).max(8) };
    let x = put_end(screen, name, &subject.name, style);
    let x = put(screen, Line { x, y: 0, width: width.saturating_sub(x) }, &middle, style);
    let x = x.max(width.saturating_sub(right.chars().count() as u16));
    put(screen, Line { x, y: 0, width: width.saturating_sub(x) }, &right, style);
}

fn lists(browser: &Browser, layout: &Layout, palette: Palette, screen: &mut Buffer) {
    let whole = Line { x: 0, y: layout.heading(), width: layout.width };
    match (layout.split(), browser.list) {
        (Some(width), _) => {
            lists::tree(browser, layout, palette, screen, Line { width: width - 1, ..whole });
            let right = Line { x: width + 1, width: layout.width - width - 1, ..whole };
            lists::blocks(browser, layout, palette, screen, right);
        }
        (None, List::Tree) => lists::tree(browser, layout, palette, screen, whole),
        (None, List::Blocks) => lists::blocks(browser, layout, palette, screen, whole),
    }
}

fn keys(browser: &Browser, layout: &Layout, palette: Palette, screen: &mut Buffer) {
    let line = row(layout, screen.area.height.saturating_sub(1));
    if browser.shows_help {
        put(screen, line, "any key goes back, ctrl-c quits", palette.style(Ink::Faint));
    } else if let Some(text) = &browser.prompt {
        put(screen, line, &format!("/{text}_"), palette.style(Ink::Plain));
    } else if !browser.remark.is_empty() {
        put(screen, line, &browser.remark, palette.style(Ink::Warning));
    } else {
        const KEYS: &str =
            "q quit  ? help  arrows move  +/- zoom  p peak  1-5 by  tab list  / search";
        put(screen, line, KEYS, palette.style(Ink::Faint));
    }
}
