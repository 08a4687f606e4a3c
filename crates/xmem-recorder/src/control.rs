//! The control pipe: lines of JSON from the hook.
//!
//! Everything that runs in the command can write to it, so nothing is trusted: lines have a largest
//! length, each reading a largest size, and it never waits.

use crate::message::Line;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes of the longest line; those of the hook are shorter than `PIPE_BUF` (4096).
const MAX_LINE: usize = 1 << 14;

/// Bytes of one reading: the capacity of a pipe.
const MAX_READING: usize = 1 << 16;

/// The beginning of the hook's lines, which finds one behind an incomplete line of another process.
const LINE_START: &[u8] = br#"{"event":"#;

/// The reader of the pipe.
#[derive(Debug)]
pub(crate) struct Control {
    /// Both ends, so that the hook never finds it without a reader. Reading it does not block.
    pipe: File,
    /// The beginning of a line.
    line: Vec<u8>,
    /// True while the rest of a line that is too long is skipped.
    skips: bool,
}

/// A reading of the pipe.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) lines: Vec<Line>,
    /// True if the pipe was empty at the end.
    pub(crate) is_drained: bool,
}

impl Control {
    /// Makes the pipe.
    pub(crate) fn make(path: &Path) -> io::Result<Self> {
        nix::unistd::mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let pipe = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlag::O_NONBLOCK.bits())
            .open(path)?;
        Ok(Self { pipe, line: Vec::new(), skips: false })
    }

    /// Reads the messages that have arrived, up to a limit; does not wait for more.
    pub(crate) fn read(&mut self) -> Reading {
        let mut reading = Reading::default();
        let mut chunk = [0; 4096];
        let mut total = 0;
        while total < MAX_READING {
            match self.pipe.read(&mut chunk) {
                Ok(length) if length > 0 => {
                    total += length;
                    self.push(&chunk[..length], &mut reading.lines);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Empty: the error is `WouldBlock`, as this process holds the other end, too.
                Ok(_) | Err(_) => {
                    reading.is_drained = true;
                    break;
                }
            }
        }
        reading
    }

    fn push(&mut self, bytes: &[u8], lines: &mut Vec<Line>) {
        let mut parts = bytes.split(|byte| *byte == b'\n');
        let last = parts.next_back().unwrap_or_default();
        for part in parts {
            self.append(part);
            if !std::mem::take(&mut self.skips) {
                lines.extend(message(&self.line));
            }
            self.line.clear();
        }
        self.append(last);
    }

    fn append(&mut self, part: &[u8]) {
        if self.line.len() + part.len() > MAX_LINE {
            self.skips = true;
            self.line = Vec::new();
        }
        if !self.skips {
            self.line.extend_from_slice(part);
        }
    }
}

/// The message in a line; `None` if it has none.
fn message(line: &[u8]) -> Option<Line> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return None;
    }
    let start = line.windows(LINE_START.len()).rposition(|window| window == LINE_START);
    let tail = start.map_or(line, |start| &line[start..]);
    match serde_json::from_slice(line).or_else(|_| serde_json::from_slice(tail)) {
        Ok(line) => Some(line),
        Err(error) => {
            let line = String::from_utf8_lossy(line);
            tracing::debug!(target: "xmem::recorder", %error, %line, "not a message of the hook");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const NOTE: &str = r#"{"event":"recording","pid":7}"#;

    fn control() -> (tempfile::TempDir, Control) {
        let folder = tempfile::tempdir().expect("a folder");
        let control = Control::make(&folder.path().join("control")).expect("made");
        (folder, control)
    }

    /// Messages of a text that is written in pieces of `size` bytes.
    fn messages(text: &[u8], size: usize) -> usize {
        let (_folder, mut control) = control();
        let mut count = 0;
        for piece in text.chunks(size) {
            let mut pipe = control.pipe.try_clone().expect("cloned");
            pipe.write_all(piece).expect("the pipe has space");
            count += control.read().lines.len();
        }
        count
    }

    #[test]
    fn messages_are_found_among_whatever_a_script_writes() {
        let long = "x".repeat(MAX_LINE + 1);
        let rows = [
            (format!("{NOTE}\n{NOTE}\n"), 2),
            (format!("\n\n{NOTE}\r\n"), 1),
            (format!("{{\"event\":\"note\",\"pi{NOTE}\n"), 1),
            (format!("end\nmark\n\u{0}\n{NOTE}\n"), 1),
            (format!("{long}\n{NOTE}\n"), 1),
            (format!("{long}{NOTE}\n{NOTE}\n"), 1),
            (NOTE.to_owned(), 0),
            (format!("{}{}\n{NOTE}\n", "[".repeat(9000), "]".repeat(7000)), 1),
        ];
        for (text, count) in rows {
            for size in [1, 7, 1 << 14] {
                assert_eq!(messages(text.as_bytes(), size), count, "{size}: {text:.60}");
            }
        }
    }

    #[test]
    fn an_empty_pipe_does_not_wait_and_a_flood_is_read_in_parts() {
        let (_folder, mut control) = control();
        assert!(control.read().is_drained);
        let mut pipe = control.pipe.try_clone().expect("cloned");
        let flood = "x".repeat(MAX_READING);
        let written = pipe.write(flood.as_bytes()).expect("the pipe has space");
        assert_eq!(written, MAX_READING);
        assert!(!control.read().is_drained);
        assert!(control.line.len() <= MAX_LINE);
        assert!(control.read().is_drained);
    }
}
