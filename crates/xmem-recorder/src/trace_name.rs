//! The name that Kineto gives a trace: the path that it was exported to (libkineto/src/output_json.cpp,
//! `ChromeTraceLogger::finalizeTrace`). That of the hook's pipe is a temporary folder of this machine, and is replaced.

use memchr::memmem;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The name that it gets.
const NAME: &[u8] = br#""traceName": "trace.json""#;

/// Replaces the name in a stream.
#[derive(Debug)]
pub(crate) struct TraceName {
    /// The key and the path, as Kineto writes them.
    from: Vec<u8>,
    /// The end of the bytes before, in which the name may begin.
    held: Vec<u8>,
}

impl TraceName {
    /// Of a trace that is exported to `path`.
    pub(crate) fn new(path: &Path) -> Self {
        let from = [br#""traceName": ""#, path.as_os_str().as_bytes(), b"\""].concat();
        Self { from, held: Vec::new() }
    }

    /// The next bytes of the stream, less those in which the name may begin.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let mut text = Vec::with_capacity(self.held.len());
        let mut at = 0;
        while let Some(found) = memmem::find(&self.held[at..], &self.from) {
            text.extend_from_slice(&self.held[at..at + found]);
            text.extend_from_slice(NAME);
            at += found + self.from.len();
        }
        let end = at.max(self.held.len().saturating_sub(self.from.len() - 1));
        text.extend_from_slice(&self.held[at..end]);
        self.held.drain(..end);
        text
    }

    /// The bytes that are left.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_pipe_is_replaced_however_the_stream_is_cut() {
        let path = Path::new("/dev/shm/xmem-1-abc/2.json");
        for (text, expected) in [
            (
                r#"{"a": "/dev/shm/xmem-1-abc/2.json", "traceName": "/dev/shm/xmem-1-abc/2.json"}"#,
                r#"{"a": "/dev/shm/xmem-1-abc/2.json", "traceName": "trace.json"}"#,
            ),
            (r#"{"traceName": "other.json"}"#, r#"{"traceName": "other.json"}"#),
            (r#"{"traceName": "/dev/shm/xmem-1-a"#, r#"{"traceName": "/dev/shm/xmem-1-a"#),
            ("", ""),
        ] {
            for size in 1..=text.len().max(1) {
                let mut name = TraceName::new(path);
                let chunks = text.as_bytes().chunks(size);
                let mut written: Vec<u8> = chunks.flat_map(|chunk| name.push(chunk)).collect();
                written.extend(name.finish());
                assert_eq!(String::from_utf8_lossy(&written), expected, "{size}");
            }
        }
    }
}
