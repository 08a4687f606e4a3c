//! Plays a profiler: a clock, open operators and Python calls, memory; writes what it saw.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Nanoseconds between two readings of the clock.
const TICK: u64 = 1_000;
/// What times are relative to, as PyTorch 2.4 and later have it.
const BASE: u64 = 1_790_857_026_000_000_000;
/// First reading of the clock.
const START: u64 = 4_377_034_071_000_000;
/// The process.
const PID: u32 = 9_591;

/// An operator or annotation that was begun.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Op(usize);

/// A Python call that was begun.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Frame(usize);

/// Memory that was allocated.
#[derive(Clone, Copy, Debug)]
pub struct Storage {
    address: u64,
    bytes: u64,
}

impl Storage {
    /// Where it lies.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// How many bytes were asked for.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Arguments of operators, as they are written.
#[derive(Clone, Copy, Debug)]
pub struct Signature(usize);

/// How the clock goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Clock {
    /// Each event is later than the one before.
    #[default]
    Ticks,
    /// All is at the same time and lasts no time.
    Stands,
}

#[derive(Clone, Copy, Debug)]
struct OpRow {
    name: usize,
    annotation: Annotation,
    thread: u32,
    start: u64,
    end: u64,
    sequence: Option<Sequence>,
    signature: Option<Signature>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Annotation {
    No,
    Yes,
}

#[derive(Clone, Copy, Debug)]
struct Sequence {
    number: u64,
    end: FlowEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowEnd {
    Forward,
    Backward,
}

#[derive(Clone, Copy, Debug)]
struct MemoryRow {
    time: u64,
    thread: u32,
    address: u64,
    change: i64,
    total: i64,
}

#[derive(Clone, Copy, Debug)]
struct FrameRow {
    name: usize,
    thread: u32,
    start: u64,
    end: u64,
    parent: Option<usize>,
    module: Option<u64>,
}

/// Events as they happen, in the order of calls.
#[derive(Debug, Default)]
pub struct Recorder {
    clock: Clock,
    now: u64,
    thread: u32,
    names: BTreeMap<String, usize>,
    texts: Vec<String>,
    signatures: Vec<String>,
    ops: Vec<OpRow>,
    memory: Vec<MemoryRow>,
    frames: Vec<FrameRow>,
    open_frames: BTreeMap<u32, Vec<usize>>,
    total: i64,
    next_address: u64,
    /// Freed addresses by size: they are handed out again, the last first.
    freed: BTreeMap<u64, Vec<u64>>,
}

impl Recorder {
    /// A recording that begins.
    #[must_use]
    pub fn new() -> Self {
        Self { now: START, thread: PID, next_address: 0x7f00_0000_0000, ..Self::default() }
    }

    /// Stops the clock: all that follows has the same time.
    pub fn stop_clock(&mut self) {
        self.clock = Clock::Stands;
    }

    /// Goes on in another thread, counted from 0, the first.
    pub fn on_thread(&mut self, thread: u32) {
        self.thread = PID + thread;
    }

    /// Events so far.
    #[must_use]
    pub fn events(&self) -> usize {
        let linked = self.ops.iter().filter(|op| op.sequence.is_some()).count();
        self.ops.len() + linked + self.memory.len() + self.frames.len()
    }

    /// Arguments: sizes of tensors, nothing for numbers.
    pub fn signature(&mut self, tensors: &[&[u64]]) -> Signature {
        let mut dims = Vec::new();
        let mut strides = Vec::new();
        for sizes in tensors {
            dims.push(list(sizes.iter().copied()));
            let stride = |at: usize| sizes[at + 1..].iter().product::<u64>();
            strides.push(list((0..sizes.len()).map(stride)));
        }
        let types = tensors.iter().map(|t| if t.is_empty() { "\"Scalar\"" } else { "\"float\"" });
        let types = types.collect::<Vec<_>>().join(", ");
        let values = vec!["\"\""; tensors.len()].join(", ");
        self.signatures.push(format!(
            "\"Concrete Inputs\": [{values}], \"Input type\": [{types}], \
             \"Input Strides\": [{}], \"Input Dims\": [{}], ",
            strides.join(", "),
            dims.join(", ")
        ));
        Signature(self.signatures.len() - 1)
    }

    /// Begins an operator.
    pub fn op(&mut self, name: &str, signature: Option<Signature>) -> Op {
        self.begin(name, Annotation::No, None, signature)
    }

