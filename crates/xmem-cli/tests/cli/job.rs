//! A small hand-made training job as a trace: one parameter of 8 MiB, an activation of 64 MiB, a
//! gradient, SGD. Its operators are left alone by the rules of the lowering.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

const MIB: i64 = 1 << 20;

/// Events with a clock.
struct Recorder {
    now: i64,
    total: i64,
    events: Vec<Value>,
}

impl Recorder {
    /// An event with others inside; `sequence` is autograd's number, for operators that have one.
    fn span(
        &mut self,
        category: &str,
        name: &str,
        sequence: Option<usize>,
        inside: impl FnOnce(&mut Self),
    ) {
        let start = self.now;
        let row = self.events.len();
        self.events.push(Value::Null);
        self.now += 10;
        inside(self);
        self.now += 10;
        let mut args = json!({});
        if category == "cpu_op" {
            args = json!({"Input Dims": [[1024, 2048]], "Input type": ["float"]});
        }
        if let Some(number) = sequence {
            args["Sequence number"] = json!(number);
            args["Fwd thread id"] = json!(usize::from(name.contains("Backward")));
        }
        self.events[row] = json!({
            "ph": "X", "cat": category, "name": name, "pid": 7, "tid": 7,
            "ts": start, "dur": self.now - start, "args": args,
        });
        self.now += 1;
    }

    fn op(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.span("cpu_op", name, None, inside);
    }

    fn python(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.span("python_function", name, None, inside);
    }

    fn mark(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.span("user_annotation", name, None, inside);
    }

    fn memory(&mut self, address: i64, bytes: i64) {
        self.now += 1;
        self.total += bytes;
        self.events.push(json!({
            "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7, "tid": 7,
            "ts": self.now,
            "args": {"Total Reserved": 0, "Total Allocated": self.total, "Bytes": bytes,
                     "Addr": address, "Device Id": -1, "Device Type": 0},
        }));
        self.now += 1;
    }

    fn allocating(&mut self, op: &str, address: i64, bytes: i64) {
        self.op(op, |r| r.memory(address, bytes));
    }

    fn iteration(&mut self, step: usize) {
        self.iteration_with(step, |_| {});
    }

    /// An iteration with something more before its forward pass.
    fn iteration_with(&mut self, step: usize, more: impl FnOnce(&mut Self)) {
        self.mark(&format!("ProfilerStep#{step}"), |r| {
            more(r);
            r.python("nn.Module: Net_0", |r| {
                r.python("train.py(7): forward", |r| {
                    r.span("cpu_op", "aten::relu", Some(step), |r| r.memory(2, 64 * MIB));
                });
            });
            r.backward(step);
            r.mark("Optimizer.step#SGD.step", |r| r.op("aten::add_", |_| {}));
            r.mark("Optimizer.zero_grad#SGD.zero_grad", |r| r.memory(3, -8 * MIB));
        });
    }

    fn backward(&mut self, step: usize) {
        const NODE: &str = "autograd::engine::evaluate_function";
        self.span("cpu_op", &format!("{NODE}: ReluBackward0"), Some(step), |r| {
            r.span("cpu_op", "ReluBackward0", Some(step), |r| {
                r.allocating("aten::threshold_backward", 3, 8 * MIB);
            });
            r.memory(2, -64 * MIB);
        });
        self.op(&format!("{NODE}: torch::autograd::AccumulateGrad"), |r| {
            r.op("torch::autograd::AccumulateGrad", |r| r.op("aten::detach", |_| {}));
        });
    }
}

/// The trace of two iterations.
pub(crate) fn trace() -> Vec<u8> {
    let mut recorder = Recorder { now: 1000, total: 0, events: Vec::new() };
    recorder.python("train.py(3): __init__", |r| r.allocating("aten::empty", 1, 8 * MIB));
    recorder.iteration(0);
    recorder.iteration(1);
    document(&recorder.events)
}

/// A trace of so many iterations, each of which keeps 4 MiB more, as a cache of keys and values does.
pub(crate) fn growing_trace(iterations: usize) -> Vec<u8> {
    let mut recorder = Recorder { now: 1000, total: 0, events: Vec::new() };
    recorder.python("train.py(3): __init__", |r| r.allocating("aten::empty", 1, 8 * MIB));
    for step in 0..iterations {
        let address = 100 + i64::try_from(step).expect("few");
        recorder.iteration_with(step, |r| r.allocating("aten::cat", address, 4 * MIB));
    }
    document(&recorder.events)
}

/// A trace without memory events.
pub(crate) fn trace_without_memory() -> Vec<u8> {
    let mut recorder = Recorder { now: 1000, total: 0, events: Vec::new() };
    recorder.op("aten::relu", |_| {});
    document(&recorder.events)
}

fn document(events: &[Value]) -> Vec<u8> {
    let trace = json!({
        "schemaVersion": 1, "profile_memory": 1, "record_shapes": 1, "with_stack": 1,
        "traceEvents": events,
    });
    serde_json::to_vec_pretty(&trace).expect("JSON")
}

/// A folder with `job.json`, `silent.json` (no memory events) and `bad.json` (no trace).
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn empty() -> Self {
        Self(TempDir::new().expect("temporary folder"))
    }

    pub(crate) fn new() -> Self {
        let folder = Self::empty();
        folder.put("job.json", &trace());
        folder.put("silent.json", &trace_without_memory());
        folder.put("bad.json", b"to whom it may concern\n");
        folder
    }

    pub(crate) fn put(&self, name: &str, content: &[u8]) {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().expect("in the folder")).expect("made");
        std::fs::write(path, content).expect("written");
    }

    /// Puts a script there that can be run.
    pub(crate) fn put_program(&self, name: &str, script: &str) {
        let source = format!("{name}.sh");
        self.put(&source, script.as_bytes());
        self.install(&self.path(&source), name);
        std::fs::remove_file(self.0.path().join(source)).expect("removed");
    }

    /// Copies a program there. Another process does it: what a test starts at the same time would inherit the file
    /// that is written, and Linux runs no program that is open for writing ("Text file busy").
    pub(crate) fn install(&self, program: &str, name: &str) {
        let mut install = Command::new("install");
        install.args(["-m", "755", program, &self.path(name)]);
        assert!(install.status().expect("it runs").success(), "{install:?}");
    }

    pub(crate) fn path(&self, name: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        path.to_str().expect("UTF-8").to_owned()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path().join(name)).expect("readable")
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("listable");
        let mut names: Vec<String> =
            entries.map(|e| e.expect("entry").file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }
}
