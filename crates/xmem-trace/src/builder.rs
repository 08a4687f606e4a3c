//! Fields of events appended to columns.

use crate::columns::{
    DeviceKind, FlowKind, FlowTable, MemoryTable, OpKind, OpTable, PythonTable, Signature,
    SignatureId, Thread,
};
use crate::event::{ArgFields, EventFields, Table};
use crate::evidence::Evidence;
use crate::number::Scalar;
use crate::rawtext::compact_into;
use rustc_hash::FxHashMap;
use xmem_types::{Addr, Interner, Nanos, Sym, ThreadIdx, printable};

/// A table of strings that the builder fills.
pub(crate) trait Strings {
    /// The symbol of `text`.
    fn intern(&mut self, text: &str) -> Sym;

    /// The symbol of `raw` (JSON) without the white space outside strings.
    fn intern_compact(&mut self, raw: &[u8]) -> Sym {
        let mut text = String::with_capacity(raw.len());
        compact_into(&String::from_utf8_lossy(raw), &mut text);
        self.intern(&text)
    }

    /// The signature of arguments in the cache ([`ArgFields::cached`]).
    fn known_signature(&self, _row: u32) -> Option<SignatureId> {
        None
    }

    /// Notes the signature of arguments in the cache.
    fn set_signature(&mut self, _row: u32, _signature: SignatureId) {}
}

impl Strings for Interner {
    fn intern(&mut self, text: &str) -> Sym {
        Interner::intern(self, &printable(text))
    }
}

/// The reason why an event that is well-formed JSON cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// No `ts`, or not a number that fits.
    Time,
    /// A memory event without `Bytes`.
    Bytes,
    /// A link without a numeric `id`.
    LinkId,
    /// Neither `ph` nor `name`.
    Nothing,
}

impl Unusable {
    /// The problem, as a fragment.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Time => "its `ts` is missing or not a time",
            Self::Bytes => "a memory event without `Bytes`",
            Self::LinkId => "a link without a numeric `id`",
            Self::Nothing => "it has neither `ph` nor `name`",
        }
    }
}

/// Columns under construction: all tables of a trace (or of a piece of it) but the header.
#[derive(Debug)]
pub(crate) struct Builder<S> {
    pub(crate) strings: S,
    pub(crate) threads: Vec<Thread>,
    pub(crate) signatures: Vec<Signature>,
    pub(crate) ops: OpTable,
    pub(crate) python: PythonTable,
    pub(crate) memory: MemoryTable,
    pub(crate) flows: FlowTable,
    pub(crate) other_events: Vec<(String, u64)>,
    pub(crate) event_count: u64,
    pub(crate) evidence: Evidence,
    thread_ids: FxHashMap<Thread, ThreadIdx>,
    /// The thread seen last, by numeric process and thread: most events repeat it.
    last_thread: Option<((i64, i64), ThreadIdx)>,
    signature_ids: FxHashMap<Signature, SignatureId>,
}

impl<S: Strings> Builder<S> {
    pub(crate) fn new(strings: S) -> Self {
        Self {
            strings,
            threads: Vec::new(),
            signatures: vec![Signature::default()],
            ops: OpTable::default(),
            python: PythonTable::default(),
            memory: MemoryTable::default(),
            flows: FlowTable::default(),
            other_events: Vec::new(),
            event_count: 0,
            evidence: Evidence::default(),
            thread_ids: FxHashMap::default(),
            last_thread: None,
            signature_ids: FxHashMap::from_iter([(Signature::default(), SignatureId(0))]),
        }
    }

    /// Empties everything but the strings, keeping the memory.
    pub(crate) fn reset(&mut self) {
        self.threads.clear();
        self.signatures.clear();
        self.signatures.push(Signature::default());
        self.ops.clear();
        self.python.clear();
        self.memory.clear();
        self.flows.clear();
        self.other_events.clear();
        self.event_count = 0;
        self.evidence = Evidence::default();
        self.thread_ids.clear();
        self.last_thread = None;
        self.signature_ids.clear();
        self.signature_ids.insert(Signature::default(), SignatureId(0));
    }