    /// Begins an operator that makes the backward node of this number.
    pub fn forward(&mut self, name: &str, number: u64, signature: Option<Signature>) -> Op {
        let sequence = Sequence { number, end: FlowEnd::Forward };
        self.begin(name, Annotation::No, Some(sequence), signature)
    }

    /// Begins a backward node.
    pub fn backward(&mut self, name: &str, number: u64) -> Op {
        let sequence = Sequence { number, end: FlowEnd::Backward };
        self.begin(name, Annotation::No, Some(sequence), None)
    }

    /// Begins an annotation.
    pub fn annotation(&mut self, name: &str) -> Op {
        self.begin(name, Annotation::Yes, None, None)
    }

    fn begin(
        &mut self,
        name: &str,
        annotation: Annotation,
        sequence: Option<Sequence>,
        signature: Option<Signature>,
    ) -> Op {
        let (name, thread, start) = (self.name(name), self.thread, self.tick());
        self.ops.push(OpRow { name, annotation, thread, start, end: start, sequence, signature });
        Op(self.ops.len() - 1)
    }

    /// Ends an operator or annotation.
    pub fn end(&mut self, op: Op) {
        self.ops[op.0].end = self.tick();
    }

    /// An operator that does nothing that is recorded.
    pub fn leaf(&mut self, name: &str, signature: Option<Signature>) {
        let op = self.op(name, signature);
        self.end(op);
    }

    /// An operator that begins and ends at once.
    pub fn instant(&mut self, name: &str) {
        let op = self.op(name, None);
        self.ops[op.0].end = self.ops[op.0].start;
    }

    /// Calls a Python function.
    pub fn call(&mut self, name: &str) -> Frame {
        self.call_of(name, None)
    }

    /// Calls a module.
    pub fn call_module(&mut self, class: &str, number: u64) -> Frame {
        self.call_of(&format!("nn.Module: {class}_{number}"), Some(number))
    }

    fn call_of(&mut self, name: &str, module: Option<u64>) -> Frame {
        let (name, thread, start) = (self.name(name), self.thread, self.tick());
        let row = self.frames.len();
        let open = self.open_frames.entry(thread).or_default();
        let parent = open.last().copied();
        open.push(row);
        self.frames.push(FrameRow { name, thread, start, end: start, parent, module });
        Frame(row)
    }

    /// Returns from the innermost Python call of the thread.
    pub fn give_back(&mut self, frame: Frame) {
        let end = self.tick();
        self.frames[frame.0].end = end;
        self.open_frames.entry(self.frames[frame.0].thread).or_default().pop();
    }

    /// Allocates.
    pub fn alloc(&mut self, bytes: u64) -> Storage {
        let rounded = bytes.next_multiple_of(64);
        let address = self.freed.get_mut(&rounded).and_then(Vec::pop).unwrap_or_else(|| {
            let address = self.next_address;
            self.next_address += rounded;
            address
        });
        self.memory(address, bytes.cast_signed());
        Storage { address, bytes }
    }

    /// Frees.
    pub fn free(&mut self, storage: Storage) {
        self.memory(storage.address, -storage.bytes.cast_signed());
        self.freed.entry(storage.bytes.next_multiple_of(64)).or_default().push(storage.address);
    }

    /// Frees what was allocated before the recording began.
    pub fn free_unknown(&mut self, bytes: u64) {
        self.next_address += bytes.next_multiple_of(64);
        self.memory(self.next_address, -bytes.cast_signed());
    }

    fn memory(&mut self, address: u64, change: i64) {
        self.total += change;
        let (time, thread, total) = (self.tick(), self.thread, self.total);
        self.memory.push(MemoryRow { time, thread, address, change, total });
    }

    fn tick(&mut self) -> u64 {
        if self.clock == Clock::Ticks {
            self.now += TICK;
        }
        self.now
    }

    fn name(&mut self, text: &str) -> usize {
        if let Some(&at) = self.names.get(text) {
            return at;
        }
        self.texts.push(text.to_owned());
        self.names.insert(text.to_owned(), self.texts.len() - 1);
        self.texts.len() - 1
    }

