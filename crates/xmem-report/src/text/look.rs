//! Width and colour.

use std::borrow::Cow;

/// Whether text carries colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// None.
    Plain,
    /// ANSI escapes.
    Ansi,
}

/// What the reader's screen can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether text carries colour.
    pub colour: Colour,
    /// Columns to use.
    pub width: usize,
}

/// What a piece of text is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Good,
    Bad,
    Doubtful,
    Heading,
    Faint,
    Bar,
}

impl Look {
    /// Columns to use, within what the layouts can make sense of.
    pub(super) fn columns(&self) -> usize {
        self.width.clamp(80, 160)
    }

    /// `text` in its colour.
    pub(super) fn paint<'t>(&self, ink: Ink, text: &'t str) -> Cow<'t, str> {
        let code = match ink {
            _ if self.colour == Colour::Plain || text.is_empty() => return Cow::Borrowed(text),
            Ink::Good => "1;32",
            Ink::Bad => "1;31",
            Ink::Doubtful => "1;33",
            Ink::Heading => "1",
            Ink::Faint => "2",
            Ink::Bar => "36",
        };
        Cow::Owned(format!("\u{1b}[{code}m{text}\u{1b}[0m"))
    }
}

/// `text` in at most `width` columns, its beginning replaced by `…` where it is longer: of paths
/// the end tells more.
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
        let look = |colour| Look { colour, width: 80 };
        assert_eq!(look(Colour::Plain).paint(Ink::Good, "FITS"), "FITS");
        assert_eq!(look(Colour::Ansi).paint(Ink::Good, "FITS"), "\u{1b}[1;32mFITS\u{1b}[0m");
    }
}
