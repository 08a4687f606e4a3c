//! A small PyTorch on paper: builds traces event by event, as Kineto would record them.

use expect_test::Expect;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use xmem_analyzer::recording::{KEY, TensorKind};
use xmem_analyzer::{Block, Profile, analyze};
use xmem_trace::{DeviceKind, FlowKind, OpKind, Signature, SignatureId, Thread, Trace};
use xmem_types::{Addr, Diagnostics, Nanos, ThreadIdx};

/// A tensor's storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub(crate) address: u64,
    pub(crate) elements: u64,
}

impl Tensor {
    /// As a recording lists it.
    pub(crate) fn storage(self) -> Value {
        json!({"address": format!("0x{:x}", self.address), "bytes": self.elements * 4})
    }
}

/// A recording under way. Time advances by one microsecond an event.
pub(crate) struct Recorder {
    pub(crate) trace: Trace,
    /// The value of the key `xmem_recording`; null where `xmem profile` did not record.
    pub(crate) recording: Value,
    now: i64,
    next_address: u64,
    total: i64,
    sequence: i64,
    live: BTreeMap<u64, i64>,
    shapes: bool,
    python: bool,
}

/// The parts of a trace that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    Everything,
    NoShapes,
    NoPython,
    Neither,
}

impl Detail {
    pub(crate) const ALL: [Self; 4] =
        [Self::Everything, Self::NoShapes, Self::NoPython, Self::Neither];
}

const MAIN: ThreadIdx = ThreadIdx(0);

impl Recorder {
    pub(crate) fn new(detail: Detail) -> Self {
        let mut trace = Trace::default();
        let process = trace.strings.intern("1");
        trace.threads.push(Thread { process, thread: process });
        trace.signatures.push(Signature::default());
        Self {
            trace,
            recording: Value::Null,
            now: 0,
            next_address: 0x1000,
            total: 0,
            sequence: 0,
            live: BTreeMap::new(),
            shapes: matches!(detail, Detail::Everything | Detail::NoPython),
            python: matches!(detail, Detail::Everything | Detail::NoShapes),
        }
    }

    fn tick(&mut self) -> Nanos {
        self.now += 1000;
        Nanos(self.now)
    }

    /// An operator on float tensors of these element counts.
    pub(crate) fn op<R>(
        &mut self,
        name: &str,
        inputs: &[u64],
        body: impl FnOnce(&mut Self) -> R,
    ) -> R {
        self.row(name, OpKind::Operator, -1, inputs, body)
    }

    /// An operator that makes a backward node; its sequence number comes back.
    pub(crate) fn differentiable<R>(
        &mut self,
        name: &str,
        inputs: &[u64],
        body: impl FnOnce(&mut Self) -> R,
    ) -> (i64, R) {
        let sequence = self.sequence;
        self.sequence += 1;
        (sequence, self.row(name, OpKind::Operator, sequence, inputs, body))
    }

    pub(crate) fn annotation<R>(&mut self, name: &str, body: impl FnOnce(&mut Self) -> R) -> R {
        self.row(name, OpKind::Annotation, -1, &[], body)
    }

    /// A mark of `xmem profile` about a tensor: `to_device`, `on_device` or `to_host`.
    pub(crate) fn mark(&mut self, kind: &str, tensor: Tensor) {
        let Tensor { address, elements } = tensor;
        self.annotation(&format!("xmem::{kind} 0x{address:x} {}", elements * 4), |_| {});
    }

    /// `xmem profile`'s mark at the end of an iteration.
    pub(crate) fn iteration_ends(&mut self, number: usize) {
        self.annotation(&format!("xmem::iteration {number}"), |_| {});
    }

    /// A list in the metadata of `xmem profile`.
    pub(crate) fn listed(&mut self, key: &str) -> &mut Vec<Value> {
        let list = self.noted(key);
        if list.is_null() {
            *list = json!([]);
        }
        list.as_array_mut().expect("a list")
    }

    /// A field of the metadata of `xmem profile`.
    pub(crate) fn noted(&mut self, key: &str) -> &mut Value {
        self.recording["schema"] = "xmem.recording.1".into();
        &mut self.recording[key]
    }

    /// Lists a tensor of a model.
    pub(crate) fn list(&mut self, name: &str, model: usize, kind: TensorKind, tensor: Tensor) {
        let trained = kind == TensorKind::Parameter;
        self.listed("tensors").push(json!({
            "name": name,
            "model": model,
            "kind": if trained { "parameter" } else { "buffer" },
            "requires_grad": trained,
            "storage": tensor.storage(),
        }));
    }

