//! The content of a trace, as counts and names, as `xmem inspect` shows it.

use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use xmem_analyzer::recording::{
    self, EndReason, Implementation, IterationCount, Rank, Recording, Strategy, TensorKind,
};
use xmem_analyzer::{GpuRecording, GpuSource, Profile};
use xmem_snapshot::{Action, Snapshot};
use xmem_trace::{DeviceKind, OpKind, Trace};
use xmem_types::{BlockId, Bytes, Nanos, Sym};

/// The content of a trace, whatever it is estimated for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFacts {
    /// All events of the file.
    pub events: u64,
    /// Operators.
    pub operators: u64,
    /// Annotations (`record_function`, `ProfilerStep#…`, torch's own).
    pub annotations: u64,
    /// Python calls (`with_stack=True`).
    pub python_calls: u64,
    /// Allocations and frees of host memory.
    pub host_memory_events: u64,
    /// Allocations and frees of device memory.
    pub device_memory_events: u64,
    /// `[OutOfMemory]` events.
    pub out_of_memory_events: u64,
    /// Links between forward operators and backward nodes.
    pub links: u64,
    /// Other events by category, by name.
    pub other_events: Vec<(String, u64)>,
    /// Threads that have events.
    pub threads: u64,
    /// `schemaVersion` of the file.
    pub schema_version: Option<i64>,
    /// Profiler options that were on, as the file states them.
    pub options: Vec<String>,
    /// Devices that the recording machine's profiler listed.
    pub devices: Vec<String>,
    /// The place of the recorded process among those of its job, if it is distributed.
    pub rank: Option<Rank>,
    /// The notes of `xmem profile`, if it made the recording.
    pub recording: Option<RecordingFacts>,
    /// Keys of the other metadata at the top level of the file.
    pub metadata: Vec<String>,
    /// Optimizers seen at work (`AdamW`), by name.
    pub optimizers: Vec<String>,
    /// Operators whose argument shapes were recorded.
    pub operators_with_shapes: u64,
    /// Distinct module paths.
    pub modules: u64,
    /// Iterations in order.
    pub iterations: Vec<IterationFacts>,
    /// Host blocks: allocations paired with their frees where the trace has them.
    pub blocks: u64,
    /// Host blocks that are never freed within the trace.
    pub blocks_never_freed: u64,
    /// The largest number of host bytes that the recorded blocks held at once.
    pub host_peak: Bytes,
    /// The GPU, if the job was recorded on one: blocks and iterations are then those of its memory.
    pub gpu: Option<GpuFacts>,
}

/// What a recording of a GPU says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuFacts {
    /// The kind of file.
    pub source: GpuSource,
    /// True if it was a virtual GPU, on which kernels have no effect.
    pub is_virtual: bool,
    /// Its name, where the file has it.
    pub name: Option<String>,
    /// Its compute capability, where the file has it.
    pub compute_capability: Option<(u8, u8)>,
    /// Its index among those of the process.
    pub index: i16,
    /// The number of GPUs of which the file has memory; that of one is replayed.
    pub devices: u64,
    /// Bytes that were allocated before the recording began.
    pub allocated_before: Bytes,
    /// The recorded peak of allocated memory, where the file says so (traces).
    pub peak_allocated: Option<Bytes>,
    /// The recorded peak of requested memory, where the file says so (snapshots).
    pub peak_requested: Option<Bytes>,
    /// The recorded peak of reserved memory, where the file says so.
    pub peak_reserved: Option<Bytes>,
}

impl GpuFacts {
    fn of(gpu: &GpuRecording, profile: &Profile) -> Self {
        Self {
            source: gpu.source,
            is_virtual: profile.virtual_gpu().is_some(),
            name: gpu.properties.name.clone(),
            compute_capability: gpu.properties.compute_capability,
            index: gpu.index,
            devices: gpu.devices as u64,
            allocated_before: gpu.allocated_before,
            peak_allocated: gpu.peak_allocated,
            peak_requested: gpu.peak_requested,
            peak_reserved: gpu.peak_reserved,
        }
    }
}

