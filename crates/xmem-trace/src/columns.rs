//! The columnar form of a trace: one struct of arrays per kind of event.
//!
//! Rows of each table stand in *file order*. Kineto does not sort its files (operators first, then
//! all memory events, then all Python calls), so readers that need time order sort by
//! `(time, row)`.

use crate::evidence::Evidence;
use std::collections::BTreeMap;
use xmem_types::{Addr, Bytes, Interner, Nanos, Sym, ThreadIdx};

/// A whole trace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Trace {
    /// The keys of the file outside the event list.
    pub header: TraceHeader,
    /// Every string of the trace.
    pub strings: Interner,
    /// Processes' threads, in order of first appearance.
    pub threads: Vec<Thread>,
    /// Distinct argument signatures of operators. Row 0 is the empty signature.
    pub signatures: Vec<Signature>,
    /// Operators and annotations.
    pub ops: OpTable,
    /// Python calls (`with_stack=True`).
    pub python: PythonTable,
    /// `[memory]` and `[OutOfMemory]` events.
    pub memory: MemoryTable,
    /// Links between forward operators and backward nodes.
    pub flows: FlowTable,
    /// Events that are none of the above, by category (`kernel`, `Trace`, `M`, …).
    pub other_events: BTreeMap<String, u64>,
    /// All events read, whatever their kind.
    pub event_count: u64,
    /// What the events say about whether the file is whole.
    pub evidence: Evidence,
}

/// The top-level keys of the file.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TraceHeader {
    /// `baseTimeNanoseconds`: what event times are relative to (absolute Unix nanoseconds);
    /// zero up to PyTorch 2.3, whose times are absolute.
    pub base_time: Option<Nanos>,
    /// `schemaVersion`.
    pub schema_version: Option<i64>,
    /// `record_shapes`, `profile_memory`, `with_stack`, `with_modules`, `with_flops`: the names
    /// of those that are 1.
    pub options: Vec<String>,
    /// Devices of `deviceProperties` (their `name`); empty for a CPU-only recording.
    pub devices: Vec<String>,
    /// The same devices, as far as `deviceProperties` describes them.
    pub device_properties: Vec<DeviceProperties>,
    /// Every other top-level scalar (`trace_id`, `host_name`, metadata that the user added), as
    /// text; objects and arrays as raw JSON.
    pub extra: Vec<(String, String)>,
}

/// A device of `deviceProperties` (libkineto, `CuptiActivityProfiler`, `devicePropertiesJson`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceProperties {
    /// `id`: the device index of memory events.
    pub index: Option<i16>,
    /// `name`.
    pub name: Option<String>,
    /// `totalGlobalMem`.
    pub memory: Option<Bytes>,
    /// `computeMajor` and `computeMinor`.
    pub compute_capability: Option<(u8, u8)>,
    /// `numSms`.
    pub multiprocessors: Option<u32>,
}

impl TraceHeader {
    /// Returns whether a profiler option was on.
    #[must_use]
    pub fn option(&self, name: &str) -> bool {
        self.options.iter().any(|o| o == name)
    }

    /// Removes a key from [`extra`](Self::extra) and returns its value: metadata that a crate
    /// further on interprets.
    pub fn take_extra(&mut self, key: &str) -> Option<String> {
        let at = self.extra.iter().position(|(known, _)| known == key)?;
        Some(self.extra.remove(at).1)
    }
}

/// A thread. Ids are text because Kineto writes numbers and strings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// `pid`.
    pub process: Sym,
    /// `tid`.
    pub thread: Sym,
}

/// Index into [`Trace::signatures`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignatureId(pub u32);

/// An operator's recorded arguments, as raw JSON arrays without white space outside strings;
/// [`Sym::EMPTY`] where a field is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signature {
    /// `Input Dims`: per argument a list of extents, for tensor lists a list of lists.
    pub dims: Sym,
    /// `Input type`.
    pub types: Sym,
    /// `Input Strides`.
    pub strides: Sym,
    /// `Concrete Inputs`.
    pub concrete: Sym,
}

/// The kind of an [`OpTable`] row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum OpKind {
    /// `cpu_op` (or `Operator` in old traces, or no category at all).
    Operator,
    /// `user_annotation`.
    Annotation,
}

/// Operators and annotations ("X" events with a duration).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OpTable {
    /// Start, relative to the header's base time.
    pub start: Vec<Nanos>,
    /// Duration.
    pub duration: Vec<Nanos>,
    /// Name, e.g. `aten::addmm`.
    pub name: Vec<Sym>,
    /// Thread.
    pub thread: Vec<ThreadIdx>,
    /// Operator or annotation.
    pub kind: Vec<OpKind>,
    /// Autograd `Sequence number`; -1 where it is absent.
    pub sequence: Vec<i64>,
    /// `Fwd thread id`; 0 on forward operators and where absent.
    pub forward_thread: Vec<u32>,
    /// Recorded arguments.
    pub signature: Vec<SignatureId>,
}

