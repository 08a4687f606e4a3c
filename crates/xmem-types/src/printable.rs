//! Text that is safe to show: characters that control a terminal, break lines or change the order of the
//! text around them are written as escapes.

use std::borrow::Cow;
use std::path::Path;

/// Returns whether a character stands for itself on every terminal.
///
/// Control characters (C0, DEL, C1), line and paragraph separators, marks of direction, invisible
/// characters and tags do not (Unicode 16: general categories Cc, Zl, Zp, and Cf as far as it changes
/// what a reader sees; <https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing>).
#[must_use]
pub const fn is_printable(c: char) -> bool {
    !matches!(c,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// `text` on one line: characters that are not printable become the escapes that JSON has for them
/// (`\n`, `\u001b`, `\u202e`).
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_printable)
}

/// Like [`printable`], with line feeds kept: for text of several lines.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\n' || is_printable(c))
}

/// A path on one line, as [`printable`] text. Bytes that are not Unicode become replacement characters.
#[must_use]
pub fn printable_path(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}

/// `text` with the escapes of JSON for the characters that are not `kept`.
fn escaped(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Nearly all text is plain ASCII.
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if is_plain || text.chars().all(&kept) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if kept(c) {
            safe.push(c);
        } else {
            push_escape(&mut safe, c);
        }
    }
    Cow::Owned(safe)
}

/// Appends the escape of a character as JSON writes it (RFC 8259, section 7).
fn push_escape(text: &mut String, c: char) {
    match c {
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        _ => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_controls_a_terminal_is_shown_as_an_escape() {
        for (text, shown) in [
            ("aten::mm", "aten::mm"),
            ("Größe 模型 é", "Größe 模型 é"),
            ("\u{1b}[1;32mFITS\u{1b}[0m", "\\u001b[1;32mFITS\\u001b[0m"),
            ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
            ("\u{9b}31m\u{7f}", "\\u009b31m\\u007f"),
            ("\u{202e}tif ton\u{202c}", "\\u202etif ton\\u202c"),
            ("\u{2066}a\u{2069}\u{200f}\u{61c}", "\\u2066a\\u2069\\u200f\\u061c"),
            ("\u{2028}\u{2029}\u{200b}\u{feff}", "\\u2028\\u2029\\u200b\\ufeff"),
            ("\u{e0041}", "\\udb40\\udc41"),
        ] {
            assert_eq!(printable(text), shown);
            assert!(printable(text).chars().all(is_printable));
            assert_eq!(printable(&printable(text)), shown, "once more changes nothing");
        }
        assert_eq!(printable_lines("a\nb\u{1b}"), "a\nb\\u001b");
        assert_eq!(printable_path(Path::new("a\u{7}b.json")), "a\\u0007b.json");
    }

    /// The escapes are those of JSON, so that text inside a JSON document stays the same text.
    #[test]
    fn escapes_are_those_of_json() {
        let mut text = String::new();
        push_escape(&mut text, '\u{e0041}');
        push_escape(&mut text, '\u{1}');
        assert_eq!(text, "\\udb40\\udc41\\u0001");
    }
}
