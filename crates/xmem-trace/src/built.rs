//! A trace that is put together event by event, by a program that knows what happens: no text is written and read again.

use crate::builder::{Builder, Strings};
use crate::columns::{DeviceKind, OpKind, Signature, SignatureId, Thread, Trace, TraceHeader};
use crate::finish::finish;
use crate::rawtext::compact_into;
use rustc_hash::FxHashMap;
use xmem_types::{Addr, Diagnostics, Interner, Nanos, Sealed, Sym, ThreadIdx};

/// Columns that are filled by hand. Events are numbered in the order in which they come.
///
/// ```
/// use xmem_trace::{BuiltCall, BuiltKind, TraceBuilder};
/// use xmem_types::Nanos;
///
/// let mut builder = TraceBuilder::new("1", "1");
/// builder.call(&BuiltCall {
///     kind: BuiltKind::Operator,
///     name: "aten::empty",
///     start: Nanos(10),
///     duration: Nanos(5),
///     ..BuiltCall::default()
/// });
/// builder.memory(Nanos(12), 64, 4096, 4096);
/// let (trace, _) = builder.finish();
/// assert_eq!((trace.ops.len(), trace.memory.len()), (1, 1));
/// ```
#[derive(Debug)]
pub struct TraceBuilder {
    columns: Builder<Interner>,
    header: TraceHeader,
    /// Process and thread of all events.
    thread: [String; 2],
    index: Option<ThreadIdx>,
    known: FxHashMap<u32, SignatureId>,
}

/// A call that is recorded.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltCall<'a> {
    /// Its kind.
    pub kind: BuiltKind,
    /// What is called.
    pub name: &'a str,
    /// `Input Dims`, `Input type`, `Input Strides` and `Concrete Inputs`, each as the text of a JSON array without its
    /// brackets, with a number that calls with the same arguments share.
    pub arguments: Option<(u32, [&'a str; 4])>,
    /// Autograd's `Sequence number`, and `Fwd thread id`.
    pub sequence: Option<(u64, u32)>,
    /// When it begins.
    pub start: Nanos,
    /// How long it takes.
    pub duration: Nanos,
}

/// The kind of a call that is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BuiltKind {
    /// An operator.
    #[default]
    Operator,
    /// An annotation.
    Annotation,
    /// A call of Python's.
    Python,
}

impl TraceBuilder {
    /// A trace of one thread.
    #[must_use]
    pub fn new(process: &str, thread: &str) -> Self {
        Self {
            columns: Builder::new(Interner::default()),
            header: TraceHeader::default(),
            thread: [process.to_owned(), thread.to_owned()],
            index: None,
            known: FxHashMap::default(),
        }
    }

    /// Adds a member of the file beside its events, with the JSON text of its value.
    pub fn member(&mut self, key: &str, value: &str) {
        self.header.take(key, value);
    }

    /// Adds a call.
    pub fn call(&mut self, call: &BuiltCall<'_>) {
        let name = Strings::intern(&mut self.columns.strings, call.name);
        let thread = self.thread();
        let index = Some(self.columns.event_count);
        self.columns.event_count += 1;
        if call.kind == BuiltKind::Python {
            let python = &mut self.columns.python;
            python.start.push(call.start);
            python.duration.push(call.duration);
            python.name.push(name);
            python.thread.push(thread);
            self.columns.evidence.python.push(index);
            return;
        }
        let signature = call.arguments.map_or(SignatureId(0), |(number, lists)| {
            self.known.get(&number).copied().unwrap_or_else(|| self.signature(number, lists))
        });
        let ops = &mut self.columns.ops;
        ops.start.push(call.start);
        ops.duration.push(call.duration);
        ops.name.push(name);
        ops.thread.push(thread);
        ops.kind.push(match call.kind {
            BuiltKind::Annotation => OpKind::Annotation,
            _ => OpKind::Operator,
        });
        let number = call.sequence.and_then(|(number, _)| i64::try_from(number).ok());
        ops.sequence.push(number.unwrap_or(-1));
        ops.forward_thread.push(call.sequence.map_or(0, |(_, thread)| thread));
        ops.signature.push(signature);
        self.columns.evidence.ops.push(index);
    }

    /// Adds an allocation of the host, or a free with a negative number of bytes; `total` bytes are allocated after it.
    pub fn memory(&mut self, time: Nanos, address: u64, bytes: i64, total: u64) {
        let thread = self.thread();
        let memory = &mut self.columns.memory;
        memory.time.push(time);
        memory.address.push(Addr(address));
        memory.bytes.push(bytes);
        memory.total_allocated.push(i64::try_from(total).unwrap_or(-1));
        memory.total_reserved.push(-1);
        memory.device.push(DeviceKind::Cpu);
        memory.device_index.push(-1);
        memory.thread.push(thread);
        memory.out_of_memory.push(false);
        self.columns.evidence.memory.push(Some(self.columns.event_count));
        self.columns.event_count += 1;
    }

    /// Counts an event of a category that no table holds.
    pub fn other(&mut self, category: &str) {
        self.columns.count_other(category, 1);
        self.columns.event_count += 1;
    }

    /// The trace, and what was odd about it.
    #[must_use]
    pub fn finish(self) -> (Trace, Diagnostics) {
        let mut diagnostics = Diagnostics::default();
        let mut columns = self.columns;
        // Nothing can be lost between a program that says what happens and its trace.
        columns.evidence.sealed = Sealed::Intact;
        let trace = finish(columns, self.header, &mut diagnostics);
        (trace, diagnostics)
    }

    fn thread(&mut self) -> ThreadIdx {
        if let Some(index) = self.index {
            return index;
        }
        let [process, thread] = &self.thread;
        let process = Strings::intern(&mut self.columns.strings, process);
        let thread = Strings::intern(&mut self.columns.strings, thread);
        let index = self.columns.thread_index(Thread { process, thread });
        self.index = Some(index);
        index
    }

    fn signature(&mut self, number: u32, lists: [&str; 4]) -> SignatureId {
        let mut text = String::new();
        let [dims, types, strides, concrete] = lists.map(|list| -> Sym {
            text.clear();
            text.push('[');
            compact_into(list, &mut text);
            text.push(']');
            Strings::intern(&mut self.columns.strings, &text)
        });
        let id = self.columns.signature_id(Signature { dims, types, strides, concrete });
        self.known.insert(number, id);
        id
    }
}