/// Python calls.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PythonTable {
    /// Start, relative to the header's base time.
    pub start: Vec<Nanos>,
    /// Duration.
    pub duration: Vec<Nanos>,
    /// `file.py(12): function`, `nn.Module: Linear_3`, `<built-in …>`.
    pub name: Vec<Sym>,
    /// Thread.
    pub thread: Vec<ThreadIdx>,
}

/// Kinds of device of a memory event (c10::DeviceType).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum DeviceKind {
    /// Host memory (c10::DeviceType 0).
    Cpu,
    /// An NVIDIA device (1), or HIP (6).
    Cuda,
    /// Any other accelerator.
    Other,
}

/// Memory events.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MemoryTable {
    /// Time, relative to the header's base time.
    pub time: Vec<Nanos>,
    /// Address; 0 where the format has none.
    pub address: Vec<Addr>,
    /// Signed size: positive for an allocation, negative for a free.
    pub bytes: Vec<i64>,
    /// `Total Allocated` after the event; -1 where absent.
    pub total_allocated: Vec<i64>,
    /// `Total Reserved` after the event: zero for the host, -1 where absent.
    pub total_reserved: Vec<i64>,
    /// Kind of device.
    pub device: Vec<DeviceKind>,
    /// Device index; -1 for the host.
    pub device_index: Vec<i16>,
    /// Thread.
    pub thread: Vec<ThreadIdx>,
    /// True if this is an `[OutOfMemory]` event (then `bytes` is the requested size).
    pub out_of_memory: Vec<bool>,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum FlowKind {
    /// `"ph": "s"`: at the forward operator.
    Start,
    /// `"ph": "f"`: at the backward node.
    Finish,
}

/// `fwdbwd` links.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FlowTable {
    /// Link id, the same at both ends.
    pub id: Vec<u64>,
    /// Time of the operator it belongs to.
    pub time: Vec<Nanos>,
    /// Thread.
    pub thread: Vec<ThreadIdx>,
    /// The end that the row is.
    pub kind: Vec<FlowKind>,
}

impl OpTable {
    /// Removes all rows, keeping the memory.
    pub(crate) fn clear(&mut self) {
        self.start.clear();
        self.duration.clear();
        self.name.clear();
        self.thread.clear();
        self.kind.clear();
        self.sequence.clear();
        self.forward_thread.clear();
        self.signature.clear();
    }

    /// Keeps the rows that are `wanted`, one flag a row; those behind a removed one get smaller
    /// numbers.
    pub fn retain(&mut self, wanted: &[bool]) {
        retain(&mut self.start, wanted);
        retain(&mut self.duration, wanted);
        retain(&mut self.name, wanted);
        retain(&mut self.thread, wanted);
        retain(&mut self.kind, wanted);
        retain(&mut self.sequence, wanted);
        retain(&mut self.forward_thread, wanted);
        retain(&mut self.signature, wanted);
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Returns whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }
}

impl PythonTable {
    /// Removes all rows, keeping the memory.
    pub(crate) fn clear(&mut self) {
        self.start.clear();
        self.duration.clear();
        self.name.clear();
        self.thread.clear();
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Returns whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }
}

impl MemoryTable {
    /// Keeps the rows that are `wanted`, one flag a row; those behind a removed one get smaller
    /// numbers.
    pub fn retain(&mut self, wanted: &[bool]) {
        retain(&mut self.time, wanted);
        retain(&mut self.address, wanted);
        retain(&mut self.bytes, wanted);
        retain(&mut self.total_allocated, wanted);
        retain(&mut self.total_reserved, wanted);
        retain(&mut self.device, wanted);
        retain(&mut self.device_index, wanted);
        retain(&mut self.thread, wanted);
        retain(&mut self.out_of_memory, wanted);
    }

    /// Removes all rows, keeping the memory.
    pub(crate) fn clear(&mut self) {
        self.time.clear();
        self.address.clear();
        self.bytes.clear();
        self.total_allocated.clear();
        self.total_reserved.clear();
        self.device.clear();
        self.device_index.clear();
        self.thread.clear();
        self.out_of_memory.clear();
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Returns whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }
}

impl FlowTable {
    /// Removes all rows, keeping the memory.
    pub(crate) fn clear(&mut self) {
        self.id.clear();
        self.time.clear();
        self.thread.clear();
        self.kind.clear();
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// Returns whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }
}

/// Keeps the `wanted` rows of one column.
fn retain<T>(column: &mut Vec<T>, wanted: &[bool]) {
    let mut wanted = wanted.iter();
    column.retain(|_| wanted.next().is_some_and(|w| *w));
}
