//! The packets of a Perfetto trace: tracks, slices on them, values of counters, and instants.
//!
//! Field numbers: `protos/perfetto/trace/` of Perfetto, in `trace_packet.proto`, `track_event/*.proto` and
//! `interned_data/interned_data.proto`.

use super::message::Message;
use std::collections::BTreeMap;
use xmem::Bytes;
use xmem::types::Nanos;

/// The number of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track(u64);

/// The way in which a track shows the tracks inside it.
const EXPLICIT_ORDER: u64 = 3;
/// `CounterDescriptor.Unit.UNIT_SIZE_BYTES`.
const UNIT_BYTES: u64 = 3;

/// Kinds of events (`TrackEvent.Type`).
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// `TracePacket.SequenceFlags`.
const INCREMENTAL_STATE_CLEARED: u64 = 1;
const NEEDS_INCREMENTAL_STATE: u64 = 2;

/// A trace in the making: one sequence of packets, in which names are written once.
#[derive(Debug, Default)]
pub(super) struct Packets {
    trace: Message,
    tracks: u64,
    names: Interned,
    categories: Interned,
    has_begun: bool,
}

/// Texts with their numbers, from 1.
#[derive(Debug, Default)]
struct Interned(BTreeMap<String, u64>);

impl Interned {
    /// The number of a text, and the message that defines it if it is new.
    fn number(&mut self, text: &str) -> (u64, Option<Message>) {
        if let Some(&known) = self.0.get(text) {
            return (known, None);
        }
        let number = self.0.len() as u64 + 1;
        self.0.insert(text.to_owned(), number);
        (number, Some(Message::new().number(1, number).text(2, text)))
    }
}

/// A slice: something that lasts from one time to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice<'a> {
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    pub(super) name: &'a str,
    pub(super) category: &'a str,
}

impl Packets {
    /// A track that holds others, in the order in which they are added.
    pub(super) fn group(&mut self, parent: Option<Track>, name: &str, description: &str) -> Track {
        self.track(parent, name, |track| track.text(14, description).number(11, EXPLICIT_ORDER))
    }

    /// A track for slices and instants.
    pub(super) fn slices_of(&mut self, parent: Track, name: &str) -> Track {
        self.track(Some(parent), name, |track| track)
    }

    /// A track for the values of a counter in bytes. Counters of one group share their scale.
    pub(super) fn counter(&mut self, parent: Track, name: &str) -> Track {
        let counter = Message::new().number(3, UNIT_BYTES).text(7, "bytes");
        self.track(Some(parent), name, |track| track.message(8, &counter))
    }

    fn track(
        &mut self,
        parent: Option<Track>,
        name: &str,
        more: impl FnOnce(Message) -> Message,
    ) -> Track {
        self.tracks += 1;
        let mut track = Message::new().number(1, self.tracks).text(2, name);
        if let Some(parent) = parent {
            track = track.number(5, parent.0);
        }
        // Siblings in the order of their numbers.
        let track = more(track.number(12, self.tracks));
        let packet = Message::new().message(60, &track);
        self.packet(packet);
        Track(self.tracks)
    }

    /// Slices that lie in each other or apart, the outer one before those in it. An end behind that of the outer slice
    /// is taken back to it.
    pub(super) fn slices<'a>(&mut self, track: Track, slices: impl Iterator<Item = Slice<'a>>) {
        let mut open: Vec<Nanos> = Vec::new();
        for slice in slices {
            while let Some(end) = open.pop_if(|end| *end <= slice.start) {
                self.end(track, end);
            }
            let end = open.last().map_or(slice.end, |outer| slice.end.min(*outer));
            self.begin(track, &slice);
            open.push(end.max(slice.start));
        }
        while let Some(end) = open.pop() {
            self.end(track, end);
        }
    }

    fn begin(&mut self, track: Track, slice: &Slice<'_>) {
        let (name, new_name) = self.names.number(slice.name);
        let (category, new_category) = self.categories.number(slice.category);
        let event = event(SLICE_BEGIN, track).number(10, name).number(3, category);
        let mut packet = at(slice.start, &event);
        if new_name.is_some() || new_category.is_some() {
            let interned = Message::new().optional(1, new_category).optional(2, new_name);
            packet = packet.message(12, &interned);
        }
        self.packet(packet);
    }

    fn end(&mut self, track: Track, time: Nanos) {
        self.packet(at(time, &event(SLICE_END, track)));
    }

    /// A value of a counter.
    pub(super) fn value(&mut self, counter: Track, time: Nanos, value: Bytes) {
        // The field is signed.
        let value = value.get().min(i64::MAX as u64);
        self.packet(at(time, &event(COUNTER, counter).number(30, value)));
    }

    /// Something that happens at one time, with figures.
    pub(super) fn instant(
        &mut self,
        track: Track,
        time: Nanos,
        name: &str,
        facts: &[(&str, Bytes)],
    ) {
        let mut event = event(INSTANT, track).text(23, name);
        for (key, value) in facts {
            event = event.message(4, &Message::new().text(10, key).number(3, value.get()));
        }
        self.packet(at(time, &event));
    }

    fn packet(&mut self, packet: Message) {
        let first = if self.has_begun { 0 } else { INCREMENTAL_STATE_CLEARED };
        self.has_begun = true;
        let packet = packet.number(10, 1).number(13, first | NEEDS_INCREMENTAL_STATE);
        self.trace.push(1, &packet);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.trace.into_bytes()
    }
}

fn event(kind: u64, track: Track) -> Message {
    Message::new().number(9, kind).number(11, track.0)
}

/// A packet with an event. Its clock is the default one, and counts from the beginning of the recording.
fn at(time: Nanos, event: &Message) -> Message {
    let time = u64::try_from(time.get()).unwrap_or(0);
    Message::new().number(8, time).message(11, event)
}
