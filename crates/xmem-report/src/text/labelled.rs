//! Facts in two columns: what, and how much.

use super::look::{Look, wrap};

/// A label and its text.
pub(super) type Lines = Vec<(&'static str, String)>;

/// The lines, each indented by two, long texts wrapped below themselves; those that say nothing are
/// left out.
pub(super) fn labelled(lines: Lines, look: &Look) -> String {
    const LABEL: usize = 19;
    let mut page = String::new();
    for (label, text) in lines {
        let room = look.columns().saturating_sub(LABEL + 3);
        for (row, line) in wrap(&text, room).iter().enumerate() {
            let label = if row == 0 { label } else { "" };
            page += &format!("  {label:<LABEL$} {line}\n");
        }
    }
    page
}