    /// Appends one event. Strings are interned in a fixed order (name, thread, signature), so that
    /// the order of keys in the file leaves no mark.
    pub(crate) fn push(&mut self, event: &EventFields<'_>) -> Result<(), Unusable> {
        match event.table() {
            Table::Operator => self.push_op(event, OpKind::Operator)?,
            Table::Annotation => self.push_op(event, OpKind::Annotation)?,
            Table::Python => {
                let start = time(event)?;
                let name = self.strings.intern(event.name.unwrap_or_default());
                let thread = self.thread(event);
                self.python.start.push(start);
                let duration = self.duration(event);
                self.python.duration.push(duration);
                self.python.name.push(name);
                self.python.thread.push(thread);
                self.evidence.python.push(index(event));
                self.evidence.misnamed_modules += u64::from(is_misnamed(event));
            }
            Table::Memory { out_of_memory } => self.push_memory(event, out_of_memory)?,
            Table::FlowStart => self.push_flow(event, FlowKind::Start)?,
            Table::FlowFinish => self.push_flow(event, FlowKind::Finish)?,
            Table::Other if event.phase.is_none() && event.name.is_none() => {
                return Err(Unusable::Nothing);
            }
            Table::Other => {
                self.count_other(event.category.or(event.phase).unwrap_or_default(), 1);
            }
        }
        self.event_count += 1;
        Ok(())
    }

    /// Rows of the tables in which PyTorch itself writes valid JSON only: neither Python calls nor
    /// annotations, whose names are not always escaped.
    pub(crate) fn checked_rows(&self) -> usize {
        let last = self.ops.kind.last();
        let annotation = usize::from(last == Some(&OpKind::Annotation));
        self.ops.len() - annotation + self.memory.len() + self.flows.len()
    }

    /// Counts events of a kind that no table holds.
    pub(crate) fn count_other(&mut self, kind: &str, count: u64) {
        let kind = printable(kind);
        match self.other_events.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, known)) => *known += count,
            None => self.other_events.push((kind.into_owned(), count)),
        }
    }

    fn push_op(&mut self, event: &EventFields<'_>, kind: OpKind) -> Result<(), Unusable> {
        let start = time(event)?;
        let name = self.strings.intern(event.name.unwrap_or_default());
        let thread = self.thread(event);
        let signature = self.signature(&event.args);
        let duration = self.duration(event);
        self.ops.start.push(start);
        self.ops.duration.push(duration);
        self.ops.name.push(name);
        self.ops.thread.push(thread);
        self.ops.kind.push(kind);
        self.ops.sequence.push(event.args.sequence.and_then(Scalar::i64).unwrap_or(-1));
        let forward_thread = event.args.forward_thread.and_then(Scalar::u64).unwrap_or(0);
        self.ops.forward_thread.push(u32::try_from(forward_thread).unwrap_or(0));
        self.ops.signature.push(signature);
        self.evidence.ops.push(index(event));
        Ok(())
    }

    fn push_memory(
        &mut self,
        event: &EventFields<'_>,
        out_of_memory: bool,
    ) -> Result<(), Unusable> {
        let args = &event.args;
        let start = time(event)?;
        let bytes = args.bytes.and_then(Scalar::i64).ok_or(Unusable::Bytes)?;
        let thread = self.thread(event);
        self.memory.time.push(start);
        self.memory.address.push(Addr(args.address.and_then(Scalar::u64).unwrap_or(0)));
        self.memory.bytes.push(bytes);
        let total = args.total_allocated.and_then(Scalar::i64);
        self.evidence.without_total += u64::from(total.is_none());
        self.memory.total_allocated.push(total.unwrap_or(-1));
        let reserved = args.total_reserved.and_then(Scalar::i64);
        self.memory.total_reserved.push(reserved.unwrap_or(-1));
        self.memory.device.push(match args.device_type.and_then(Scalar::i64) {
            None | Some(0) => DeviceKind::Cpu,
            Some(1 | 6) => DeviceKind::Cuda,
            Some(_) => DeviceKind::Other,
        });
        let device_index = args.device_index.and_then(Scalar::i64).unwrap_or(-1);
        self.memory.device_index.push(i16::try_from(device_index).unwrap_or(-1));
        self.memory.thread.push(thread);
        self.memory.out_of_memory.push(out_of_memory);
        self.evidence.memory.push(index(event));
        Ok(())
    }

    fn push_flow(&mut self, event: &EventFields<'_>, kind: FlowKind) -> Result<(), Unusable> {
        let at = time(event)?;
        let id = event.id.and_then(Scalar::u64).ok_or(Unusable::LinkId)?;
        let thread = self.thread(event);
        self.flows.id.push(id);
        self.flows.time.push(at);
        self.flows.thread.push(thread);
        self.flows.kind.push(kind);
        Ok(())
    }

    fn duration(&mut self, event: &EventFields<'_>) -> Nanos {
        let Some(duration) = event.duration.and_then(Scalar::micros) else {
            self.evidence.without_duration += 1;
            return Nanos::ZERO;
        };
        if duration < Nanos::ZERO {
            self.evidence.negative_durations += 1;
        }
        duration.max(Nanos::ZERO)
    }

    fn thread(&mut self, event: &EventFields<'_>) -> ThreadIdx {
        let numbers = match (event.process, event.thread) {
            (Some(Scalar::Int(process)), Some(Scalar::Int(thread))) => Some((process, thread)),
            _ => None,
        };
        if let (Some(numbers), Some((last, index))) = (numbers, self.last_thread)
            && numbers == last
        {
            return index;
        }
        let process = self.scalar(event.process);
        let thread = self.scalar(event.thread);
        let index = self.thread_index(Thread { process, thread });
        self.last_thread = numbers.map(|numbers| (numbers, index));
        index
    }

    /// The row of a thread, made if it is new.
    pub(crate) fn thread_index(&mut self, thread: Thread) -> ThreadIdx {
        if let Some(&known) = self.thread_ids.get(&thread) {
            return known;
        }
        let index = ThreadIdx::new(self.threads.len());
        self.threads.push(thread.clone());
        self.thread_ids.insert(thread, index);
        index
    }

    fn scalar(&mut self, value: Option<Scalar<'_>>) -> Sym {
        match value {
            None => Sym::EMPTY,
            Some(Scalar::Text(text) | Scalar::Number(text)) => self.strings.intern(text),
            Some(Scalar::Int(value)) => self.strings.intern(&value.to_string()),
            Some(Scalar::Thousandths(value)) => {
                let (whole, rest) = (value / 1000, value.unsigned_abs() % 1000);
                self.strings.intern(&format!("{whole}.{rest:03}"))
            }
        }
    }

    fn signature(&mut self, args: &ArgFields<'_>) -> SignatureId {
        if let Some(known) = args.cached.and_then(|row| self.strings.known_signature(row)) {
            return known;
        }
        let mut raw = |text: Option<&[u8]>| match text {
            Some(text) => self.strings.intern_compact(text),
            None => Sym::EMPTY,
        };
        let signature = Signature {
            dims: raw(args.dims),
            types: raw(args.types),
            strides: raw(args.strides),
            concrete: raw(args.concrete),
        };
        let id = self.signature_id(signature);
        if let Some(row) = args.cached {
            self.strings.set_signature(row, id);
        }
        id
    }

    /// The row of a signature, made if it is new.
    pub(crate) fn signature_id(&mut self, signature: Signature) -> SignatureId {
        if let Some(&known) = self.signature_ids.get(&signature) {
            return known;
        }
        let id =
            SignatureId(u32::try_from(self.signatures.len()).expect("fewer than 2^32 signatures"));
        self.signatures.push(signature);
        self.signature_ids.insert(signature, id);
        id
    }
}

