//! The keys, explained.

use super::palette::{Ink, Palette};
use super::text::{Line, put};
use ratatui_core::buffer::Buffer;

const KEYS: [(&str, &str); 18] = [
    ("left right, h l", "move the cursor by a column; H L by ten"),
    (", .", "move the cursor by a request"),
    ("[ ]", "to the iteration before, to the next one"),
    ("p r o", "to the peak of allocated, of reserved, to out of memory"),
    ("+ - 0", "zoom in, zoom out, show all of the run"),
    ("", ""),
    ("1 2 3 4 5", "list by role, module, line, op, stack"),
    ("tab", "the tree of what is allocated, or the largest blocks"),
    ("up down, k j", "select a row; page up, page down; g first, G last"),
    ("enter, space", "open or close a part of the tree, or list its blocks"),
    ("b, escape", "list the blocks of the selected part; back to the tree"),
    ("/ n N", "search in the list; the next one, the one before"),
    ("", ""),
    ("?", "this page"),
    ("q, ctrl-c", "quit"),
    ("", ""),
    ("", "The chart shows the moment of the highest allocated bytes in each column,"),
    ("", "by role. The line above is the memory that the allocator reserves."),
];

pub(super) fn draw(palette: Palette, screen: &mut Buffer) {
    let area = screen.area;
    for (row, (keys, words)) in KEYS.into_iter().enumerate() {
        let y = 2 + row as u16;
        if y + 1 >= area.height {
            return;
        }
        put(screen, Line { x: 2, y, width: 18 }, keys, palette.style(Ink::Heading));
        let x = if keys.is_empty() { 2 } else { 20 };
        let width = area.width.saturating_sub(x);
        put(screen, Line { x, y, width }, words, palette.style(Ink::Plain));
    }
}
