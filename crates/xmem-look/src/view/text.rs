//! The only way of text to cells: what is not printable is escaped, as in all output.

use crate::layout::Layout;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::Style;
use xmem::types::printable;

/// A part of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) x: u16,
    pub(super) y: u16,
    pub(super) width: u16,
}

/// A complete row.
pub(super) fn row(layout: &Layout, y: u16) -> Line {
    Line { x: 0, y, width: layout.width }
}

/// Puts text into cells, cut off at the end of the line; returns the column after it.
pub(super) fn put(screen: &mut Buffer, line: Line, text: &str, style: Style) -> u16 {
    let area = screen.area;
    if line.y >= area.height || line.x >= area.width {
        return line.x;
    }
    let width = line.width.min(area.width - line.x);
    let text = printable(text);
    screen.set_stringn(line.x, line.y, &text, usize::from(width), style).0
}

/// The same with the end kept: the end of a path says more.
pub(super) fn put_end(screen: &mut Buffer, line: Line, text: &str, style: Style) -> u16 {
    let text = printable(text);
    let (count, width) = (text.chars().count(), usize::from(line.width));
    if count <= width {
        return put(screen, line, &text, style);
    }
    let kept: String = text.chars().skip(count + 1 - width.max(1)).collect();
    put(screen, line, &format!("\u{2026}{kept}"), style)
}

/// One of the program's own characters in a cell.
pub(super) fn put_char(screen: &mut Buffer, (x, y): (u16, u16), character: char, style: Style) {
    if let Some(cell) = screen.cell_mut((x, y)) {
        cell.set_char(character).set_style(style);
    }
}