/// Returns whether the name of a Python call is not that of the module whose number it has: PyTorch names
/// calls of modules `nn.Module: Linear_3`, with the number at the end
/// (torch/csrc/profiler/collection.cpp, `toString`). Of a class whose name is not ASCII, PyTorch 2.15 was
/// seen to write `unknown`.
fn is_misnamed(event: &EventFields<'_>) -> bool {
    let Some(number) = event.args.module.and_then(Scalar::u64) else { return false };
    if event.name == Some("unknown") {
        return false;
    }
    let named = event.name.and_then(|name| name.strip_prefix("nn.Module: ")?.rsplit_once('_'));
    named.is_none_or(|(_, end)| end.parse() != Ok(number))
}

fn index(event: &EventFields<'_>) -> Option<u64> {
    event.args.index.and_then(Scalar::u64)
}

fn time(event: &EventFields<'_>) -> Result<Nanos, Unusable> {
    event.time.and_then(Scalar::micros).ok_or(Unusable::Time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ArgFields;

    #[test]
    fn a_module_has_the_name_with_its_number() {
        for (name, number, misnamed) in [
            (Some("nn.Module: Linear_3"), Some(3), false),
            (Some("nn.Module: My_Block_12"), Some(12), false),
            (Some("nn.Module: Linear_3"), Some(4), true),
            (Some("nn.Module: Linear"), Some(0), true),
            (Some("train.py(12): forward"), Some(3), true),
            (None, Some(3), true),
            (Some("train.py(12): forward"), None, false),
            (Some("nn.Module: Linear_3"), None, false),
            (Some("unknown"), Some(3), false),
        ] {
            let args = ArgFields { module: number.map(Scalar::Int), ..ArgFields::default() };
            let event = EventFields { name, args, ..EventFields::default() };
            assert_eq!(is_misnamed(&event), misnamed, "{name:?} {number:?}");
        }
    }
}