    /// The trace.
    #[must_use]
    pub fn json(&self) -> Vec<u8> {
        let mut out = String::with_capacity(64 + 280 * self.events());
        let _ = write!(
            out,
            "{{\n  \"schemaVersion\": 1,\n  \"with_stack\": 1,\n  \"profile_memory\": 1,\n  \
             \"record_shapes\": 1,\n  \"displayTimeUnit\": \"ms\",\n  \
             \"baseTimeNanoseconds\": {BASE},\n  \"traceEvents\": ["
        );
        let list = out.len();
        for (index, op) in self.ops.iter().enumerate() {
            self.write_op(&mut out, index, op);
        }
        for (index, memory) in self.memory.iter().enumerate() {
            write_memory(&mut out, self.ops.len() + index, memory);
        }
        for (index, frame) in self.frames.iter().enumerate() {
            self.write_frame(&mut out, index, frame);
        }
        // Every event begins with a comma.
        if out.len() > list {
            out.replace_range(list..=list, "");
        }
        out.push_str("\n  ],\n  \"traceName\": \"synthetic.json\"\n}\n");
        out.into_bytes()
    }

    fn write_op(&self, out: &mut String, index: usize, op: &OpRow) {
        let category = match op.annotation {
            Annotation::Yes => "user_annotation",
            Annotation::No => "cpu_op",
        };
        let (name, thread) = (&self.texts[op.name], op.thread);
        let (start, duration) = (Micros(op.start), Micros(op.end - op.start));
        let _ = write!(
            out,
            ",\n  {{\n    \"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"{name}\", \
             \"pid\": {PID}, \"tid\": {thread},\n    \"ts\": {start}, \"dur\": {duration},\n    \
             \"args\": {{\n      \"External id\": {},",
            index + 1
        );
        if let Some(Sequence { number, end }) = op.sequence {
            let forward = u32::from(end == FlowEnd::Backward);
            let _ = write!(out, "\"Sequence number\": {number}, \"Fwd thread id\": {forward}, ");
        }
        let arguments = op.signature.map_or("", |s| &self.signatures[s.0]);
        let _ =
            write!(out, "\"Record function id\": 0, {arguments}\"Ev Idx\": {index}\n    }}\n  }}");
        if let Some(Sequence { number, end }) = op.sequence {
            let (letter, binding) = match end {
                FlowEnd::Forward => ("s", ""),
                FlowEnd::Backward => ("f", ", \"bp\": \"e\""),
            };
            let _ = write!(
                out,
                ",\n  {{\n    \"ph\": \"{letter}\", \"id\": {number}, \"pid\": {PID}, \
                 \"tid\": {thread}, \"ts\": {start},\n    \"cat\": \"fwdbwd\", \
                 \"name\": \"fwdbwd\"{binding}\n  }}"
            );
        }
    }

    fn write_frame(&self, out: &mut String, row: usize, frame: &FrameRow) {
        let (name, thread) = (&self.texts[frame.name], frame.thread);
        let (start, duration) = (Micros(frame.start), Micros(frame.end - frame.start));
        let _ = write!(
            out,
            ",\n  {{\n    \"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"{name}\", \
             \"pid\": {PID}, \"tid\": {thread},\n    \"ts\": {start}, \"dur\": {duration},\n    \
             \"args\": {{\n      "
        );
        if let Some(module) = frame.module {
            let _ = write!(out, "\"Python module id\": {module}, ");
        }
        match frame.parent {
            Some(parent) => {
                let _ = write!(out, "\"Python parent id\": {}, ", parent + 1);
            }
            None => out.push_str("\"Python parent id\": null, "),
        }
        let index = self.ops.len() + self.memory.len() + row;
        let _ = write!(out, "\"Python id\": {}, \"Ev Idx\": {index}\n    }}\n  }}", row + 1);
    }
}

fn write_memory(out: &mut String, index: usize, row: &MemoryRow) {
    let MemoryRow { time, thread, address, change, total } = *row;
    let _ = write!(
        out,
        ",\n  {{\n    \"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \
         \"name\": \"[memory]\",\n    \"pid\": {PID}, \"tid\": {thread},\n    \"ts\": {},\n    \
         \"args\": {{\n      \"Total Reserved\": 0, \"Total Allocated\": {total}, \
         \"Bytes\": {change}, \"Device Id\": -1, \"Device Type\": 0, \"Addr\": {address}, \
         \"finished\": false, \"Ev Idx\": {index}\n    }}\n  }}",
        Micros(time)
    );
}

/// Nanoseconds, written as microseconds with three decimals.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

fn list(numbers: impl Iterator<Item = u64>) -> String {
    let texts: Vec<String> = numbers.map(|n| n.to_string()).collect();
    format!("[{}]", texts.join(", "))
}
