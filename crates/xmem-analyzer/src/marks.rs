//! The marks that `xmem profile` leaves among the annotations: where memory goes to the GPU and comes
//! back, and where iterations end. They are taken out before anything else is looked at, so that
//! nothing takes them for annotations of the job.

use crate::script_part::{PartStart, ScriptPart};
use rustc_hash::FxHashMap;
use std::ops::Range;
use xmem_trace::Trace;
use xmem_types::{Addr, Bytes, Nanos, StreamId, Sym};

const PREFIX: &str = "xmem::";

/// The marks of a trace, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Memory that goes somewhere.
    pub(crate) moves: Vec<Move>,
    /// Ends of iterations: of optimizer steps, else of backward passes, else of forward calls.
    pub(crate) ends: Vec<Nanos>,
    /// Streams that the program selects, each from then on.
    pub(crate) streams: Vec<(Nanos, StreamId)>,
    /// Parts of the script, each from then on.
    pub(crate) parts: Vec<PartStart>,
    /// Spans in which all memory is made on the GPU, or for the host.
    pub(crate) spans: Vec<(TransferKind, Range<Nanos>)>,
    /// Marks of passes that are no iterations, as there are those of steps.
    others: u64,
}

impl Marks {
    /// The number of marks.
    pub(crate) fn count(&self) -> u64 {
        let single = self.moves.len() + self.ends.len() + self.streams.len() + self.parts.len();
        (single + 2 * self.spans.len()) as u64 + self.others
    }
}

/// A storage that is on the GPU, or a copy of one on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) time: Nanos,
    pub(crate) kind: TransferKind,
    pub(crate) address: Addr,
    pub(crate) bytes: Bytes,
}

/// The operation of a program on memory, were it run on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransferKind {
    /// A host tensor is copied to the GPU.
    ToDevice,
    /// A tensor is made on the GPU.
    OnDevice,
    /// A copy is made for the host.
    ToHost,
}

/// A mark's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Move(TransferKind, Addr, Bytes),
    End(Unit),
    Stream(StreamId),
    Part(ScriptPart),
    /// All memory is made there from here on.
    SpanFrom(TransferKind),
    SpanUntil(TransferKind),
    /// Of a later recorder, or not as it should be.
    Unknown,
}

/// The unit that ends: iterations consist of the first of these that a recording has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Steps,
    Backward,
    Forward,
}

/// Takes the marks out of a trace. Rows of operators get other numbers if there are any.
pub(crate) fn take_out(trace: &mut Trace) -> Marks {
    let meanings: FxHashMap<Sym, Meaning> = trace
        .strings
        .iter()
        .filter_map(|(sym, text)| Some((sym, meaning(text.strip_prefix(PREFIX)?))))
        .collect();
    let mut marks = Marks::default();
    if meanings.is_empty() {
        return marks;
    }
    let mut ends: [Vec<Nanos>; 3] = Default::default();
    let mut begun: Vec<(TransferKind, Nanos)> = Vec::new();
    for (name, &time) in trace.ops.name.iter().zip(&trace.ops.start) {
        match meanings.get(name) {
            Some(&Meaning::Move(kind, address, bytes)) => {
                marks.moves.push(Move { time, kind, address, bytes });
            }
            Some(&Meaning::End(unit)) => ends[unit as usize].push(time),
            Some(&Meaning::Stream(stream)) => marks.streams.push((time, stream)),
            Some(&Meaning::Part(part)) => marks.parts.push(PartStart { time, part }),
            Some(&Meaning::SpanFrom(kind)) => {
                begun.retain(|(other, _)| *other != kind);
                begun.push((kind, time));
            }
            Some(&Meaning::SpanUntil(kind)) => {
                let span = begun.iter().position(|(other, _)| *other == kind);
                let span = span.map(|at| begun.swap_remove(at));
                marks.spans.extend(span.map(|(kind, from)| (kind, from..time)));
            }
            Some(Meaning::Unknown) | None => {}
        }
    }
    let wanted: Vec<bool> = trace.ops.name.iter().map(|n| !meanings.contains_key(n)).collect();
    trace.ops.retain(&wanted);
    marks.moves.sort_by_key(|m| m.time);
    marks.streams.sort_by_key(|&(time, _)| time);
    marks.parts.sort_by_key(|start| start.time);
    let all: usize = ends.iter().map(Vec::len).sum();
    marks.ends = ends.into_iter().find(|ends| !ends.is_empty()).unwrap_or_default();
    marks.others = (all - marks.ends.len()) as u64;
    marks.ends.sort_unstable();
    marks
}

fn meaning(text: &str) -> Meaning {
    let mut words = text.split(' ');
    let kind = match words.next() {
        Some("to_device") => TransferKind::ToDevice,
        Some("on_device") => TransferKind::OnDevice,
        Some("to_host") => TransferKind::ToHost,
        Some("iteration") => return Meaning::End(Unit::Steps),
        Some("backward") => return Meaning::End(Unit::Backward),
        Some("forward") => return Meaning::End(Unit::Forward),
        Some("on_device_from") => return Meaning::SpanFrom(TransferKind::OnDevice),
        Some("on_device_until") => return Meaning::SpanUntil(TransferKind::OnDevice),
        Some("on_host_from") => return Meaning::SpanFrom(TransferKind::ToHost),
        Some("on_host_until") => return Meaning::SpanUntil(TransferKind::ToHost),
        Some("part") => {
            let part = words.next().and_then(ScriptPart::named);
            return part.map_or(Meaning::Unknown, Meaning::Part);
        }
        Some("stream") => {
            let stream = words.next().and_then(|word| word.parse().ok());
            return stream.map_or(Meaning::Unknown, |stream| Meaning::Stream(StreamId(stream)));
        }
        _ => return Meaning::Unknown,
    };
    let address = words.next().and_then(Addr::from_hex);
    let bytes = words.next().and_then(|word| word.parse().ok());
    match (address, bytes) {
        (Some(address), Some(bytes)) => Meaning::Move(kind, address, Bytes(bytes)),
        _ => Meaning::Unknown,
    }
}
