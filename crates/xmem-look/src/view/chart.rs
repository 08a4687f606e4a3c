//! Memory over time: areas by role, the line of what is reserved, phases, iterations and the cursor.

use super::palette::{Ink, Palette, letter};
use super::text::{Line, put, put_char, row};
use crate::browser::{Browser, Column};
use crate::layout::{Layout, MARGIN};
use ratatui_core::buffer::Buffer;
use ratatui_core::style::Modifier;
use xmem::Bytes;
use xmem::analyzer::Phase;

/// The upper end of an area, in eighths of a cell.
const EIGHTHS: [char; 8] = [
    '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}',
];

/// The line of what is reserved.
const RESERVED: char = '\u{2500}';

/// The place of the cursor.
const CURSOR: char = '\u{25b2}';

pub(super) fn draw(browser: &Browser, layout: &Layout, palette: Palette, screen: &mut Buffer) {
    let cursor = browser.chart.column_of(browser.cursor);
    scale(browser, layout, palette, screen);
    for (number, column) in browser.chart.columns.iter().enumerate() {
        let x = MARGIN + number as u16;
        for level in 0..layout.chart {
            let (character, style) = cell(browser, layout, palette, column, level);
            let style = match cursor == Some(number) {
                true => style.add_modifier(Modifier::REVERSED),
                false => style,
            };
            let y = layout.chart_top() + layout.chart - 1 - level;
            put_char(screen, (x, y), character, style);
        }
    }
    marks(browser, layout, palette, screen, cursor);
    legend(browser, layout, palette, screen);
    position(browser, layout, palette, screen);
}

/// The sizes at the left.
fn scale(browser: &Browser, layout: &Layout, palette: Palette, screen: &mut Buffer) {
    let top = browser.chart.top;
    for level in 0..layout.chart {
        let is_marked = level + 1 == layout.chart || level == 0 || level == layout.chart / 2;
        let bytes = Bytes(bound(top, level + u16::from(level > 0), layout.chart));
        if is_marked {
            let y = layout.chart_top() + layout.chart - 1 - level;
            let line = Line { x: 0, y, width: MARGIN - 1 };
            let text = format!("{:>10}", bytes.to_string());
            put(screen, line, &text, palette.style(Ink::Faint));
        }
    }
}

/// The bytes at the lower end of a level.
fn bound(top: Bytes, level: u16, levels: u16) -> u64 {
    (u128::from(top.get()) * u128::from(level) / u128::from(levels.max(1))) as u64
}

/// The cell of a column at a level, from the bottom up.
fn cell(
    browser: &Browser,
    layout: &Layout,
    palette: Palette,
    column: &Column,
    level: u16,
) -> (char, ratatui_core::style::Style) {
    let top = browser.chart.top;
    let (low, high) = (bound(top, level, layout.chart), bound(top, level + 1, layout.chart));
    let middle = low + (high - low) / 2;
    let allocated: Bytes = column.bytes.iter().copied().sum();
    let filled = allocated.get().saturating_sub(low).min(high - low);
    let eighths =
        if high > low { (8 * u128::from(filled)).div_ceil(u128::from(high - low)) } else { 0 };
    if eighths == 0 {
        let reserved = column.reserved.get();
        let is_line = reserved > low && reserved <= high;
        return (if is_line { RESERVED } else { ' ' }, palette.reserved());
    }
    let name = group_at(browser, column, middle.min(allocated.get().saturating_sub(1)));
    let character = match palette {
        Palette::Letters => letter(name),
        Palette::Color => EIGHTHS[eighths as usize - 1],
    };
    (character, palette.role(name))
}

/// The role that a byte of a column belongs to.
fn group_at<'b>(browser: &'b Browser, column: &Column, byte: u64) -> &'b str {
    let mut below = 0;
    for (bytes, name) in column.bytes.iter().zip(&browser.chart.groups) {
        below += bytes.get();
        if byte < below {
            return name;
        }
    }
    browser.chart.groups.last().map_or("", String::as_str)
}

