//! The marks that `xmem profile` leaves among the annotations: where memory goes to the GPU and comes
//! back, and where iterations end. They are taken out before anything else is looked at, so that
//! nothing takes them for annotations of the job.

use rustc_hash::FxHashMap;
use xmem_trace::Trace;
use xmem_types::{Addr, Bytes, Nanos, Sym};

const PREFIX: &str = "xmem::";

/// The marks of a trace, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Memory that goes somewhere.
    pub(crate) moves: Vec<Move>,
    /// Ends of iterations.
    pub(crate) ends: Vec<Nanos>,
}

impl Marks {
    /// The number of marks.
    pub(crate) fn count(&self) -> u64 {
        (self.moves.len() + self.ends.len()) as u64
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
    IterationEnd,
    /// Of a later recorder, or not as it should be.
    Unknown,
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
    for (name, &time) in trace.ops.name.iter().zip(&trace.ops.start) {
        match meanings.get(name) {
            Some(&Meaning::Move(kind, address, bytes)) => {
                marks.moves.push(Move { time, kind, address, bytes });
            }
            Some(Meaning::IterationEnd) => marks.ends.push(time),
            Some(Meaning::Unknown) | None => {}
        }
    }
    let wanted: Vec<bool> = trace.ops.name.iter().map(|n| !meanings.contains_key(n)).collect();
    trace.ops.retain(&wanted);
    marks.moves.sort_by_key(|m| m.time);
    marks.ends.sort_unstable();
    marks
}

fn meaning(text: &str) -> Meaning {
    let mut words = text.split(' ');
    let kind = match words.next() {
        Some("to_device") => TransferKind::ToDevice,
        Some("on_device") => TransferKind::OnDevice,
        Some("to_host") => TransferKind::ToHost,
        Some("iteration") => return Meaning::IterationEnd,
        _ => return Meaning::Unknown,
    };
    let address = words.next().and_then(Addr::from_hex);
    let bytes = words.next().and_then(|word| word.parse().ok());
    match (address, bytes) {
        (Some(address), Some(bytes)) => Meaning::Move(kind, address, Bytes(bytes)),
        _ => Meaning::Unknown,
    }
}