    /// A backward node with the engine's frame around it.
    pub(crate) fn node<R>(
        &mut self,
        name: &str,
        sequence: i64,
        body: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let frame = format!("autograd::engine::evaluate_function: {name}");
        self.backward_row(&frame, sequence, &[], |r| r.backward_row(name, sequence, &[], body))
    }

    /// The accumulation of a gradient; `add` where there is one already.
    pub(crate) fn accumulate(&mut self, gradient: Tensor, add: bool) {
        let frame = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";
        let name = "torch::autograd::AccumulateGrad";
        let n = gradient.elements;
        self.backward_row(frame, -1, &[], |r| {
            r.backward_row(name, -1, &[n], |r| {
                let inner = if add { "aten::add_" } else { "aten::detach" };
                r.op(inner, &[n], |_| {});
            });
            if add {
                r.free(gradient);
            }
        });
    }

    fn backward_row<R>(
        &mut self,
        name: &str,
        sequence: i64,
        inputs: &[u64],
        body: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let row = self.trace.ops.len();
        let result = self.row(name, OpKind::Operator, sequence, inputs, body);
        self.trace.ops.forward_thread[row] = 1;
        result
    }

    fn row<R>(
        &mut self,
        name: &str,
        kind: OpKind,
        sequence: i64,
        inputs: &[u64],
        body: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let start = self.tick();
        let name = self.trace.strings.intern(name);
        let signature = self.signature(inputs);
        let ops = &mut self.trace.ops;
        let row = ops.len();
        ops.start.push(start);
        ops.duration.push(Nanos::ZERO);
        ops.name.push(name);
        ops.thread.push(MAIN);
        ops.kind.push(kind);
        ops.sequence.push(sequence);
        ops.forward_thread.push(0);
        ops.signature.push(signature);
        let result = body(self);
        self.trace.ops.duration[row] = self.tick() - start;
        result
    }

    fn signature(&mut self, inputs: &[u64]) -> SignatureId {
        if !self.shapes || inputs.is_empty() {
            return SignatureId(0);
        }
        let list = |f: &dyn Fn(u64) -> String| {
            format!("[{}]", inputs.iter().map(|n| f(*n)).collect::<Vec<_>>().join(","))
        };
        let dims = self.trace.strings.intern(&list(&|n| format!("[{n}]")));
        let types = self.trace.strings.intern(&list(&|_| "\"float\"".into()));
        let signature = Signature { dims, types, ..Signature::default() };
        let signatures = &mut self.trace.signatures;
        let at = signatures.iter().position(|s| *s == signature).unwrap_or_else(|| {
            signatures.push(signature);
            signatures.len() - 1
        });
        SignatureId(at as u32)
    }

    /// A Python call.
    pub(crate) fn call<R>(&mut self, name: &str, body: impl FnOnce(&mut Self) -> R) -> R {
        if !self.python {
            return body(self);
        }
        let start = self.tick();
        let name = self.trace.strings.intern(name);
        let row = self.trace.python.len();
        self.trace.python.start.push(start);
        self.trace.python.duration.push(Nanos::ZERO);
        self.trace.python.name.push(name);
        self.trace.python.thread.push(MAIN);
        let result = body(self);
        self.trace.python.duration[row] = self.tick() - start;
        result
    }

    /// Allocates a float tensor.
    pub(crate) fn alloc(&mut self, elements: u64) -> Tensor {
        let address = self.next_address;
        self.next_address += 0x1000;
        let bytes = elements as i64 * 4;
        self.live.insert(address, bytes);
        self.memory(address, bytes);
        Tensor { address, elements }
    }

    pub(crate) fn free(&mut self, tensor: Tensor) {
        let bytes = self.live.remove(&tensor.address).expect("freed twice");
        self.memory(tensor.address, -bytes);
    }

    /// A raw memory event.
    pub(crate) fn memory(&mut self, address: u64, bytes: i64) {
        let time = self.tick();
        self.total += bytes;
        let memory = &mut self.trace.memory;
        memory.time.push(time);
        memory.address.push(Addr(address));
        memory.bytes.push(bytes);
        memory.total_allocated.push(self.total);
        memory.total_reserved.push(0);
        memory.device.push(DeviceKind::Cpu);
        memory.device_index.push(-1);
        memory.thread.push(MAIN);
        memory.out_of_memory.push(false);
    }

