//! One piece of an event list, parsed into columns: simd-json's tape, walked once.
//!
//! The tape says where everything is and what strings mean. Numbers with a fraction and argument
//! lists are taken from the text itself: the one because an `f64` loses nanoseconds, the other
//! because it is kept as text. Strings of the tape lie in the parsed buffer, so the place of a
//! value follows from the place of its key.

use crate::builder::{Builder, Unusable};
use crate::chunk_strings::{LocalStrings, Memory};
use crate::event::{ArgFields, ArgKey, EventFields, EventKey};
use crate::number::{Scalar, thousandths};
use crate::options::EventParser;
use crate::pull::{Events, Next};
use crate::rawtext::{array_end, skip_space};
use crate::repair::repair;
use crate::scan::{MAX_DEPTH, Scanner, Stop, is_record_start};
use crate::strict::{NOT_AN_OBJECT, Rejected, push_event};
use simd_json::{Buffers, INPUT_PADDING, Node, StaticNode, Tape, fill_tape_padded};
use std::borrow::Cow;
use xmem_types::{Diagnostics, Location, Severity};

/// After this many odd events in a chunk, the rest of it goes by way of a tape.
const MAX_ODD_EVENTS: u32 = 16;

/// A run of whole events: the text between two cuts.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// Holds the run, and perhaps more on either side.
    pub(crate) buffer: Vec<u8>,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The offset of `start` in the file.
    pub(crate) offset: u64,
    /// The file ended here without closing the list: the last event may be cut off.
    pub(crate) cut_off: bool,
}

impl Chunk {
    pub(crate) fn text(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }
}

/// The result of one chunk.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) columns: Builder<LocalStrings>,
    pub(crate) diagnostics: Diagnostics,
}

/// A parser with its buffers.
pub(crate) struct Parser {
    kind: EventParser,
    buffers: Buffers,
    scratch: Vec<u8>,
    tape: Tape<'static>,
    memory: Memory,
}

impl Parser {
    pub(crate) fn new(kind: EventParser) -> Self {
        let buffers = Buffers::with_max_depth(0, MAX_DEPTH as usize + 8);
        let tape = Tape::null().reset();
        Self { kind, buffers, scratch: Vec::new(), tape, memory: Memory::default() }
    }

    /// Parses a chunk into `columns`, which must be empty.
    pub(crate) fn parse(&mut self, chunk: &Chunk, mut columns: Builder<LocalStrings>) -> Parsed {
        self.memory.next_chunk();
        std::mem::swap(&mut columns.strings.memory, &mut self.memory);
        let mut sink = Sink { columns, diagnostics: Diagnostics::default(), offset: chunk.offset };
        let text = chunk.text();
        match self.kind {
            _ if chunk.cut_off => self.one_by_one(text, 0, true, &mut sink),
            EventParser::Pull => self.pull(text, &mut sink),
            EventParser::Tape => self.tape(text, 0, &mut sink),
        }
        std::mem::swap(&mut sink.columns.strings.memory, &mut self.memory);
        Parsed { columns: sink.columns, diagnostics: sink.diagnostics }
    }

    /// Number of nodes on the tape of a chunk; nothing is made of them.
    pub(crate) fn count_nodes(&mut self, chunk: &Chunk) -> Result<usize, simd_json::Error> {
        let (text, _) = trim(chunk.text(), 0);
        self.with_tape(text, |nodes, _| nodes.len())
    }

    /// Parses events with commas between them, all or none; whether it did. `at` is where they are
    /// in the chunk. A value that is not an event is only taken alone, so that its place is known.
    fn list(&mut self, text: &[u8], at: usize, sink: &mut Sink) -> bool {
        let taken = self.with_tape(text, |nodes, parsed_at| {
            let taken = are_events(nodes) || after(nodes, 1) == nodes.len();
            if taken {
                sink.list(nodes, &Source { text, parsed_at }, at);
            }
            taken
        });
        taken.unwrap_or(false)
    }

