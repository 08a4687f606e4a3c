//! Makes JSON of what profilers wrote instead of it, one event at a time.
//!
//! Seen in traces of PyTorch 1.x to 2.6: bare `NaN`, `Infinity`, `inf`; quotes, newlines and other
//! control characters that a name or argument had and that were not escaped; single backslashes of
//! Windows paths.

/// `text` as standard JSON, as far as that can be guessed: text that is not a JSON value becomes `null`,
/// what cannot stand in a string is escaped.
pub(crate) fn repair(text: &str) -> String {
    let mut repair = Repair { text: text.as_bytes(), at: 0, out: Vec::new(), open: Vec::new() };
    repair.run();
    String::from_utf8(repair.out).expect("repairs are made at character boundaries")
}

struct Repair<'a> {
    text: &'a [u8],
    at: usize,
    out: Vec<u8>,
    /// Open brackets, and in objects whether a key comes next.
    open: Vec<Open>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Array,
    ObjectKey,
    ObjectValue,
}

impl Repair<'_> {
    fn run(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'"' => self.string(),
                b'{' => self.open.push(Open::ObjectKey),
                b'[' => self.open.push(Open::Array),
                b'}' | b']' => {
                    self.open.pop();
                }
                b':' => self.turn(Open::ObjectKey, Open::ObjectValue),
                b',' => self.turn(Open::ObjectValue, Open::ObjectKey),
                b' ' | b'\t' | b'\n' | b'\r' => {}
                _ => {
                    self.token();
                    continue;
                }
            }
            if byte != b'"' {
                self.out.push(byte);
                self.at += 1;
            }
        }
    }

    fn turn(&mut self, from: Open, to: Open) {
        if let Some(open) = self.open.last_mut()
            && *open == from
        {
            *open = to;
        }
    }

    /// A number, a literal, or something that is neither.
    fn token(&mut self) {
        let rest = &self.text[self.at..];
        let length = rest
            .iter()
            .position(|b| {
                matches!(b, b',' | b':' | b'}' | b']' | b'"' | b' ' | b'\t' | b'\n' | b'\r')
            })
            .unwrap_or(rest.len())
            .max(1);
        let token = &rest[..length];
        let fine = matches!(token, b"true" | b"false" | b"null")
            || serde_json::from_slice::<&serde_json::value::RawValue>(token)
                .is_ok_and(|_| matches!(token[0], b'-' | b'0'..=b'9'));
        self.out.extend_from_slice(if fine { token } else { b"null" });
        self.at += length;
    }

    fn string(&mut self) {
        self.out.push(b'"');
        self.at += 1;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'"' if self.closes(self.at + 1) => break,
                b'"' => {
                    self.out.extend_from_slice(b"\\\"");
                    self.at += 1;
                }
                b'\\' => self.escape(),
                0..0x20 => {
                    self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                    self.at += 1;
                }
                _ => {
                    self.out.push(byte);
                    self.at += 1;
                }
            }
        }
        self.out.push(b'"');
        self.at += 1;
    }

    /// Returns whether a quote closes its string, judged by what stands behind it.
    fn closes(&self, after: usize) -> bool {
        let Some((next, byte)) = self.next_byte(after) else { return true };
        match self.open.last() {
            Some(Open::ObjectKey) => byte == b':',
            Some(Open::ObjectValue) => match byte {
                b'}' => true,
                b',' => matches!(self.next_byte(next + 1), None | Some((_, b'"'))),
                _ => false,
            },
            Some(Open::Array) => match byte {
                b']' => true,
                b',' => match self.next_byte(next + 1) {
                    None => true,
                    Some((at, b't' | b'f' | b'n')) => {
                        let rest = &self.text[at..];
                        [&b"true"[..], b"false", b"null"].iter().any(|l| rest.starts_with(l))
                    }
                    Some((_, byte)) => matches!(byte, b'"' | b'{' | b'[' | b'-' | b'0'..=b'9'),
                },
                _ => false,
            },
            None => true,
        }
    }

    /// The next byte that is not white space, with its index.
    fn next_byte(&self, from: usize) -> Option<(usize, u8)> {
        let rest = self.text.get(from..)?;
        let skipped = rest.iter().position(|b| !b.is_ascii_whitespace())?;
        Some((from + skipped, rest[skipped]))
    }

    fn escape(&mut self) {
        let rest = &self.text[self.at..];
        match rest.get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.out.extend_from_slice(&rest[..2]);
                self.at += 2;
            }
            Some(b'u') => {
                let length = match (unicode(rest), rest.get(6..).and_then(unicode)) {
                    (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
                    (Some(0xd800..0xe000), _) => {
                        self.out.extend_from_slice(b"\\ufffd");
                        self.at += 6;
                        return;
                    }
                    (Some(_), _) => 6,
                    (None, _) => {
                        self.out.extend_from_slice(b"\\\\");
                        self.at += 1;
                        return;
                    }
                };
                self.out.extend_from_slice(&rest[..length]);
                self.at += length;
            }
            _ => {
                self.out.extend_from_slice(b"\\\\");
                self.at += 1;
            }
        }
    }
}

/// The code unit of a `\uXXXX` at the beginning of `text`.
fn unicode(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.first_chunk::<4>()?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: &Expect) {
        let repaired = repair(text);
        let parsed = serde_json::from_str::<serde_json::Value>(&repaired);
        assert!(parsed.is_ok(), "{repaired}: {parsed:?}");
        expected.assert_eq(&repaired);
        assert_eq!(repair(&repaired), repaired, "a repair leaves nothing to repair");
    }

    #[test]
    fn bare_words_become_null() {
        check(
            r#"{"a": NaN, "b": [-Infinity, inf,nan, 1.], "c": True, "d": -1.5e3, "e":null}"#,
            &expect![[
                r#"{"a": null, "b": [null, null,null, null], "c": null, "d": -1.5e3, "e":null}"#
            ]],
        );
    }

    #[test]
    fn quotes_inside_strings_are_escaped() {
        check(
            r#"{"name": "say "hi", he said", "cat": "x", "args": {"l": ["a "b" c", ""]}}"#,
            &expect![[
                r#"{"name": "say \"hi\", he said", "cat": "x", "args": {"l": ["a \"b\" c", ""]}}"#
            ]],
        );
    }

    #[test]
    fn control_characters_and_odd_escapes_are_escaped() {
        check(
            "{\"name\": \"two\nlines\x01\", \"path\": \"C:\\Users\\xmem\\n\"}",
            &expect![[r#"{"name": "two\u000alines\u0001", "path": "C:\\Users\\xmem\n"}"#]],
        );
        check(
            r#"["\ud800", "\ud83d\ude00", "\u12", "\udc00x"]"#,
            &expect![[r#"["\ufffd", "\ud83d\ude00", "\\u12", "\ufffdx"]"#]],
        );
    }
}
