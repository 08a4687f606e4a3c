//! Width and color of text.

use std::borrow::Cow;
use xmem::types::{printable, printable_lines};
use xmem_gate::Decision;

/// The use of color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// No color.
    Plain,
    /// ANSI escape sequences.
    Ansi,
}

/// The capabilities of the reader's screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// The use of color.
    pub color: Color,
    /// Columns to use.
    pub width: usize,
}

/// The meaning of a piece of text, which decides its color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Good,
    Bad,
    Warning,
    Heading,
    Faint,
    Bar,
}

impl Style {
    /// The width, limited to what the layouts support.
    pub(crate) fn columns(&self) -> usize {
        self.width.clamp(80, 160)
    }

    /// `text` in its color.
    pub(crate) fn paint<'t>(&self, ink: Ink, text: &'t str) -> Cow<'t, str> {
        let text = printable(text);
        let begin = match ink {
            _ if self.color == Color::Plain || text.is_empty() => return text,
            Ink::Good => GOOD,
            Ink::Bad => BAD,
            Ink::Warning => WARNING,
            Ink::Heading => HEADING,
            Ink::Faint => FAINT,
            Ink::Bar => BAR,
        };
        Cow::Owned(format!("{begin}{text}{END}"))
    }
}

const GOOD: &str = "\u{1b}[1;32m";
const BAD: &str = "\u{1b}[1;31m";
const WARNING: &str = "\u{1b}[1;33m";
const HEADING: &str = "\u{1b}[1m";
const FAINT: &str = "\u{1b}[2m";
const BAR: &str = "\u{1b}[36m";
const END: &str = "\u{1b}[0m";

impl Color {
    /// `text` as it may be printed: whatever is not printable is escaped, except for line feeds and, with
    /// color, the escape sequences of [`Style`]. The last step of all output, so that a name that nothing
    /// before has made printable does not control the terminal.
    #[must_use]
    pub fn printable(self, text: &str) -> Cow<'_, str> {
        let ours = [GOOD, BAD, WARNING, HEADING, FAINT, BAR, END];
        if self == Self::Plain || !text.contains('\u{1b}') {
            return printable_lines(text);
        }
        let mut safe = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('\u{1b}') {
            safe += &printable_lines(&rest[..at]);
            rest = &rest[at..];
            let color = ours.iter().find(|color| rest.starts_with(**color));
            let length = color.map_or(1, |color| color.len());
            safe += &if color.is_some() {
                Cow::Borrowed(&rest[..length])
            } else {
                printable(&rest[..length])
            };
            rest = &rest[length..];
        }
        safe += &printable_lines(rest);
        Cow::Owned(safe)
    }
}

/// `text` in at most `width` columns, with the beginning replaced by `…` if it is longer: the end
/// of a path is more specific.
pub(crate) fn keep_end(text: &str, width: usize) -> Cow<'_, str> {
    let text = printable(text);
    let count = text.chars().count();
    if count <= width {
        return text;
    }
    let kept: String = text.chars().skip(count + 1 - width.max(1)).collect();
    Cow::Owned(format!("…{kept}"))
}

/// The words of a gate's decision in their color.
pub(crate) fn paint_decision(words: &str, decision: Decision, style: &Style) -> String {
    let ink = match decision {
        Decision::Fits => Ink::Good,
        Decision::DoesNotFit => Ink::Bad,
        _ => Ink::Warning,
    };
    style.paint(ink, words).into_owned()
}

/// Words of `text` in lines of at most `width` columns.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace().map(printable) {
        let length = word.chars().count();
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + length <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word.into_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_text_is_kept() {
        assert_eq!(keep_end("GPT2_0 > Block_3", 20), "GPT2_0 > Block_3");
        assert_eq!(keep_end("GPT2_0 > Block_3", 8), "…Block_3");
        assert_eq!(keep_end("ünï", 2), "…ï");
    }

    #[test]
    fn words_are_wrapped_and_never_broken() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("incomprehensible", 4), ["incomprehensible"]);
        assert!(wrap("", 4).is_empty());
    }

    #[test]
    fn only_ansi_adds_escapes() {
        let style = |color| Style { color, width: 80 };
        assert_eq!(style(Color::Plain).paint(Ink::Good, "FITS"), "FITS");
        assert_eq!(style(Color::Ansi).paint(Ink::Good, "FITS"), "\u{1b}[1;32mFITS\u{1b}[0m");
    }

    #[test]
    fn escapes_in_a_name_are_not_taken_for_those_of_the_style() {
        let style = Style { color: Color::Ansi, width: 80 };
        let name = "\u{1b}[8m\u{1b}[2JFITS\n";
        let page = format!("{}\n", style.paint(Ink::Bad, name));
        let shown = "\u{1b}[1;31m\\u001b[8m\\u001b[2JFITS\\n\u{1b}[0m\n";
        assert_eq!(page, shown);
        assert_eq!(Color::Ansi.printable(&page), shown);
        assert_eq!(
            Color::Ansi.printable("\u{1b}[8m\u{1b}[0m\u{202e}"),
            "\\u001b[8m\u{1b}[0m\\u202e"
        );
        assert_eq!(Color::Plain.printable("a\n\u{1b}[0m"), "a\n\\u001b[0m");
    }
}