/// The notes of `xmem profile` beside the events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingFacts {
    /// Version of the recorder.
    pub recorder: Option<String>,
    /// `torch.__version__`.
    pub torch: Option<String>,
    /// Version of Python.
    pub python: Option<String>,
    /// The device that the script was to run on.
    pub reported_device: Option<String>,
    /// The event that was counted as an iteration, and the number of recorded iterations.
    pub iterations: Option<(String, u64)>,
    /// Resident memory of the recording process at the end of each iteration, as far as it was noted.
    pub resident: Vec<Bytes>,
    /// The reason why the recording ended; [`EndReason::Complete`] if all that was requested is in
    /// it.
    pub ended: Option<EndReason>,
    /// The exception, signal or exit code that ended it.
    pub ended_by: Option<String>,
    /// The models.
    pub models: Vec<ModelFacts>,
    /// The optimizers.
    pub optimizers: Vec<OptimizerFacts>,
    /// Samples in a batch.
    pub batch_size: Option<u64>,
    /// Types that were requested from autocast.
    pub autocast: Vec<String>,
    /// The strategies by which the job is distributed, where the recorder noted them.
    pub strategies: Vec<Strategy>,
    /// The notes that the recorder showed to the user.
    pub notes: Vec<String>,
}

/// A model of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFacts {
    /// Its class, with the module it is defined in.
    pub class: String,
    /// The number of modules it consists of.
    pub modules: u64,
    /// The number of its parameters.
    pub parameters: u64,
    /// Their bytes; those that lie in one storage count once.
    pub parameter_bytes: Bytes,
}

/// An optimizer of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptimizerFacts {
    /// Its class, with the module it is defined in.
    pub class: String,
    /// The implementation that the script requested.
    pub implementation: Implementation,
    /// The number of tensors it updates.
    pub tensors: u64,
}

impl RecordingFacts {
    fn of(recording: &Recording) -> Self {
        let ended = recording.ended.as_ref();
        let count = |c: &IterationCount| (c.by.clone(), c.count);
        Self {
            recorder: recording.recorder.clone(),
            torch: recording.torch.clone(),
            python: recording.python.clone(),
            reported_device: recording.reported_device.clone(),
            iterations: recording.iterations.as_ref().map(count),
            resident: recording.iterations.as_ref().map_or_else(Vec::new, |c| c.resident.clone()),
            ended: ended.map(|e| e.reason),
            ended_by: ended.and_then(|e| e.detail.clone()),
            models: models(recording),
            optimizers: recording
                .optimizers
                .iter()
                .map(|o| OptimizerFacts {
                    class: o.class.clone(),
                    implementation: o.implementation,
                    tensors: o.tensors,
                })
                .collect(),
            batch_size: recording.batch_size,
            autocast: recording.autocast.clone(),
            strategies: recording.strategies.clone(),
            notes: recording.notes.clone(),
        }
    }
}

fn models(recording: &Recording) -> Vec<ModelFacts> {
    let mut models: Vec<ModelFacts> = recording
        .models
        .iter()
        .map(|m| ModelFacts {
            class: m.class.clone(),
            modules: m.modules as u64,
            parameters: 0,
            parameter_bytes: Bytes::ZERO,
        })
        .collect();
    let mut seen = BTreeSet::new();
    for tensor in recording.tensors.iter().filter(|t| t.kind == TensorKind::Parameter) {
        let Some(model) = tensor.model.and_then(|row| models.get_mut(row)) else { continue };
        model.parameters += 1;
        if seen.insert((tensor.model, tensor.storage.address)) {
            model.parameter_bytes += tensor.storage.bytes;
        }
    }
    models
}

/// One iteration as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IterationFacts {
    /// Time it took on the recording machine.
    pub duration: Nanos,
    /// Host blocks allocated in it.
    pub blocks: u64,
    /// Host bytes allocated in it, in all.
    pub allocated: Bytes,
}

impl TraceFacts {
    /// Counts the events before the analysis takes the trace.
    pub(crate) fn of_trace(trace: &Trace) -> Self {
        let count = |wanted| trace.ops.kind.iter().filter(|&&k| k == wanted).count() as u64;
        let memory = &trace.memory;
        let on = |host: bool| {
            let matches = |i: &usize| {
                (memory.device[*i] == DeviceKind::Cpu) == host && !memory.out_of_memory[*i]
            };
            (0..memory.len()).filter(matches).count() as u64
        };
        let mut other_events: Vec<_> =
            trace.other_events.iter().map(|(name, &n)| (name.clone(), n)).collect();
        other_events.sort();
        Self {
            events: trace.event_count,
            operators: count(OpKind::Operator),
            annotations: count(OpKind::Annotation),
            python_calls: trace.python.len() as u64,
            host_memory_events: on(true),
            device_memory_events: on(false),
            out_of_memory_events: memory.out_of_memory.iter().filter(|&&o| o).count() as u64,
            links: (trace.flows.len() / 2) as u64,
            other_events,
            threads: trace.threads.len() as u64,
            schema_version: trace.header.schema_version,
            options: trace.header.options.clone(),
            devices: trace.header.devices.clone(),
            metadata: metadata(trace),
            optimizers: optimizers(trace),
            operators_with_shapes: operators_with_shapes(trace),
            ..Self::default()
        }
    }

