//! What happened, as PyTorch's profiler would write it: operators with their arguments, allocations and
//! frees (torch/csrc/autograd/profiler_kineto.cpp).

use super::arguments::Args;
use super::text::integer;
use std::borrow::Cow;

/// Nanoseconds between two things that happen.
const TICK: u64 = 1000;

/// Distance of addresses: no two blocks share one.
const ADDRESSES: u64 = 64;

/// Events in order of their start.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    events: Vec<Event>,
    now: u64,
    allocated: u64,
    blocks: u64,
    closed: bool,
}

/// An event, with the fields that its kind has.
#[derive(Debug)]
enum Event {
    Call {
        kind: Kind,
        name: Cow<'static, str>,
        args: Args,
        sequence: Option<Sequence>,
        span: (u64, u64),
    },
    Memory {
        address: u64,
        bytes: i64,
        allocated: u64,
        time: u64,
    },
}

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Operator,
    Annotation,
    Python,
}

/// `Sequence number` and `Fwd thread id`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sequence {
    Forward(u64),
    Backward(u64),
}

/// A call that has begun.
#[derive(Debug)]
pub(crate) struct Begun(usize);

impl Journal {
    fn tick(&mut self) -> u64 {
        self.now += TICK;
        self.now
    }

    /// Begins a call.
    pub(crate) fn begin(
        &mut self,
        kind: Kind,
        name: impl Into<Cow<'static, str>>,
        args: Args,
        sequence: Option<Sequence>,
    ) -> Begun {
        let start = self.tick();
        let at = self.events.len();
        self.events.push(Event::Call {
            kind,
            name: name.into(),
            args,
            sequence,
            span: (start, start),
        });
        Begun(at)
    }

    /// Ends a call.
    pub(crate) fn end(&mut self, call: &Begun) {
        let end = self.tick();
        if let Some(Event::Call { span, .. }) = self.events.get_mut(call.0) {
            span.1 = end;
        }
    }

    /// Allocates; returns the address.
    pub(crate) fn allocate(&mut self, bytes: u64) -> u64 {
        self.blocks += 1;
        let address = ADDRESSES * self.blocks;
        self.allocated = self.allocated.saturating_add(bytes);
        self.memory(address, i64::try_from(bytes).unwrap_or(i64::MAX));
        address
    }

    /// Ends the recording: what is freed later is not in it.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Frees.
    pub(crate) fn free(&mut self, address: u64, bytes: u64) {
        if self.closed {
            return;
        }
        self.allocated = self.allocated.saturating_sub(bytes);
        self.memory(address, i64::try_from(bytes).map_or(i64::MIN, |b| -b));
    }

    fn memory(&mut self, address: u64, bytes: i64) {
        let time = self.tick();
        let allocated = self.allocated;
        self.events.push(Event::Memory { address, bytes, allocated, time });
    }

    /// Kineto's JSON, with `metadata` (members of the top-level object, each with a comma behind it).
    pub(crate) fn into_json(self, metadata: &str) -> String {
        let mut text = String::with_capacity(160 * self.events.len() + metadata.len() + 256);
        text.push_str(
            r#"{"schemaVersion": 1, "with_stack": 0, "profile_memory": 1, "record_shapes": 1, "#,
        );
        text.push_str(metadata);
        text.push_str(r#""traceEvents": ["#);
        for (row, event) in self.events.iter().enumerate() {
            text.push_str(if row == 0 { "\n" } else { ",\n" });
            event.write(row, &mut text);
        }
        // The profiler's span of the whole, which it writes at the end.
        text.push_str(if self.events.is_empty() { "\n" } else { ",\n" });
        text.push_str(r#"{"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 0.000, "dur": "#);
        micros(self.now, &mut text);
        text.push_str(r#", "args": {"Op count": 0}}"#);
        text.push_str("\n]}\n");
        text
    }
}

impl Event {
    fn write(&self, row: usize, text: &mut String) {
        match self {
            Self::Call { kind, name, args, sequence, span: (start, end) } => {
                let category = match kind {
                    Kind::Operator => "cpu_op",
                    Kind::Annotation => "user_annotation",
                    Kind::Python => "python_function",
                };
                text.push_str(r#"{"ph": "X", "cat": ""#);
                text.push_str(category);
                text.push_str(r#"", "name": ""#);
                escape(name, text);
                text.push_str(r#"", "pid": 1, "tid": 1, "ts": "#);
                micros(*start, text);
                text.push_str(r#", "dur": "#);
                micros(end - start, text);
                text.push_str(r#", "args": {"#);
                if let Some(sequence) = sequence {
                    let (number, thread) = match sequence {
                        Sequence::Forward(number) => (*number, 0_u8),
                        Sequence::Backward(number) => (*number, 1),
                    };
                    text.push_str(r#""Sequence number": "#);
                    integer(text, number);
                    text.push_str(r#", "Fwd thread id": "#);
                    integer(text, thread);
                    text.push_str(", ");
                }
                args.write(text);
                text.push_str(r#""Ev Idx": "#);
                integer(text, row);
                text.push_str("}}");
            }
            Self::Memory { address, bytes, allocated, time } => {
                text.push_str(
                    r#"{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": "#,
                );
                micros(*time, text);
                text.push_str(r#", "args": {"Total Allocated": "#);
                integer(text, *allocated);
                text.push_str(r#", "Bytes": "#);
                integer(text, *bytes);
                text.push_str(r#", "Device Id": -1, "Device Type": 0, "Addr": "#);
                integer(text, *address);
                text.push_str(r#", "Ev Idx": "#);
                integer(text, row);
                text.push_str("}}");
            }
        }
    }
}

/// Kineto writes microseconds with three decimals.
fn micros(nanos: u64, text: &mut String) {
    integer(text, nanos / 1000);
    let decimals = nanos % 1000;
    text.push_str(match decimals {
        0..10 => ".00",
        10..100 => ".0",
        _ => ".",
    });
    integer(text, decimals);
}

fn escape(name: &str, text: &mut String) {
    for c in name.chars() {
        match c {
            '"' | '\\' => {
                text.push('\\');
                text.push(c);
            }
            c if c.is_control() => text.push('?'),
            c => text.push(c),
        }
    }
}
