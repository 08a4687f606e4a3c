//! The text of a trace cut into header keys and runs of whole events, as it streams in.

use crate::columns::TraceHeader;
use crate::parse::Chunk;
use crate::scan::{Input, MAX_DEPTH, Scanner, Stop, is_record_start};
use crate::source::Text;
use crate::{ReadError, ReadOptions};
use xmem_types::{Diagnostics, Location, Seal, Sealed, Severity};

/// Bytes of white space before the first bracket beyond which the input is not a trace.
const LEADING_SPACE_LIMIT: u64 = 1 << 20;

/// Free bytes of a buffer below which no read is made, unless chunks are small.
const MIN_READ: usize = 16 << 10;

/// Size of a buffer before it grows.
const INITIAL_BUFFER: usize = 1 << 20;

/// The place of the reader in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first bracket.
    Start,
    /// Between the keys of the outermost object.
    Keys,
    /// In the list of events.
    Events,
    /// Behind the last bracket, or where the text breaks off.
    Done,
}

/// Reads a document: the chunks of its events are handed out, its header is kept.
pub(crate) struct Document<'a> {
    text: Text<'a>,
    input: &'a str,
    state: State,
    bare_list: bool,
    found_events: bool,
    buffer: Vec<u8>,
    /// The end of the text in `buffer`.
    filled: usize,
    /// The end of the text in `buffer` that is processed.
    used: usize,
    /// The offset of `buffer` in the file.
    offset: u64,
    /// No more text will come.
    ended: bool,
    /// Inside an event that is too long to be read.
    dropping: bool,
    scanner: Scanner,
    /// The end of the text in `buffer` that is scanned.
    scanned: usize,
    chunk: usize,
    event_limit: usize,
    seal: Seal,
    pub(crate) header: TraceHeader,
    pub(crate) diagnostics: Diagnostics,
}

impl<'a> Document<'a> {
    pub(crate) fn new(text: Text<'a>, input: &'a str, options: &ReadOptions) -> Self {
        let bytes =
            |size: xmem_types::Bytes| usize::try_from(size.get()).unwrap_or(usize::MAX >> 2);
        Self {
            text,
            input,
            state: State::Start,
            bare_list: false,
            found_events: false,
            buffer: Vec::new(),
            filled: 0,
            used: 0,
            offset: 0,
            ended: false,
            dropping: false,
            scanner: Scanner::default(),
            scanned: 0,
            chunk: bytes(options.chunk).clamp(64, 1 << 30),
            event_limit: bytes(options.event_limit).clamp(64, 1 << 30),
            seal: Seal::default(),
            header: TraceHeader::default(),
            diagnostics: Diagnostics::default(),
        }
    }

    /// Returns whether the file is a list of events without an object around it.
    pub(crate) fn is_bare_list(&self) -> bool {
        self.bare_list
    }

    /// What the seal of the recording says; known when the document is over.
    pub(crate) fn sealed(&self) -> Sealed {
        self.seal.clone().check()
    }

    /// The next run of events; `spare` is a buffer to read into. `None` when the document is over.
    pub(crate) fn next_chunk(
        &mut self,
        spare: impl FnOnce() -> Vec<u8>,
    ) -> Result<Option<Chunk>, ReadError> {
        loop {
            match self.state {
                State::Start => self.start()?,
                State::Keys => self.key()?,
                State::Events => return self.events(spare),
                State::Done => return Ok(None),
            }
        }
    }

    /// Reads more text; whether there was any.
    fn fill(&mut self) -> Result<bool, ReadError> {
        if self.ended {
            return Ok(false);
        }
        if self.used > 0 && self.state != State::Events {
            self.buffer.copy_within(self.used..self.filled, 0);
            self.offset += self.used as u64;
            self.filled -= self.used;
            self.scanned -= self.used.min(self.scanned);
            self.used = 0;
        }
        if self.buffer.len() - self.filled < (self.chunk / 16).min(MIN_READ) {
            let most = self.used + self.event_limit.max(self.buffer_size()) + 1;
            let size = (self.filled * 2).min(most).max(self.buffer_size());
            self.buffer.resize(size.max(self.filled + 1), 0);
        }
        let length = self.read_to(self.filled)?;
        self.filled += length;
        self.ended = length == 0;
        Ok(!self.ended)
    }

