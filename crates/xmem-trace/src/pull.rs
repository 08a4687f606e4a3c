//! Events read straight from their text, without a tape in between.
//!
//! Everything that JSON forbids and everything that is unusual (an escape in a name, a number of
//! twenty digits, a list where a number should stand) is handed back as [`Next::Odd`]: such an event
//! goes to simd-json and, if need be, to `repair`. What is read here is therefore plain, valid JSON,
//! and says exactly what the tape of the same text says.

use crate::argument_cache::ArgumentCache;
use crate::event::{ArgFields, ArgKey, EventFields, EventKey};
use crate::number::{Number, Scalar, number, plain_end};
use crate::string_scan::{Text, text_end};
use memchr::{memchr, memrchr};

/// Nesting of brackets within one value beyond which it is odd.
const MAX_VALUE_DEPTH: u32 = 64;

/// The next item in a run of events.
pub(crate) enum Next {
    /// An event, which begins here.
    Event(usize),
    /// Text that begins here and has to be read in another way.
    Odd(usize),
    /// The run is over.
    End,
}

/// The events of a run, one by one. Commas between them are not insisted on.
pub(crate) struct Events<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Events<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Goes on behind an odd event.
    pub(crate) fn go_on(&mut self, at: usize) {
        self.at = at;
    }

    /// Reads what comes next; if it is an event, into `event`.
    pub(crate) fn next(&mut self, event: &mut EventFields<'a>, cache: &mut ArgumentCache) -> Next {
        let mut start = self.at;
        while let Some(b' ' | b'\n' | b',' | b'\r' | b'\t') = self.text.get(start) {
            start += 1;
        }
        if start == self.text.len() {
            return Next::End;
        }
        let mut cursor = Cursor { text: self.text, at: start };
        *event = EventFields::default();
        match cursor.event(event, cache) {
            Some(()) => {
                self.at = cursor.at;
                Next::Event(start)
            }
            None => Next::Odd(start),
        }
    }
}

/// The span of an event's arguments from the key of the first array to the end of the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrays {
    /// None has come yet.
    None,
    Between(usize, usize),
    /// They are dealt with, or other arguments stand between them.
    Mixed,
}

impl Arrays {
    fn begin_at(self, at: usize) -> bool {
        matches!(self, Self::Between(start, _) if start == at)
    }
}