    /// Gives `read` the tape of `[text]` and the address that the text's first byte has there.
    fn with_tape<T>(
        &mut self,
        text: &[u8],
        read: impl FnOnce(&[Node<'_>], usize) -> T,
    ) -> Result<T, simd_json::Error> {
        self.scratch.clear();
        self.scratch.push(b'[');
        self.scratch.extend_from_slice(text);
        self.scratch.push(b']');
        let length = self.scratch.len();
        self.scratch.resize(length + INPUT_PADDING, b' ');
        let parsed_at = self.scratch.as_ptr().addr() + 1;
        let mut tape = std::mem::replace(&mut self.tape, Tape(Vec::new())).reset();
        let result = fill_tape_padded(&mut self.scratch, length, &mut self.buffers, &mut tape);
        let result = result.map(|()| read(&tape.0, parsed_at));
        self.tape = tape.reset();
        result
    }

    /// Parses events straight from their text; those that are odd go to simd-json.
    fn pull(&mut self, text: &[u8], sink: &mut Sink) {
        let mut events = Events::new(text);
        let mut event = EventFields::default();
        let mut odd = 0;
        loop {
            match events.next(&mut event, &mut sink.columns.strings.memory.arguments) {
                Next::Event(at) => {
                    if let Err(unusable) = sink.columns.push(&event) {
                        sink.bad_event(at, || unusable.reason().to_owned());
                    }
                }
                Next::Odd(from) if odd == MAX_ODD_EVENTS => return self.tape(text, from, sink),
                Next::Odd(from) => {
                    odd += 1;
                    let Stop::EventEnd(end) = Scanner::default().next_element(text, from) else {
                        return self.event(text, from, text.len(), false, sink);
                    };
                    self.event(text, from, end, false, sink);
                    events.go_on(end);
                }
                Next::End => return,
            }
        }
    }

    /// Parses the events from `from` on by way of a tape.
    fn tape(&mut self, chunk: &[u8], from: usize, sink: &mut Sink) {
        let (text, at) = trim(&chunk[from..], from);
        if !text.is_empty() && !self.list(text, at, sink) {
            self.one_by_one(chunk, from, false, sink);
        }
    }

    /// Parses a chunk that is not well-formed as a whole: one event after the other from `from` on.
    fn one_by_one(&mut self, text: &[u8], mut from: usize, cut_off: bool, sink: &mut Sink) {
        let mut scanner = Scanner::default();
        loop {
            let stop = scanner.next_element(text, from);
            let (end, at_end) = match stop {
                Stop::EventEnd(end) => (end, false),
                Stop::More(end) | Stop::ListEnd(end) | Stop::TooDeep(end) => (end, true),
            };
            let end = if at_end { text.len() } else { end };
            self.event(text, from, end, cut_off && at_end, sink);
            if at_end {
                return;
            }
            from = end;
        }
    }

    /// Parses what seems to be one event; if it cannot be, whatever records begin on new lines
    /// inside it. With `cut_off` the last one may be incomplete without a word.
    fn event(&mut self, chunk: &[u8], from: usize, end: usize, cut_off: bool, sink: &mut Sink) {
        let (text, at) = trim(&chunk[from..end], from);
        if text.is_empty() || self.list(text, at, sink) || strict(text, at, sink) {
            return;
        }
        let mut starts = vec![0];
        starts.extend((1..text.len()).filter(|&i| {
            text[i] == b'{'
                && text[..i]
                    .iter()
                    .rposition(|b| !matches!(b, b' ' | b'\t'))
                    .is_some_and(|before| text[before] == b'\n')
                && is_record_start(&text[i..])
        }));
        starts.push(text.len());
        for (index, piece) in starts.windows(2).enumerate() {
            let incomplete = cut_off && index + 2 == starts.len();
            let (piece, at) = trim(&text[piece[0]..piece[1]], at + piece[0]);
            // Behind the last record may stand the end of the list, which is not part of it.
            let whole = match Scanner::default().next_event(piece, 0) {
                Stop::EventEnd(end) if end < piece.len() => &piece[..end],
                _ => &[],
            };
            if piece.is_empty()
                || (!whole.is_empty() && self.list(whole, at, sink))
                || self.list(piece, at, sink)
                || strict(piece, at, sink)
                || incomplete
            {
                continue;
            }
            let text = repair(&String::from_utf8_lossy(piece));
            let rows = sink.columns.checked_rows();
            match push_event(&text, &mut sink.columns) {
                Ok(()) => sink.repaired(at, rows),
                Err(rejected) => sink.rejected(&rejected, at),
            }
        }
    }
}

/// Parses one event that the tape does not hold, though it may be JSON: its numbers are too large,
/// or its only oddity is a byte that is not UTF-8. Whether it was JSON.
fn strict(text: &[u8], at: usize, sink: &mut Sink) -> bool {
    let unicode = String::from_utf8_lossy(text);
    let rows = sink.columns.checked_rows();
    match push_event(&unicode, &mut sink.columns) {
        Ok(()) if matches!(unicode, Cow::Owned(_)) => sink.repaired(at, rows),
        Ok(()) => {}
        Err(Rejected::NotJson(_)) => return false,
        Err(rejected) => sink.rejected(&rejected, at),
    }
    true
}

/// `text` without white space and commas around it, and where it is then.
fn trim(text: &[u8], at: usize) -> (&[u8], usize) {
    let around = |b: &u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | b',');
    let start = text.iter().position(|b| !around(b)).unwrap_or(text.len());
    let end = text.iter().rposition(|b| !around(b)).map_or(start, |last| last + 1);
    (&text[start..end], at + start)
}

/// The text behind a tape.
struct Source<'a> {
    text: &'a [u8],
    /// Address of the parsed copy of `text`.
    parsed_at: usize,
}

