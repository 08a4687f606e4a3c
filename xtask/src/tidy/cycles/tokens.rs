//! Rust source as words and signs, without comments, texts and numbers.

/// A piece of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'s> {
    /// An identifier or a keyword.
    Word(&'s str),
    /// `::`.
    Separator,
    /// Any other sign.
    Sign(char),
}

/// The tokens of a file that compiles.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut rest = source;
    let mut found = Vec::new();
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => comment(rest),
            '"' => text(rest),
            '\'' => character_or_lifetime(rest),
            _ if raw_text(rest).is_some() => raw_text(rest).unwrap_or(1),
            _ if rest.starts_with("r#") => 2,
            _ if rest.starts_with("::") => {
                found.push(Token::Separator);
                2
            }
            _ if is_in_word(first) => {
                let end = rest.find(|c| !is_in_word(c)).unwrap_or(rest.len());
                // What stands directly before a text says of which kind it is: b"…".
                let is_prefix = rest[end..].starts_with(['"', '\'']) && end <= 2;
                if !first.is_ascii_digit() && !is_prefix {
                    found.push(Token::Word(&rest[..end]));
                }
                end
            }
            _ => {
                if !first.is_whitespace() {
                    found.push(Token::Sign(first));
                }
                first.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    found
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of a comment, which may hold others.
fn comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length of a text with escapes.
fn text(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of `r"…"` or `r#"…"#`, with or without a letter before.
fn raw_text(rest: &str) -> Option<usize> {
    let start = rest.strip_prefix(['b', 'c']).unwrap_or(rest).strip_prefix('r')?;
    let hashes = start.len() - start.trim_start_matches('#').len();
    let inside = start[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let before = rest.len() - inside.len();
    Some(inside.find(&end).map_or(rest.len(), |at| before + at + end.len()))
}

/// The length of `'a'` or of the tick of `'a`.
fn character_or_lifetime(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let after = at + escaped.len_utf8();
            rest[after..].find('\'').map_or(rest.len(), |end| after + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<&str> {
        let word = |token: Token<'_>| match token {
            Token::Word(word) => Some(word.to_owned()),
            _ => None,
        };
        let words: Vec<String> = tokens(source).into_iter().filter_map(word).collect();
        source.split(|c| !is_in_word(c)).filter(|w| words.iter().any(|v| v == w)).collect()
    }

    #[test]
    fn comments_texts_and_numbers_are_left_out() {
        assert_eq!(words("a // b\n c /* d /* e */ f */ g"), ["a", "c", "g"]);
        assert_eq!(words(r#"a "b \" c" d b"e" f r"g" h 12_u8 i 0x1f"#), ["a", "d", "f", "h", "i"]);
        assert_eq!(words("a r#\"b \" c\"# d br##\"e\"## f"), ["a", "d", "f"]);
        assert_eq!(words("a r#type b"), ["a", "type", "b"]);
    }

    #[test]
    fn characters_are_told_from_lifetimes() {
        assert_eq!(words(r"a 'b' c '\'' d '\u{1f}' e b'f' g"), ["a", "c", "d", "e", "g"]);
        assert_eq!(words("fn a<'b>(c: &'b str)"), ["fn", "a", "b", "c", "b", "str"]);
        assert_eq!(words("'\"' a '\"'"), ["a"]);
    }

    #[test]
    fn separators_are_one_token() {
        let expected = [Token::Word("a"), Token::Separator, Token::Word("b"), Token::Sign(':')];
        assert_eq!(tokens("a::b:"), expected);
    }
}
