//! The files of Python calls in a trace, as base names. PyTorch leaves out folders of the search path
//! (torch/profiler/python_tracer.py, `_prefix_regex`); a file elsewhere has its whole path, often with the name of the user.

use memchr::memmem;

/// The beginning of an event's name that is a path, as Kineto writes it.
const KEY: &[u8] = br#""name": "/"#;

/// Bytes of the longest name that is looked at.
const MAX_NAME: usize = 1 << 16;

/// Shortens paths in a stream.
#[derive(Debug, Default)]
pub(crate) struct BaseNames {
    /// The end of the bytes before, in which a name may begin, or has begun.
    held: Vec<u8>,
}

impl BaseNames {
    /// The next bytes of the stream, less those of a name that is not complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let mut text = Vec::with_capacity(self.held.len());
        let mut at = 0;
        while let Some(found) = memmem::find(&self.held[at..], KEY) {
            let path = at + found + KEY.len() - 1;
            text.extend_from_slice(&self.held[at..path]);
            match end_of_text(&self.held[path..]) {
                Some(length) => {
                    text.extend_from_slice(base_name(&self.held[path..path + length]));
                    at = path + length;
                }
                None if self.held.len() - path > MAX_NAME => at = path,
                None => {
                    text.truncate(text.len() - (KEY.len() - 1));
                    self.held.drain(..path - (KEY.len() - 1));
                    return text;
                }
            }
        }
        let end = at.max(self.held.len().saturating_sub(KEY.len() - 1));
        text.extend_from_slice(&self.held[at..end]);
        self.held.drain(..end);
        text
    }

    /// The bytes that are left.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.held
    }
}

/// The length of a text up to its quotation mark.
fn end_of_text(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// `train.py(12): main` of `/home/me/train.py(12): main`.
fn base_name(name: &[u8]) -> &[u8] {
    let path = memmem::find(name, b"(").map_or(name, |end| &name[..end]);
    let path = memmem::find(name, b".py(").map_or(path, |end| &name[..end]);
    let begin = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    &name[begin..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_file_outside_of_the_search_path_was_in_the_trace() {
        for (text, expected) in [
            (
                r#"{"name": "/home/me/(a) b/x.py(12): main", "ts": 1}"#,
                r#"{"name": "x.py(12): main", "ts": 1}"#,
            ),
            (
                r#"{"name": "/tmp/gen(3): f"},{"name": "/a/b.py(1): g"}"#,
                r#"{"name": "gen(3): f"},{"name": "b.py(1): g"}"#,
            ),
            (r#"{"name": "torch/nn/x.py(1): f"}"#, r#"{"name": "torch/nn/x.py(1): f"}"#),
            (r#"{"name": "/a\"/b.py(1): f"}"#, r#"{"name": "b.py(1): f"}"#),
            (r#"{"args": {"name": "/home/me"}}"#, r#"{"args": {"name": "me"}}"#),
            (r#"{"name": "/home/me/cut"#, r#"{"name": "/home/me/cut"#),
            ("", ""),
        ] {
            for size in 1..=text.len().max(1) {
                let mut names = BaseNames::default();
                let chunks = text.as_bytes().chunks(size);
                let mut written: Vec<u8> = chunks.flat_map(|chunk| names.push(chunk)).collect();
                written.extend(names.finish());
                assert_eq!(String::from_utf8_lossy(&written), expected, "{size}");
            }
        }
    }

    #[test]
    fn a_text_without_an_end_is_passed_on() {
        let text = [br#"{"name": "/"#.as_slice(), &vec![b'x'; 3 * MAX_NAME]].concat();
        let mut names = BaseNames::default();
        let mut written: Vec<u8> = text.chunks(1000).flat_map(|chunk| names.push(chunk)).collect();
        assert!(text.len() - written.len() <= MAX_NAME + 1000 + KEY.len());
        written.extend(names.finish());
        assert_eq!(written, text);
    }
}