impl<'a> Source<'a> {
    /// The index in the text at which a string of the tape begins, after its quote.
    fn place(&self, string: &str) -> usize {
        string.as_ptr().addr().wrapping_sub(self.parsed_at)
    }

    /// The text from the value of `key` on.
    fn value(&self, key: &str) -> usize {
        let start = self.place(key);
        let quote = start + key.len();
        let after = if self.text.get(quote) == Some(&b'"') {
            quote + 1
        } else {
            // The key has escapes and is longer in the text than it is in the tape.
            crate::rawtext::string_end(self.text, start.wrapping_sub(1))
        };
        let colon = skip_space(self.text, after);
        skip_space(self.text, colon + 1)
    }

    /// The number that is the value of `key`, as written.
    fn number(&self, key: &str) -> &'a str {
        let rest = self.text.get(self.value(key)..).unwrap_or_default();
        let length = rest
            .iter()
            .position(|b| !matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'))
            .unwrap_or(rest.len());
        std::str::from_utf8(&rest[..length]).unwrap_or_default()
    }

    /// The array that is the value of `key`, as written; `next` is the key after it, if any.
    fn array(&self, key: &str, next: Option<&str>) -> &'a [u8] {
        let start = self.value(key);
        if let Some(next) = next {
            let mut end = self.place(next).wrapping_sub(1);
            while let Some(b' ' | b'\t' | b'\n' | b'\r' | b',') = self.text.get(end.wrapping_sub(1))
            {
                end -= 1;
            }
            if let Some(text) = self.text.get(start..end) {
                return text;
            }
        }
        self.text.get(start..array_end(self.text, start)).unwrap_or_default()
    }
}

/// The destination of parsed events.
struct Sink {
    columns: Builder<LocalStrings>,
    diagnostics: Diagnostics,
    /// The offset of the chunk in the file.
    offset: u64,
}

impl Sink {
    fn report(
        &mut self,
        code: &'static str,
        severity: Severity,
        at: usize,
        message: impl FnOnce() -> String,
    ) {
        let place = Location::ByteOffset(self.offset + at as u64);
        self.diagnostics.report(code, severity, Some(place), message);
    }

    fn bad_event(&mut self, at: usize, reason: impl FnOnce() -> String) {
        self.report("bad-event", Severity::Warning, at, || {
            format!("an event is ignored: {}", reason())
        });
    }

    /// Notes that the last event was repaired; `rows` is the number of checked rows before it.
    fn repaired(&mut self, at: usize, rows: usize) {
        self.columns.evidence.repaired += u64::from(self.columns.checked_rows() > rows);
        self.report("repaired-event", Severity::Note, at, || {
            "an event is not standard JSON (bare NaN, unescaped characters or the like); it was \
             repaired"
                .to_owned()
        });
    }

    fn rejected(&mut self, rejected: &Rejected, at: usize) {
        self.bad_event(at, || rejected.reason());
    }

