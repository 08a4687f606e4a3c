//! Text in Markdown.

use xmem::types::printable;

/// Text without the characters that mean something in a cell of a table. GitHub looks for people (`@name`) and issues
/// (`#1`) in what is shown, where a backslash is gone: a space without width is put between.
pub(crate) fn cell(text: &str) -> String {
    let mut cell = String::new();
    for c in printable(text).chars() {
        if "\\`*_{}[]<>|#!@".contains(c) {
            cell.push('\\');
        }
        match c {
            '&' => cell += "&amp;",
            '@' | '#' => {
                cell.push(c);
                cell += "&#8203;";
            }
            other => cell.push(other),
        }
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_calls_nobody_and_ends_no_cell() {
        for (text, expected) in [
            ("@team #1", r"\@&#8203;team \#&#8203;1"),
            ("&#64;team <b>", r"&amp;\#&#8203;64;team \<b\>"),
            ("a|b `c`", r"a\|b \`c\`"),
            ("Net_0 > Linear_1", r"Net\_0 \> Linear\_1"),
        ] {
            assert_eq!(cell(text), expected, "{text}");
        }
    }
}
