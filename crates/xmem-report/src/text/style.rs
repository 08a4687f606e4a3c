//! Width and color of text.

use std::borrow::Cow;

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
pub(super) enum Ink {
    Good,
    Bad,
    Warning,
    Heading,
    Faint,
    Bar,
}

impl Style {
    /// The width, limited to what the layouts support.
    pub(super) fn columns(&self) -> usize {
        self.width.clamp(80, 160)
    }

    /// `text` in its color.
    pub(super) fn paint<'t>(&self, ink: Ink, text: &'t str) -> Cow<'t, str> {
        let code = match ink {
            _ if self.color == Color::Plain || text.is_empty() => return Cow::Borrowed(text),
            Ink::Good => "1;32",
            Ink::Bad => "1;31",
            Ink::Warning => "1;33",
            Ink::Heading => "1",
            Ink::Faint => "2",
            Ink::Bar => "36",
        };
        Cow::Owned(format!("\u{1b}[{code}m{text}\u{1b}[0m"))
    }
}

/// `text` in at most `width` columns, with the beginning replaced by `…` if it is longer: the end
/// of a path is more specific.
pub(super) fn keep_end(text: &str, width: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= width {
        return Cow::Borrowed(text);
    }
    let kept: String = text.chars().skip(count + 1 - width.max(1)).collect();
    Cow::Owned(format!("…{kept}"))
}

/// Words of `text` in lines of at most `width` columns.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let length = word.chars().count();
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + length <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
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
}