    /// Appends the elements of the tape's outermost array; the text is at `at` in the chunk.
    fn list(&mut self, nodes: &[Node<'_>], source: &Source<'_>, at: usize) {
        let mut row = 1;
        let mut last = 0;
        while row < nodes.len() {
            let next = after(nodes, row);
            if let (true, Some(Node::String(key))) = (next > row + 1, nodes.get(row + 1)) {
                last = source.place(key);
            }
            let reason = match nodes[row] {
                Node::Object { .. } => {
                    let event = event(&nodes[row + 1..next], source);
                    self.columns.push(&event).err().map(Unusable::reason)
                }
                _ => Some(NOT_AN_OBJECT),
            };
            if let Some(reason) = reason {
                self.bad_event(at + object_start(source.text, last), || reason.to_owned());
            }
            row = next;
        }
    }
}

/// The index of the brace that opens the object whose first key's text begins at `key`.
fn object_start(text: &[u8], key: usize) -> usize {
    text[..key.min(text.len())].iter().rposition(|&b| b == b'{').unwrap_or(0)
}

/// Returns whether all elements of the tape's outermost array are objects with something in them.
fn are_events(nodes: &[Node<'_>]) -> bool {
    let mut row = 1;
    while row < nodes.len() {
        if !matches!(nodes[row], Node::Object { len: 1.., .. }) {
            return false;
        }
        row = after(nodes, row);
    }
    true
}

/// The row after the value at `row`.
fn after(nodes: &[Node<'_>], row: usize) -> usize {
    match nodes[row] {
        Node::Object { count, .. } | Node::Array { count, .. } => row + 1 + count,
        Node::String(_) | Node::Static(_) => row + 1,
    }
}

/// The fields of one event, of the nodes inside its object.
fn event<'a>(nodes: &[Node<'a>], source: &Source<'a>) -> EventFields<'a> {
    let mut event = EventFields::default();
    let mut args = 0..0;
    let mut row = 0;
    while let Some(&Node::String(key)) = nodes.get(row) {
        let value = row + 1;
        row = after(nodes, value);
        match EventKey::of(key) {
            Some(EventKey::Args) => {
                if let Node::Object { .. } = nodes[value] {
                    args = value + 1..row;
                }
            }
            Some(known @ (EventKey::Time | EventKey::Duration)) => {
                event.set(known, time(&nodes[value], key, source));
            }
            Some(known) => event.set(known, scalar(&nodes[value], key, source)),
            None => {}
        }
    }
    if event.table().has_args() {
        event.args = arguments(&nodes[args], source);
    }
    event
}

fn arguments<'a>(nodes: &[Node<'a>], source: &Source<'a>) -> ArgFields<'a> {
    let mut args = ArgFields::default();
    let mut row = 0;
    while let Some(&Node::String(key)) = nodes.get(row) {
        let value = row + 1;
        row = after(nodes, value);
        let Some(known) = ArgKey::of(key) else { continue };
        if let Node::Array { .. } = nodes[value] {
            let next = match nodes.get(row) {
                Some(&Node::String(next)) => Some(next),
                _ => None,
            };
            args.set_raw(known, Some(source.array(key, next)));
        } else {
            args.set(known, scalar(&nodes[value], key, source));
        }
    }
    args
}

#[inline]
fn time<'a>(node: &Node<'a>, key: &str, source: &Source<'a>) -> Option<Scalar<'a>> {
    if let Node::Static(StaticNode::F64(_)) = node
        && let Some(value) = thousandths(source.text.get(source.value(key)..)?)
    {
        return Some(Scalar::Thousandths(value));
    }
    scalar(node, key, source)
}

#[inline]
fn scalar<'a>(node: &Node<'a>, key: &str, source: &Source<'a>) -> Option<Scalar<'a>> {
    match *node {
        Node::String(text) => Some(Scalar::Text(text)),
        Node::Static(StaticNode::I64(value)) => Some(Scalar::Int(value)),
        Node::Static(StaticNode::U64(value)) => Some(match i64::try_from(value) {
            Ok(value) => Scalar::Int(value),
            Err(_) => Scalar::Number(source.number(key)),
        }),
        Node::Static(StaticNode::F64(_)) => Some(Scalar::Number(source.number(key))),
        _ => None,
    }
}