    /// Reads text into the buffer from there on; returns how much there was.
    fn read_to(&mut self, from: usize) -> Result<usize, ReadError> {
        let length = self.text.read(&mut self.buffer[from..])?;
        self.seal.push(&self.buffer[from..from + length]);
        Ok(length)
    }

    /// Room for a chunk and the beginning of what follows; less for huge chunks, which grow.
    fn buffer_size(&self) -> usize {
        (self.chunk + self.chunk / 8).min(INITIAL_BUFFER)
    }

    /// The next byte that is not white space, moving up to it; `None` at the end.
    fn peek(&mut self) -> Result<Option<u8>, ReadError> {
        loop {
            while self.used < self.filled {
                match self.buffer[self.used] {
                    b' ' | b'\t' | b'\n' | b'\r' => self.used += 1,
                    byte => return Ok(Some(byte)),
                }
            }
            if self.state == State::Start && self.offset + self.used as u64 > LEADING_SPACE_LIMIT {
                return Err(self.not_a_trace("it begins with white space only".to_owned()));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    fn start(&mut self) -> Result<(), ReadError> {
        while self.filled < 3 && self.fill()? {}
        if self.buffer[..self.filled].starts_with(b"\xef\xbb\xbf") {
            self.used = 3;
        }
        match self.peek()? {
            Some(b'{') => self.state = State::Keys,
            Some(b'[') => {
                self.bare_list = true;
                self.found_events = true;
                self.state = State::Events;
            }
            Some(_) => {
                while self.filled - self.used < SHOWN_HEAD && self.fill()? {}
                let reason = describe(&self.buffer[self.used..self.filled]);
                return Err(self.not_a_trace(reason));
            }
            None => return Err(ReadError::Empty { input: self.input.to_owned() }),
        }
        self.used += 1;
        self.scanned = self.used;
        Ok(())
    }

    /// One key of the outermost object with its value, or the end of the object.
    fn key(&mut self) -> Result<(), ReadError> {
        match self.peek()? {
            Some(b',') => {
                self.used += 1;
                return Ok(());
            }
            Some(b'}') => {
                self.used += 1;
                return self.finish();
            }
            Some(b'"') => {}
            Some(_) if !self.found_events => {
                return Err(self.not_a_trace(format!(
                    "at byte {} a key should stand",
                    self.offset + self.used as u64
                )));
            }
            Some(_) => return self.broken_header(),
            None => return self.cut_off(),
        }
        let Some(key_end) = self.string_end()? else { return self.cut_off() };
        let key = key_text(&self.buffer[self.used..key_end]);
        self.used = key_end;
        match self.peek()? {
            Some(b':') => self.used += 1,
            None => return self.cut_off(),
            Some(_) if self.found_events => return self.broken_header(),
            Some(_) => {
                return Err(self.not_a_trace(format!("key `{key}` is not followed by a colon")));
            }
        }
        if self.peek()? == Some(b'[') && key == "traceEvents" {
            self.used += 1;
            self.found_events = true;
            self.state = State::Events;
            self.scanner = Scanner::default();
            self.scanned = self.used;
            return Ok(());
        }
        self.value(&key)
    }

    /// The end of the string that begins at `used`.
    fn string_end(&mut self) -> Result<Option<usize>, ReadError> {
        let mut at = self.used + 1;
        let mut escaped = false;
        loop {
            while at < self.filled {
                match self.buffer[at] {
                    _ if escaped => escaped = false,
                    b'\\' => escaped = true,
                    b'"' => return Ok(Some(at + 1)),
                    _ => {}
                }
                at += 1;
            }
            if at - self.used > self.event_limit {
                return Err(self.not_a_trace("a key has no end".to_owned()));
            }
            at -= self.used;
            if !self.fill()? {
                return Ok(None);
            }
            at += self.used;
        }
    }

    /// The value of a header key, from `used` on.
    fn value(&mut self, key: &str) -> Result<(), ReadError> {
        let mut depth = 0u32;
        let (mut in_string, mut escaped, mut too_long) = (false, false, false);
        let mut at = self.used;
        loop {
            while at < self.filled {
                let byte = self.buffer[at];
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if in_string => escaped = true,
                    b'"' => in_string = !in_string,
                    _ if in_string => {}
                    b'{' | b'[' => {
                        depth += 1;
                        if depth > MAX_DEPTH {
                            return Err(self.too_deep(at));
                        }
                    }
                    b'}' | b']' if depth > 0 => depth -= 1,
                    b'}' | b',' | b']' if depth == 0 => {
                        if too_long {
                            self.too_long(key);
                        } else {
                            let raw = String::from_utf8_lossy(&self.buffer[self.used..at]);
                            self.header.take(key, &raw);
                        }
                        self.used = if byte == b']' { at + 1 } else { at };
                        return Ok(());
                    }
                    _ => {}
                }
                at += 1;
            }
            if at - self.used > self.event_limit {
                too_long = true;
                self.used = at;
            }
            at -= self.used;
            if !self.fill()? {
                return self.cut_off();
            }
            at += self.used;
        }
    }

    fn too_long(&mut self, key: &str) {
        let place = Location::ByteOffset(self.offset + self.used as u64);
        self.diagnostics.report("long-value", Severity::Note, Some(place), || {
            format!("the value of the top-level key `{key}` is too long and is ignored")
        });
    }

    /// Reads until a buffer of events is full, or the list ends.
    fn events(&mut self, spare: impl FnOnce() -> Vec<u8>) -> Result<Option<Chunk>, ReadError> {
        loop {
            let input = if self.ended { Input::Complete } else { Input::Partial };
            if self.dropping {
                self.drop_on();
            }
            let stop = self.scanner.scan(&self.buffer[..self.filled], self.scanned, input);
            match stop {
                Stop::ListEnd(at) => {
                    let chunk = self.hand_out(at, spare);
                    self.used += 1;
                    self.scanned = self.used;
                    self.scanner = Scanner::default();
                    self.state = State::Keys;
                    if self.bare_list {
                        self.finish()?;
                    }
                    return Ok(Some(chunk));
                }
                Stop::TooDeep(at) => return Err(self.too_deep(at)),
                Stop::EventEnd(at) | Stop::More(at) => self.scanned = at,
            }
            if self.filled - self.used >= self.chunk {
                if let Some(end) = self.scanner.last_end.take() {
                    return Ok(Some(self.hand_out(end, spare)));
                }
                if self.filled - self.used > self.event_limit {
                    if let Some(end) = self.lost_record() {
                        self.scanner = Scanner::default();
                        self.scanned = end;
                        return Ok(Some(self.hand_out(end, spare)));
                    }
                    self.report_dropped();
                    self.dropping = true;
                    self.drop_scanned();
                }
            }
            if !self.fill()? && input == Input::Complete {
                let mut chunk = self.hand_out(self.filled, spare);
                chunk.cut_off = true;
                self.cut_off()?;
                return Ok(Some(chunk));
            }
        }
    }

    /// Hands out the buffer up to `end`; what follows is read into a new one.
    fn hand_out(&mut self, end: usize, spare: impl FnOnce() -> Vec<u8>) -> Chunk {
        let mut next = spare();
        let rest = self.filled - end;
        let size = self.buffer_size().max(rest);
        if next.len() < size {
            next.resize(size, 0);
        }
        next[..rest].copy_from_slice(&self.buffer[end..self.filled]);
        let chunk = Chunk {
            buffer: std::mem::replace(&mut self.buffer, next),
            start: self.used,
            end,
            offset: self.offset + self.used as u64,
            cut_off: false,
        };
        self.offset += end as u64;
        self.filled = rest;
        self.used = 0;
        self.scanned = self.scanned.saturating_sub(end);
        self.scanner.last_end = None;
        chunk
    }

    /// The start of the last record that begins on a line of its own inside what seems to be one
    /// very long event: brackets do not match in an event before it. What is before it is handed
    /// out together; the parser looks for the records in there.
    fn lost_record(&self) -> Option<usize> {
        let text = &self.buffer[self.used..self.scanned];
        let mut end = text.len();
        while let Some(newline) = text[..end].iter().rposition(|&b| b == b'\n') {
            let line = &text[newline..];
            if is_record_start(line.trim_ascii_start()) && !text[..newline].trim_ascii().is_empty()
            {
                return Some(self.used + newline);
            }
            end = newline;
        }
        None
    }

    /// Forgets an event that is too long as far as it is scanned.
    fn drop_scanned(&mut self) {
        self.buffer.copy_within(self.scanned..self.filled, 0);
        self.offset += self.scanned as u64;
        self.filled -= self.scanned;
        self.used = 0;
        self.scanned = 0;
    }

    /// Forgets more of that event, up to its end if it is there.
    fn drop_on(&mut self) {
        let text = &self.buffer[..self.filled];
        match self.scanner.next_event(text, self.scanned) {
            Stop::EventEnd(end) | Stop::ListEnd(end) | Stop::TooDeep(end) => {
                self.dropping = false;
                self.scanned = end;
            }
            Stop::More(end) => self.scanned = end,
        }
        self.drop_scanned();
    }

    fn report_dropped(&mut self) {
        let place = Location::ByteOffset(self.offset + self.used as u64);
        self.diagnostics.report("bad-event", Severity::Warning, Some(place), || {
            "an event is ignored: it is longer than any event of a profiler".to_owned()
        });
    }

    /// Behind the last bracket: only white space should follow.
    fn finish(&mut self) -> Result<(), ReadError> {
        if !self.found_events {
            return Err(self.no_events());
        }
        if self.peek()?.is_some() {
            let place = Location::ByteOffset(self.offset + self.used as u64);
            self.diagnostics.report("trailing-data", Severity::Note, Some(place), || {
                "data after the end of the trace is ignored".to_owned()
            });
        }
        self.done()
    }

    /// Nothing more is wanted, but compressed data is checked to its end.
    fn done(&mut self) -> Result<(), ReadError> {
        self.state = State::Done;
        if let Text::Inflated { .. } = self.text {
            while self.read_to(0)? > 0 {}
            if self.text.truncated() {
                self.report_truncated();
            }
        }
        Ok(())
    }

    /// The text ends before the document does.
    fn cut_off(&mut self) -> Result<(), ReadError> {
        if !self.found_events {
            return Err(self.no_events());
        }
        self.report_truncated();
        self.state = State::Done;
        Ok(())
    }

    fn report_truncated(&mut self) {
        let place = Location::ByteOffset(self.offset + self.filled as u64);
        self.diagnostics.report("truncated", Severity::Warning, Some(place), || {
            "the file is truncated (was the profiled process killed?); the events before the end \
             are used"
                .to_owned()
        });
    }

    /// The events are read but what follows them makes no sense.
    fn broken_header(&mut self) -> Result<(), ReadError> {
        let place = Location::ByteOffset(self.offset + self.used as u64);
        self.diagnostics.report("bad-header", Severity::Warning, Some(place), || {
            "the text after the events is not JSON and is ignored".to_owned()
        });
        self.done()
    }

    fn no_events(&self) -> ReadError {
        self.not_a_trace("it has no `traceEvents` list".to_owned())
    }

    fn not_a_trace(&self, reason: String) -> ReadError {
        ReadError::NotATrace { input: self.input.to_owned(), reason }
    }

    fn too_deep(&self, at: usize) -> ReadError {
        ReadError::NestingTooDeep {
            input: self.input.to_owned(),
            offset: self.offset + at as u64,
            limit: MAX_DEPTH,
        }
    }
}

/// The text of a quoted key.
fn key_text(quoted: &[u8]) -> String {
    let quoted = String::from_utf8_lossy(quoted);
    serde_json::from_str(&quoted)
        .unwrap_or_else(|_| quoted.strip_prefix('"').unwrap_or(&quoted).replace('"', ""))
}

/// The bytes of another file's head that an error shows.
const SHOWN_HEAD: usize = 16;

/// The kind of file that begins with these bytes, as a fragment.
fn describe(head: &[u8]) -> String {
    let known = match head {
        [b'P', b'K', ..] => "it begins like a zip archive: unpack it",
        [b'B', b'Z', b'h', ..] => "it begins like bzip2 data: unpack it",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "it begins like xz data: unpack it",
        [0x80, 2..=5, ..] => "it begins like a Python pickle; is it a memory snapshot?",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it begins like UTF-16 text: save it as UTF-8",
        [b'<', ..] => "it begins like HTML",
        _ => {
            let shown = String::from_utf8_lossy(&head[..head.len().min(SHOWN_HEAD)]);
            return format!("it begins with `{}`, not with a bracket", shown.escape_debug());
        }
    };
    known.to_owned()
}