    /// The content of a memory snapshot.
    pub(crate) fn of_snapshot(snapshot: &Snapshot) -> Self {
        let actions = || snapshot.device_traces.iter().flatten().map(|entry| entry.action);
        let count = |is: fn(Action) -> bool| actions().filter(|&action| is(action)).count() as u64;
        Self {
            events: actions().count() as u64,
            annotations: snapshot.annotations.len() as u64,
            device_memory_events: count(|action| {
                matches!(action, Action::Alloc | Action::FreeRequested)
            }),
            out_of_memory_events: count(|action| matches!(action, Action::OutOfMemory { .. })),
            ..Self::default()
        }
    }

    /// Adds what the analysis found.
    pub(crate) fn with_profile(mut self, profile: &Profile) -> Self {
        self.gpu = profile.gpu.as_ref().map(|gpu| GpuFacts::of(gpu, profile));
        self.rank = profile.rank();
        self.recording = profile.recording().map(RecordingFacts::of);
        self.blocks = profile.blocks.len() as u64;
        self.blocks_never_freed = profile.blocks.iter().filter(|b| b.free.is_none()).count() as u64;
        self.host_peak = host_peak(profile);
        let unnamed = |row: &usize| profile.tensor(BlockId::new(*row)).is_none();
        let modules = (0..profile.blocks.len()).filter(unnamed);
        let modules: FxHashSet<Sym> = modules.map(|row| profile.blocks[row].module).collect();
        self.modules = modules.iter().filter(|&&m| m != Sym::EMPTY).count() as u64;
        self.iterations = profile
            .iterations
            .iter()
            .map(|i| {
                let within = profile.blocks_between(i.start, i.end - Nanos(1));
                let blocks = &profile.blocks[within];
                IterationFacts {
                    duration: i.end - i.start,
                    blocks: blocks.len() as u64,
                    allocated: blocks.iter().map(|b| b.size).sum(),
                }
            })
            .collect();
        self
    }
}

/// The top-level keys of the trace, without that of `xmem profile`.
fn metadata(trace: &Trace) -> Vec<String> {
    let keys = trace.header.extra.iter().map(|(key, _)| key);
    keys.filter(|key| *key != recording::KEY).cloned().collect()
}

/// torch/optim/optimizer.py, `profile_hook_step` names each step after the optimizer's class.
fn optimizers(trace: &Trace) -> Vec<String> {
    let names: BTreeSet<&str> = trace
        .strings
        .iter()
        .filter_map(|(_, text)| text.strip_prefix("Optimizer.step#"))
        .map(|rest| rest.strip_suffix(".step").unwrap_or(rest))
        .collect();
    names.into_iter().map(str::to_owned).collect()
}

fn operators_with_shapes(trace: &Trace) -> u64 {
    let recorded: Vec<bool> = trace.signatures.iter().map(|s| s.dims != Sym::EMPTY).collect();
    let ops = trace.ops.kind.iter().zip(&trace.ops.signature);
    ops.filter(|(kind, id)| **kind == OpKind::Operator && recorded[id.0 as usize]).count() as u64
}

fn host_peak(profile: &Profile) -> Bytes {
    // What each memory event frees and allocates; blocks are distinguished by the event's number.
    let ticks = profile.blocks.iter().flat_map(|b| [Some(b.alloc), b.free]).flatten();
    let mut events = vec![(Bytes::ZERO, Bytes::ZERO); ticks.max().map_or(0, |t| t.0 as usize + 1)];
    for block in &profile.blocks {
        events[block.alloc.0 as usize].1 += block.size;
        if let Some(free) = block.free {
            events[free.0 as usize].0 += block.size;
        }
    }
    let (mut live, mut peak) = (Bytes::ZERO, Bytes::ZERO);
    for (freed, allocated) in events {
        live = live.saturating_sub(freed) + allocated;
        peak = peak.max(live);
    }
    peak
}