    /// `torch.empty(n)`.
    pub(crate) fn empty(&mut self, elements: u64) -> Tensor {
        self.op("aten::empty", &[], |r| r.alloc(elements))
    }

    /// `nn.Parameter(torch.empty(n))`.
    pub(crate) fn parameter(&mut self, elements: u64) -> Tensor {
        let tensor = self.empty(elements);
        self.op("aten::detach", &[elements], |_| {});
        self.call("torch/nn/modules/module.py(593): register_parameter", |_| {});
        tensor
    }

    pub(crate) fn buffer(&mut self, elements: u64) -> Tensor {
        let tensor = self.op("aten::zeros", &[], |r| r.alloc(elements));
        self.call("torch/nn/modules/module.py(540): register_buffer", |_| {});
        tensor
    }
}

/// One layer: a weight, and what forward saved for it.
pub(crate) struct Layer {
    pub(crate) weight: Tensor,
    pub(crate) frozen: bool,
}

/// A linear forward over layers: each makes one activation of `batch` elements.
pub(crate) fn forward(r: &mut Recorder, layers: &[Layer], batch: Tensor) -> Vec<(i64, Tensor)> {
    r.call("nn.Module: Net_0", |r| {
        layers
            .iter()
            .map(|layer| {
                r.differentiable("aten::linear", &[batch.elements, layer.weight.elements], |r| {
                    let scratch = r.alloc(7);
                    let out = r.alloc(batch.elements);
                    r.free(scratch);
                    out
                })
            })
            .collect()
    })
}

/// The same without gradient, and nothing is kept.
pub(crate) fn evaluate(r: &mut Recorder, layers: &[Layer], batch: Tensor) {
    r.call("nn.Module: Net_0", |r| {
        for layer in layers {
            for name in ["aten::linear", "aten::relu", "aten::softmax"] {
                let out = r.op(name, &[batch.elements, layer.weight.elements], |r| {
                    r.alloc(batch.elements)
                });
                r.free(out);
            }
        }
    });
}

/// Backward over what [`forward`] saved; gives the gradients that are new.
pub(crate) fn backward(
    r: &mut Recorder,
    layers: &[Layer],
    saved: Vec<(i64, Tensor)>,
    earlier: &[Tensor],
) -> Vec<Tensor> {
    let mut gradients = Vec::new();
    let seed = r.op("aten::ones_like", &[], |r| r.alloc(1));
    for (layer, (sequence, activation)) in layers.iter().zip(saved).rev() {
        let gradient = r.node("AddmmBackward0", sequence, |r| {
            let passing = r.op("aten::mm", &[], |r| r.alloc(activation.elements));
            let gradient =
                (!layer.frozen).then(|| r.op("aten::mm", &[], |r| r.alloc(layer.weight.elements)));
            r.free(passing);
            r.free(activation);
            gradient
        });
        let Some(gradient) = gradient else { continue };
        let add = earlier.iter().any(|g| g.elements == gradient.elements);
        r.accumulate(gradient, add);
        if !add {
            gradients.push(gradient);
        }
    }
    r.free(seed);
    gradients
}

/// An Adam-like step of one state tensor and one counter a parameter.
pub(crate) fn step(r: &mut Recorder, name: &str, layers: &[Layer], first: bool) -> Vec<Tensor> {
    r.annotation(&format!("Optimizer.step#{name}.step"), |r| adam(r, layers, first))
}

pub(crate) fn adam(r: &mut Recorder, layers: &[Layer], first: bool) -> Vec<Tensor> {
    let mut state = Vec::new();
    for layer in layers.iter().filter(|l| !l.frozen) {
        let n = layer.weight.elements;
        if first {
            state.push(r.op("aten::empty", &[], |r| r.alloc(1)));
            r.op("aten::to", &[], |_| {});
            r.op("aten::lift_fresh", &[], |_| {});
            state.push(r.op("aten::zeros_like", &[n], |r| r.alloc(n)));
        }
        r.op("aten::lerp_", &[n, n], |_| {});
        let denominator = r.op("aten::sqrt", &[n], |r| r.alloc(n));
        r.op("aten::addcdiv_", &[n, n, n], |_| {});
        r.free(denominator);
    }
    state
}

