//! A hand-made profiler trace: what a program does, call by call, written as Kineto JSON.

use super::arguments;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Nanoseconds between two things that happen.
const TICK: i64 = 1000;

/// A trace under construction. Blocks go by name; a name may be used again once it is freed.
#[derive(Default)]
pub(crate) struct Script {
    now: i64,
    events: Vec<String>,
    live: BTreeMap<String, (usize, u64)>,
    total: u64,
    /// Names of the blocks in order of allocation.
    pub(crate) names: Vec<String>,
    recording: Option<String>,
}

impl Script {
    fn tick(&mut self) -> i64 {
        self.now += TICK;
        self.now
    }

    fn span(&mut self, category: &str, name: &str, extra: &str, body: impl FnOnce(&mut Self)) {
        let start = self.tick();
        let row = self.events.len();
        self.events.push(String::new());
        body(self);
        let length = self.tick() - start;
        self.events[row] = format!(
            r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": 1, "tid": 1, "ts": {}, "dur": {}, "args": {{{extra} "Ev Idx": {row}}}}}"#,
            micros(start),
            micros(length),
        );
    }

    /// An operator that takes no part in autograd.
    pub(crate) fn op(&mut self, name: &str, args: &str, body: impl FnOnce(&mut Self)) {
        self.span("cpu_op", name, &arguments::fields(args), body);
    }

    /// A forward operator with its autograd sequence number.
    pub(crate) fn op_seq(
        &mut self,
        sequence: u32,
        name: &str,
        args: &str,
        body: impl FnOnce(&mut Self),
    ) {
        let fields = arguments::fields(args);
        let extra = format!(r#""Sequence number": {sequence}, "Fwd thread id": 0, {fields}"#);
        self.span("cpu_op", name, &extra, body);
    }

    /// An operator whose result is a new block.
    pub(crate) fn makes(&mut self, name: &str, args: &str, block: &str, bytes: u64) {
        self.op(name, args, |t| t.alloc(block, bytes));
    }

    /// A forward operator whose result is a new block.
    pub(crate) fn makes_seq(
        &mut self,
        sequence: u32,
        name: &str,
        args: &str,
        block: &str,
        bytes: u64,
    ) {
        self.op_seq(sequence, name, args, |t| t.alloc(block, bytes));
    }

    /// The engine's frame around the backward node of the operator with this sequence number.
    pub(crate) fn node(&mut self, sequence: u32, name: &str, body: impl FnOnce(&mut Self)) {
        let extra = format!(r#""Sequence number": {sequence}, "Fwd thread id": 1,"#);
        let frame = format!("autograd::engine::evaluate_function: {name}");
        self.span("cpu_op", &frame, &extra, body);
    }

    /// A leaf's gradient arrives.
    pub(crate) fn accumulate(&mut self, tensor: &str) {
        let name = "torch::autograd::AccumulateGrad";
        let frame = format!("autograd::engine::evaluate_function: {name}");
        self.span("cpu_op", &frame, "", |t| t.op(name, tensor, |_| ()));
    }

    /// An annotation (`record_function`), as torch and the profiler write them too.
    pub(crate) fn mark(&mut self, name: &str, body: impl FnOnce(&mut Self)) {
        self.span("user_annotation", name, "", body);
    }

    /// A mark of `xmem profile` about a block: `to_device`, `on_device` or `to_host`.
    pub(crate) fn marked(&mut self, kind: &str, name: &str) {
        let (block, bytes) = self.live[name];
        self.marked_at(kind, address(block), bytes);
    }

    /// The same about memory that the trace knows nothing of.
    pub(crate) fn marked_at(&mut self, kind: &str, address: u64, bytes: u64) {
        self.mark(&format!("xmem::{kind} 0x{address:x} {bytes}"), |_| ());
    }

    /// The metadata of `xmem profile`: the fields of the object behind its schema.
    pub(crate) fn recording(&mut self, fields: &str) {
        let json = format!(r#""xmem_recording": {{"schema": "xmem.recording.1", {fields}}}, "#);
        self.recording = Some(json);
    }

    /// The storage of a block, as a recording writes it.
    pub(crate) fn storage(&self, name: &str) -> String {
        let (block, bytes) = self.live[name];
        format!(r#""address": "0x{:x}", "bytes": {bytes}"#, address(block))
    }

    /// A Python call.
    pub(crate) fn python(&mut self, name: &str, body: impl FnOnce(&mut Self)) {
        self.span("python_function", name, "", body);
    }

    /// `ProfilerStep#n`.
    pub(crate) fn iteration(&mut self, n: u32, body: impl FnOnce(&mut Self)) {
        self.mark(&format!("ProfilerStep#{n}"), body);
    }

    /// `nn.Parameter(torch.empty(…))` of 32-bit floats.
    pub(crate) fn parameter(&mut self, name: &str, dims: &[u64]) {
        let list: Vec<String> = dims.iter().map(u64::to_string).collect();
        let list = list.join(",");
        self.makes("aten::empty", &format!("({list})"), name, 4 * dims.iter().product::<u64>());
        self.op("aten::detach", &format!("f32[{list}]"), |_| ());
    }

    /// Several of them.
    pub(crate) fn model(&mut self, parameters: &[(&str, &[u64])]) {
        for (name, dims) in parameters {
            self.parameter(name, dims);
        }
    }

    /// `torch.tensor(0.0)`, as optimizers count their steps.
    pub(crate) fn counter(&mut self, name: &str) {
        self.makes("aten::empty", "()", name, 4);
        self.op("aten::lift_fresh", "f32[]", |_| ());
    }

    /// Allocates.
    pub(crate) fn alloc(&mut self, name: &str, bytes: u64) {
        let block = self.names.len();
        self.names.push(name.to_owned());
        let before = self.live.insert(name.to_owned(), (block, bytes));
        assert!(before.is_none(), "{name} is still allocated");
        self.total += bytes;
        self.memory(block, bytes as i64);
    }

    /// Frees each of the blocks (names separated by blanks).
    pub(crate) fn free(&mut self, names: &str) {
        for name in names.split_whitespace() {
            let (block, bytes) =
                self.live.remove(name).unwrap_or_else(|| panic!("{name} is not allocated"));
            self.total -= bytes;
            self.memory(block, -(bytes as i64));
        }
    }

    fn memory(&mut self, block: usize, bytes: i64) {
        let time = self.tick();
        let (row, address) = (self.events.len(), address(block));
        self.events.push(format!(
            r#"{{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": {}, "args": {{"Total Allocated": {}, "Bytes": {bytes}, "Device Id": -1, "Device Type": 0, "Addr": {address}, "Ev Idx": {row}}}}}"#,
            micros(time),
            self.total,
        ));
    }

    /// The trace as the profiler would write it.
    pub(crate) fn json(&self) -> String {
        let mut text = String::from(
            r#"{"schemaVersion": 1, "with_stack": 0, "profile_memory": 1, "record_shapes": 1, "#,
        );
        text.extend(self.recording.as_deref());
        text.push_str(r#""traceEvents": ["#);
        for (i, event) in self.events.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let _ = write!(text, "{comma}\n{event}");
        }
        text.push_str("\n]}");
        text
    }
}

const fn address(block: usize) -> u64 {
    0x1_0000 * (block as u64 + 1)
}

/// Kineto writes microseconds with three decimals.
fn micros(nanos: i64) -> String {
    format!("{}.{:03}", nanos / 1000, nanos % 1000)
}