/// A place in the text. Its functions read what stands there and move behind it; `None` means that
/// it is odd.
struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The byte here.
    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The next byte that is not white space; goes there.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.byte()? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Goes behind the next byte if it is this one.
    #[inline]
    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    /// Behind a member of an object: whether another one follows.
    #[inline]
    fn another(&mut self, close: u8) -> Option<bool> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b',' => Some(true),
            _ if byte == close => Some(false),
            _ => None,
        }
    }

    /// A key and its colon; goes to the value.
    #[inline]
    fn key(&mut self) -> Option<&'a str> {
        self.peek()?;
        let key = self.string()?;
        self.expect(b':')?;
        self.peek()?;
        Some(key)
    }

    /// The content of the string here, which has no escapes.
    #[inline]
    fn string(&mut self) -> Option<&'a str> {
        if self.byte()? != b'"' {
            return None;
        }
        let (end, text) = text_end(self.text, self.at + 1);
        let content = match text {
            Text::Plain(content) => content,
            Text::Unicode => std::str::from_utf8(&self.text[self.at + 1..end]).ok()?,
            Text::Odd => return None,
        };
        self.at = end + 1;
        Some(content)
    }

    /// Goes behind `literal` if it stands here.
    #[inline]
    fn literal<const N: usize>(&mut self, literal: &[u8; N]) -> bool {
        let found = self.text[self.at..].first_chunk() == Some(literal);
        self.at += if found { N } else { 0 };
        found
    }

    /// The key of an event's member, with its colon. `usual` is its place in the order in which
    /// Kineto writes them (libkineto, output_json.cpp): no more than a guess.
    #[inline]
    fn event_key(&mut self, usual: &mut u8) -> Option<Option<EventKey>> {
        self.peek()?;
        let guess = match *usual {
            0 => self.literal(b"\"ph\": ").then_some(EventKey::Phase),
            1 => self.literal(b"\"cat\": ").then_some(EventKey::Category),
            2 => self.literal(b"\"name\": ").then_some(EventKey::Name),
            3 => self.literal(b"\"pid\": ").then_some(EventKey::Process),
            4 => self.literal(b"\"tid\": ").then_some(EventKey::Thread),
            5 => self.literal(b"\"ts\": ").then_some(EventKey::Time),
            6 => self.literal(b"\"dur\": ").then_some(EventKey::Duration),
            _ => self.literal(b"\"args\": ").then_some(EventKey::Args),
        };
        if guess.is_some() {
            *usual += 1;
            self.peek()?;
            return Some(guess);
        }
        let key = EventKey::of(self.key()?);
        // Their order is the usual one.
        *usual = key.map_or(*usual, |key| key as u8 + 1);
        Some(key)
    }

    /// An event with at least one member.
    #[inline]
    fn event(&mut self, event: &mut EventFields<'a>, cache: &mut ArgumentCache) -> Option<()> {
        self.expect(b'{')?;
        let mut usual = 0;
        loop {
            match self.event_key(&mut usual)? {
                Some(EventKey::Args) if self.byte()? == b'{' => {
                    event.args = ArgFields::default();
                    self.args(&mut event.args, cache)?;
                }
                Some(EventKey::Args) | None => self.skip(MAX_VALUE_DEPTH)?,
                Some(known @ (EventKey::Time | EventKey::Duration)) => {
                    event.set(known, Some(self.scalar(Number::time)?));
                }
                Some(known) => event.set(known, Some(self.scalar(Number::scalar)?)),
            }
            if !self.another(b'}')? {
                break;
            }
        }
        if !event.table().has_args() {
            event.args = ArgFields::default();
        }
        Some(())
    }

    /// The object of an event's arguments.
    fn args(&mut self, args: &mut ArgFields<'a>, cache: &mut ArgumentCache) -> Option<()> {
        let mut arrays = Arrays::None;
        self.each(b'}', |object| object.argument(args, &mut arrays, cache))
    }

    /// One argument, or all from here to the last array if they were read before.
    #[inline(always)]
    fn argument(
        &mut self,
        args: &mut ArgFields<'a>,
        arrays: &mut Arrays,
        cache: &mut ArgumentCache,
    ) -> Option<()> {
        if self.unread_number()? {
            return Some(());
        }
        let start = self.at;
        match ArgKey::of(self.key()?) {
            Some(known) if self.byte()? == b'[' => {
                if *arrays == Arrays::None {
                    *arrays = Arrays::Between(start, self.end_of_arrays());
                }
                if arrays.begin_at(start) && self.recall(cache, *arrays, args) {
                    *arrays = Arrays::Mixed;
                    return Some(());
                }
                let from = self.at;
                self.skip(MAX_VALUE_DEPTH)?;
                args.set_raw(known, Some(&self.text[from..self.at]));
                if let Arrays::Between(start, end) = *arrays
                    && end == self.at
                {
                    cache.remember(&self.text[start..end], args);
                }
            }
            Some(known) => {
                args.set(known, Some(self.scalar(Number::scalar)?));
                if *arrays != Arrays::None {
                    *arrays = Arrays::Mixed;
                }
            }
            None => self.skip(MAX_VALUE_DEPTH)?,
        }
        Some(())
    }

    /// Takes arrays that were read before and goes behind them; whether they were.
    #[inline]
    fn recall(&mut self, cache: &ArgumentCache, arrays: Arrays, args: &mut ArgFields<'a>) -> bool {
        let Arrays::Between(start, end) = arrays else { return false };
        let text = &self.text[start..end];
        let Some(row) = cache.find(text) else { return false };
        cache.recall(row, text, args);
        self.at = end;
        true
    }

    /// Behind the last closing bracket before the next closing brace. A guess: either may be part of a
    /// string.
    #[inline]
    fn end_of_arrays(&self) -> usize {
        let rest = &self.text[self.at..];
        let brace = memchr(b'}', rest).unwrap_or(rest.len());
        self.at + memrchr(b']', &rest[..brace]).map_or(0, |bracket| bracket + 1)
    }

    /// Goes behind an argument with one of the usual keys that are not read; whether one stood here.
    #[inline]
    fn unread_number(&mut self) -> Option<bool> {
        let found = match self.text.get(self.at + 1)? {
            b'E' => self.literal(b"\"External id\": "),
            b'R' => self.literal(b"\"Record function id\": "),
            b'P' => self.literal(b"\"Python id\": ") || self.literal(b"\"Python parent id\": "),
            _ => false,
        };
        if found {
            self.peek()?;
            match plain_end(self.text, self.at) {
                Some(end) => self.at = end,
                None => self.skip(MAX_VALUE_DEPTH)?,
            }
        }
        Some(found)
    }

    /// A number or string.
    #[inline]
    fn scalar(&mut self, of_number: impl Fn(Number<'a>) -> Scalar<'a>) -> Option<Scalar<'a>> {
        if self.byte()? == b'"' {
            return self.string().map(Scalar::Text);
        }
        let (number, length) = number(&self.text[self.at..])?;
        self.at += length;
        Some(of_number(number))
    }

    /// Any value of which nothing is wanted but that it is one.
    fn skip(&mut self, depth: u32) -> Option<()> {
        match self.byte()? {
            b'"' => self.string().map(drop),
            b'[' => self.each(b']', |list| list.skip(depth.checked_sub(1)?)),
            b'{' => self.each(b'}', |object| {
                object.key()?;
                object.skip(depth.checked_sub(1)?)
            }),
            b't' => self.literal(b"true").then_some(()),
            b'f' => self.literal(b"false").then_some(()),
            b'n' => self.literal(b"null").then_some(()),
            _ => self.scalar(Number::scalar).map(drop),
        }
    }

    /// The members of the list or object that opens here, up to `close`; `member` reads each.
    #[inline(always)]
    fn each(&mut self, close: u8, mut member: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        if self.peek()? == close {
            self.at += 1;
            return Some(());
        }
        loop {
            self.peek()?;
            member(self)?;
            if !self.another(close)? {
                return Some(());
            }
        }
    }
}
