//! What happens in a run, as data, and as the text that PyTorch's profiler would write (Kineto's JSON;
//! torch/csrc/autograd/profiler_kineto.cpp).

use crate::text::integer;

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// An operator.
    Operator,
    /// An annotation of the program (`record_function`).
    Annotation,
    /// A call of a function in Python.
    Python,
}

/// The place of an operator in the graph of gradients: `Sequence number` and `Fwd thread id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// Of a forward operator.
    Forward(u64),
    /// Of the node that computes its gradient.
    Backward(u64),
}

/// Arguments of a call, each list as the text of a JSON array without its brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentLists<'a> {
    /// `Input Dims`.
    pub dims: &'a str,
    /// `Input type`.
    pub types: &'a str,
    /// `Input Strides`.
    pub strides: &'a str,
    /// `Concrete Inputs`.
    pub concrete: &'a str,
}

/// Something that happens. Times are nanoseconds from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened<'a> {
    /// A call.
    Call {
        /// Its kind.
        kind: CallKind,
        /// What is called.
        name: &'a str,
        /// Its arguments, if there are any, with a number that equal arguments share.
        arguments: Option<(u32, ArgumentLists<'a>)>,
        /// Its place in the graph of gradients.
        sequence: Option<Sequence>,
        /// When it begins.
        start: u64,
        /// How long it takes.
        duration: u64,
    },
    /// An allocation, or a free with a negative number of bytes.
    Memory {
        /// The address; no two blocks share one.
        address: u64,
        /// The size.
        bytes: i64,
        /// All bytes that are allocated after it.
        allocated: u64,
        /// When it happens.
        time: u64,
    },
}

impl Sequence {
    /// The number, and the thread of the forward operator: zero for that operator itself.
    #[must_use]
    pub const fn numbers(self) -> (u64, u32) {
        match self {
            Self::Forward(number) => (number, 0),
            Self::Backward(number) => (number, 1),
        }
    }
}

/// A whole recording as text: members of the top-level object with their raw values, and the events up to `end`.
pub(crate) fn json<'a>(
    members: &[(&str, &str)],
    events: impl ExactSizeIterator<Item = Happened<'a>>,
    end: u64,
) -> String {
    let length: usize = members.iter().map(|(key, value)| key.len() + value.len() + 6).sum();
    let mut text = String::with_capacity(160 * events.len() + length + 256);
    text.push('{');
    for (key, value) in members {
        text.push('"');
        text.push_str(key);
        text.push_str("\": ");
        text.push_str(value);
        text.push_str(", ");
    }
    text.push_str(r#""traceEvents": ["#);
    for (row, event) in events.enumerate() {
        text.push_str(if row == 0 { "\n" } else { ",\n" });
        write(&event, row, &mut text);
    }
    // The profiler's span of the whole, which it writes at the end.
    text.push_str(if text.ends_with('[') { "\n" } else { ",\n" });
    text.push_str(r#"{"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 0.000, "dur": "#);
    micros(end, &mut text);
    text.push_str(r#", "args": {"Op count": 0}}"#);
    text.push_str("\n]}\n");
    text
}

fn write(event: &Happened<'_>, row: usize, text: &mut String) {
    match *event {
        Happened::Call { kind, name, arguments, sequence, start, duration } => {
            let category = match kind {
                CallKind::Operator => "cpu_op",
                CallKind::Annotation => "user_annotation",
                CallKind::Python => "python_function",
            };
            text.push_str(r#"{"ph": "X", "cat": ""#);
            text.push_str(category);
            text.push_str(r#"", "name": ""#);
            escape(name, text);
            text.push_str(r#"", "pid": 1, "tid": 1, "ts": "#);
            micros(start, text);
            text.push_str(r#", "dur": "#);
            micros(duration, text);
            text.push_str(r#", "args": {"#);
            if let Some(sequence) = sequence {
                let (number, thread) = sequence.numbers();
                text.push_str(r#""Sequence number": "#);
                integer(text, number);
                text.push_str(r#", "Fwd thread id": "#);
                integer(text, thread);
                text.push_str(", ");
            }
            if let Some((_, lists)) = arguments {
                lists.write(text);
            }
            text.push_str(r#""Ev Idx": "#);
            integer(text, row);
            text.push_str("}}");
        }
        Happened::Memory { address, bytes, allocated, time } => {
            text.push_str(
                r#"{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": "#,
            );
            micros(time, text);
            text.push_str(r#", "args": {"Total Allocated": "#);
            integer(text, allocated);
            text.push_str(r#", "Bytes": "#);
            integer(text, bytes);
            text.push_str(r#", "Device Id": -1, "Device Type": 0, "Addr": "#);
            integer(text, address);
            text.push_str(r#", "Ev Idx": "#);
            integer(text, row);
            text.push_str("}}");
        }
    }
}

impl ArgumentLists<'_> {
    /// Members of the event's `args`, each with a comma behind it.
    fn write(&self, text: &mut String) {
        let columns = [
            ("\"Input Dims\": [", self.dims),
            ("\"Input type\": [", self.types),
            ("\"Input Strides\": [", self.strides),
            ("\"Concrete Inputs\": [", self.concrete),
        ];
        for (name, column) in columns {
            text.push_str(name);
            text.push_str(column);
            text.push_str("], ");
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