pub(crate) fn zero_grad(r: &mut Recorder, gradients: &mut Vec<Tensor>) {
    r.annotation("Optimizer.zero_grad#Adam.zero_grad", |r| free_all(r, gradients));
}

pub(crate) fn free_all(r: &mut Recorder, tensors: &mut Vec<Tensor>) {
    for tensor in tensors.drain(..) {
        r.free(tensor);
    }
}

pub(crate) fn layers(r: &mut Recorder, sizes: &[u64]) -> Vec<Layer> {
    r.call("job.py(3): __init__", |r| {
        r.call("torch/nn/modules/module.py(483): __init__", |_| {});
        sizes.iter().map(|&n| Layer { weight: r.parameter(n), frozen: false }).collect()
    })
}

/// Phases as one line an iteration.
pub(crate) fn phases(profile: &Profile) -> String {
    let mut text = String::new();
    let mut iteration = None;
    for span in &profile.phases {
        if span.iteration != iteration {
            text.push('\n');
            iteration = span.iteration;
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push(' ');
        }
        text.push_str(span.phase.name());
    }
    text.push('\n');
    text
}

/// Role, residency, count, bytes and evidence, one line each.
pub(crate) fn roles(profile: &Profile) -> String {
    let mut rows: Vec<(&Block, usize, u64)> = Vec::new();
    for b in &profile.blocks {
        let same = |o: &Block| {
            (o.phase, o.role, o.residency, o.evidence) == (b.phase, b.role, b.residency, b.evidence)
        };
        match rows.iter_mut().find(|(o, ..)| same(o)) {
            Some(row) => (row.1, row.2) = (row.1 + 1, row.2 + b.size.get()),
            None => rows.push((b, 1, b.size.get())),
        }
    }
    rows.sort_by_key(|(b, ..)| (b.phase, b.role, b.residency));
    rows.iter()
        .map(|(b, n, bytes)| {
            format!(
                "{:14} {:15} {:9} {n:3} {bytes:6}  {}\n",
                b.phase.name(),
                b.role.name(),
                b.residency.name(),
                b.evidence.0
            )
        })
        .collect()
}

/// The memory from before the trace, one line each.
pub(crate) fn preexisting(profile: &Profile) -> String {
    let line = |p: &xmem_analyzer::Preexisting| {
        format!("{} {} x{}: {}\n", p.role.name(), p.size, p.count, p.evidence.0)
    };
    profile.preexisting.iter().map(line).collect()
}

/// A flow end, for tests of links.
pub(crate) fn flow(trace: &mut Trace, id: u64, time: Nanos, thread: ThreadIdx, kind: FlowKind) {
    trace.flows.id.push(id);
    trace.flows.time.push(time);
    trace.flows.thread.push(thread);
    trace.flows.kind.push(kind);
}

pub(crate) fn check(found: &str, expected: Expect) {
    expected.assert_eq(found);
}

pub(crate) fn done(mut r: Recorder) -> (Profile, Diagnostics) {
    if !r.recording.is_null() {
        r.trace.header.extra.push((KEY.to_owned(), r.recording.to_string()));
    }
    analyze(r.trace)
}

pub(crate) fn batch(r: &mut Recorder) -> Tensor {
    r.op("aten::randn", &[], |r| r.alloc(50))
}

/// The program that made a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Profiler,
    Recorder,
}

/// data, zero_grad, forward, backward, step; three times. The model is moved before.
pub(crate) fn plain_loop(detail: Detail, by: By) -> Recorder {
    let mut r = Recorder::new(detail);
    let net = layers(&mut r, &[100, 200]);
    let marked = by == By::Recorder;
    for (i, layer) in net.iter().enumerate().filter(|_| marked) {
        r.mark("to_device", layer.weight);
        r.list(&format!("{i}.weight"), 0, TensorKind::Parameter, layer.weight);
    }
    let mut gradients = Vec::new();
    let mut previous: Option<Tensor> = None;
    for iteration in 0..3 {
        let x = batch(&mut r);
        if marked {
            r.mark("to_device", x);
        }
        if let Some(x) = previous.replace(x) {
            r.free(x);
        }
        zero_grad(&mut r, &mut gradients);
        let saved = forward(&mut r, &net, x);
        gradients = backward(&mut r, &net, saved, &[]);
        step(&mut r, "Adam", &net, iteration == 0);
        if marked {
            r.iteration_ends(iteration + 1);
        }
        r.op("aten::item", &[], |_| {});
    }
    r
}
