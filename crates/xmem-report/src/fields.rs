//! Facts in two columns: label and text.

use crate::style::{Style, wrap};

/// A label and its text.
pub(crate) type Fields = Vec<(&'static str, String)>;

/// The lines, indented by two, with long texts wrapped in their column. Lines without text are left
/// out.
pub(crate) fn fields(lines: Fields, style: &Style) -> String {
    const LABEL: usize = 19;
    let mut page = String::new();
    for (label, text) in lines {
        let width = style.columns().saturating_sub(LABEL + 3);
        for (row, line) in wrap(&text, width).iter().enumerate() {
            let label = if row == 0 { label } else { "" };
            page += &format!("  {label:<LABEL$} {line}\n");
        }
    }
    page
}