/// Phases and iterations, each with its name where it begins if there is room.
fn marks(
    browser: &Browser,
    layout: &Layout,
    palette: Palette,
    screen: &mut Buffer,
    cursor: Option<usize>,
) {
    let columns = &browser.chart.columns;
    let phases: Vec<String> =
        columns.iter().map(|column| short(column.phase.0).to_owned()).collect();
    let iterations: Vec<String> = columns
        .iter()
        .map(|column| {
            column.phase.1.map_or_else(|| "before".to_owned(), |n| format!("iteration {n}"))
        })
        .collect();
    let places: Vec<(&String, &String)> = iterations.iter().zip(&phases).collect();
    for (y, names, is_start) in [
        (layout.phases(), &phases, starts(&places)),
        (layout.phases() + 1, &iterations, starts(&iterations)),
    ] {
        for (at, &start) in is_start.iter().enumerate() {
            let end = is_start.get(at + 1).copied().unwrap_or(names.len());
            let x = MARGIN + start as u16;
            put_char(screen, (x, y), '|', palette.style(Ink::Faint));
            let width = (end - start - 1) as u16;
            let line = Line { x: x + 1, y, width };
            // Part of a name is worse than none.
            let fits = names[start].chars().count() <= usize::from(width);
            let text = if fits { names[start].as_str() } else { number_of(&names[start], width) };
            put(screen, line, text, palette.style(Ink::Faint));
        }
    }
    if let Some(at) = cursor {
        let place = (MARGIN + at as u16, layout.phases());
        put_char(screen, place, CURSOR, palette.style(Ink::Heading));
    }
}

/// The number at the end of a name, if there is room for it.
fn number_of(name: &str, width: u16) -> &str {
    let number = name.rsplit(' ').next().unwrap_or_default();
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && number.len() <= usize::from(width) { number } else { "" }
}

/// The places at which something else begins.
fn starts<T: PartialEq>(all: &[T]) -> Vec<usize> {
    (0..all.len()).filter(|&at| at == 0 || all[at] != all[at - 1]).collect()
}

fn short(phase: Phase) -> &'static str {
    match phase {
        Phase::Init => "init",
        Phase::Data => "data",
        Phase::Forward => "forward",
        Phase::Backward => "backward",
        Phase::ZeroGrad => "zero",
        Phase::OptimizerStep => "step",
    }
}

fn legend(browser: &Browser, layout: &Layout, palette: Palette, screen: &mut Buffer) {
    let y = layout.phases() + 2;
    let mut x = MARGIN;
    for name in &browser.chart.groups {
        let line = Line { x, y, width: layout.width.saturating_sub(x) };
        let sign = match palette {
            Palette::Color => EIGHTHS[7],
            Palette::Letters => letter(name),
        };
        x = put(screen, line, &sign.to_string(), palette.role(name));
        let line = Line { x: x + 1, width: layout.width.saturating_sub(x + 1), ..line };
        x = put(screen, line, in_legend(name), palette.style(Ink::Plain)) + 2;
    }
    let line = Line { x, y, width: layout.width.saturating_sub(x) };
    let text = format!("{RESERVED} reserved");
    if usize::from(line.width) >= text.chars().count() {
        put(screen, line, &text, palette.reserved());
    }
}

/// A role in few letters.
fn in_legend(name: &str) -> &str {
    match name {
        "parameter" => "param",
        "gradient" => "grad",
        "optimizer_state" => "optim",
        "activation" => "activ",
        "temporary" => "temp",
        "workspace" => "work",
        other => other,
    }
}

/// The figures at the cursor.
fn position(browser: &Browser, layout: &Layout, palette: Palette, screen: &mut Buffer) {
    let line = row(layout, layout.phases() + 3);
    let Some(figures) = browser.figures() else {
        put(screen, line, "nothing is allocated in this run", palette.style(Ink::Warning));
        return;
    };
    let (phase, iteration) = crate::browser::phase(&browser.subject.timeline, browser.cursor);
    let place = match iteration {
        Some(iteration) => format!("{} of iteration {iteration}", short(phase)),
        None => short(phase).to_owned(),
    };
    let text = format!(
        "{} allocated, {} reserved  request {}, {place}",
        figures.allocated,
        figures.reserved,
        browser.cursor + 1
    );
    put(screen, line, &text, palette.style(Ink::Heading));
}
