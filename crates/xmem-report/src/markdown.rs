//! Text in Markdown.

use xmem::printable;

/// Text without the characters that mean something in a cell of a table.
pub(crate) fn cell(text: &str) -> String {
    let mut cell = String::new();
    for c in printable(text).chars() {
        if "\\`*_{}[]<>|#!@".contains(c) {
            cell.push('\\');
        }
        cell.push(c);
    }
    cell
}
