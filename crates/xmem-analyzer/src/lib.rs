//! The analysis of a trace: allocations and frees paired into blocks, each with the operator,
//! module and phase it comes from and the role it plays in training.
//!
//! This crate knows autograd, optimizers and modules. It knows nothing about allocators; a recording of a
//! GPU is analyzed as one of a CPU is, with the memory that was there before it began.
#![forbid(unsafe_code)]

mod allocator_history;
mod args;
mod attribution;
mod autograd;
mod block;
mod completeness;
mod distributed;
mod forwards;
mod gpu;
mod history;
mod history_roles;
pub mod integrity;
mod iterations;
mod lifetime;
mod line_names;
mod lines;
mod marks;
mod names;
mod optree;
mod pairing;
mod periods;
mod phases;
mod preexisting;
mod private_pools;
mod profile;
mod program;
mod python;
mod recomputation;
mod recorder_facts;
pub mod recording;
mod redaction;
mod returns;
mod roles;
mod spans;
mod steps;
mod timeline;
mod transfers;
mod unseen_frees;
mod zero_grad;

pub use args::{Argument, Arguments, DType, TensorArg};
pub use autograd::Autograd;
pub use block::{Block, Evidence, Residency, Role};
pub use distributed::{Collectives, Distributed};
pub use gpu::{GpuRecording, GpuSource, RecordedFailure};
pub use history::{History, HistoryBlock, HistoryPart, HistorySite, analyze_history};
pub use lifetime::Tick;
pub use marks::TransferKind;
pub use optree::OpTree;
pub use preexisting::Preexisting;
pub use private_pools::{Position, PrivatePools};
pub use profile::Profile;
pub use python::ModuleCall;
pub use redaction::Redaction;
pub use returns::CallKind;
pub use roles::{RoleRule, role_rules};
pub use spans::{Iteration, Phase, PhaseSpan};
pub use transfers::Transfer;

use args::ArgumentTable;
use forwards::Forwards;
use gpu::Selection;
use iterations::Signs;
use names::Names;
use program::Program;
use python::PythonCalls;
use recorder_facts::RecorderFacts;
use returns::Returns;
use roles::Facts;
use xmem_parallel::both;
use xmem_trace::{DeviceKind, FlowTable, MemoryTable, Trace};
use xmem_types::Diagnostics;

/// Analyzes the memory of a trace: that of the GPU with most memory if it has any of GPUs, else that of
/// the host.
///
/// Odd content is reported in the diagnostics and never ends the analysis.
#[must_use]
pub fn analyze(trace: Trace) -> (Profile, Diagnostics) {
    let is_gpu = trace.memory.device.contains(&DeviceKind::Cuda);
    analyze_device(trace, if is_gpu { DeviceKind::Cuda } else { DeviceKind::Cpu })
}

/// Analyzes the memory of one kind of device; of several GPUs, that of the one with most.
///
/// Odd content is reported in the diagnostics and never ends the analysis.
#[must_use]
pub fn analyze_device(trace: Trace, device: DeviceKind) -> (Profile, Diagnostics) {
    analyze_selected(trace, device, None)
}

/// The GPUs with memory in a trace, by their indices: that with most first, as [`analyze`] chooses it.
#[must_use]
pub fn gpus(trace: &Trace) -> Vec<i16> {
    gpu::all(&trace.memory)
}

/// Analyzes the memory of the GPU with this index, one of [`gpus`].
///
/// Odd content is reported in the diagnostics and never ends the analysis.
#[must_use]
pub fn analyze_gpu(trace: Trace, index: i16) -> (Profile, Diagnostics) {
    analyze_selected(trace, DeviceKind::Cuda, Some(index))
}

fn analyze_selected(
    mut trace: Trace,
    device: DeviceKind,
    index: Option<i16>,
) -> (Profile, Diagnostics) {
    let mut notes = Diagnostics::default();
    let recording = trace.header.take_extra(recording::KEY);
    let has_notes = recording.is_some();
    let recording = recording.and_then(|raw| recording::read(&raw, &mut notes));
    let answers = trace.header.take_extra(recording::CONVOLUTIONS_KEY);
    let recording = recording.map(|recording| recording::Recording {
        cudnn_answers: answers
            .map_or_else(Vec::new, |raw| recording::read_convolutions(&raw, &mut notes)),
        ..recording
    });
    completeness::report(&trace, recording.as_ref(), device, &mut notes);
    let virtual_gpu = recording.as_ref().and_then(|recording| recording.virtual_gpu.as_ref());
    if let Some(facts) = virtual_gpu {
        facts.report(&mut notes);
    }
    let marks = marks::take_out(&mut trace);
    if let Some(recording) = recording.as_ref().filter(|_| device == DeviceKind::Cuda) {
        unseen_frees::add(recording, &mut trace.memory, &mut notes);
    }
    let gpu = (device == DeviceKind::Cuda).then(|| gpu::prepare(&mut trace, index, &mut notes));
    let selection = gpu.as_ref().map_or(Selection::kind(device), |gpu| gpu.selection);
    let names = Names::build(&trace.strings);
    let work = distributed::work(&trace.strings);
    let ((tree, autograd), (pairs, calls)) = both(
        || {
            let is_node = |row: usize| names.is_node(trace.ops.name[row]);
            let is_work = |row: usize| work.contains(&trace.ops.name[row]);
            let tree = OpTree::build_with(&trace.ops, is_node, is_work);
            let autograd = Autograd::build(&trace.ops, &trace.flows, &tree, &names);
            (tree, autograd)
        },
        || {
            let pairs = pairing::pair(&trace.memory, selection, &mut notes);
            (pairs, PythonCalls::build(&trace.python, &mut trace.strings))
        },
    );
    let pairing::Pairs { lifetimes, rows, counts: pairing } = pairs;
    let ((origins, arguments), timeline) = both(
        || {
            let origins = attribution::origins(&lifetimes, &rows, &trace.memory, &trace.ops, &tree);
            let arguments = ArgumentTable::build(&trace.signatures, &trace.strings);
            let as_bfloat16 = recording.as_ref().is_some_and(|r| r.float16_as_bfloat16);
            (origins, if as_bfloat16 { arguments.with_float16() } else { arguments })
        },
        || timeline::find(&trace, &tree, &names, &calls).unwrap_or_default(),
    );
    let transfers = transfers::resolve(&marks, &lifetimes);
    let recorder_facts = RecorderFacts::find(recording.as_ref(), &transfers, &lifetimes);
    let lines = trace.header.take_extra(lines::KEY);
    let lines = lines.map_or_else(Vec::new, |raw| lines::read(&raw, &trace, &mut notes));
    let mut frames = python::frames(&lifetimes, &origins, &calls, &lines, &mut trace, &autograd);
    recorder_facts.name_tensors(recording.as_ref(), &mut frames, &mut trace.strings);

    let program = Program {
        trace: &trace,
        names: &names,
        tree: &tree,
        autograd: &autograd,
        arguments: &arguments,
        device,
    };
    let models = recording.as_ref().map_or(&[][..], |recording| &recording.models);
    let forwards = Forwards::find(&trace, &calls, &autograd, &timeline, &transfers, models);
    let timeline = steps::infer(timeline, program, &forwards, &mut notes);
    let signatures = steps::signatures(&timeline, program);
    let signs = Signs {
        trace: &trace,
        names: &names,
        timeline: &timeline,
        forwards: &forwards,
        signatures: &signatures,
        ends: &marks.ends,
    };
    let (job, iterations) = iterations::find(&signs, &mut notes);
    let mut integrity = integrity::check(&integrity::Subject {
        program,
        rows: &rows,
        pairing,
        lifetimes: &lifetimes,
        origins: &origins,
        gpu: gpu.as_ref(),
        iterations: &iterations,
        marks_without_notes: (if has_notes { 0 } else { marks.count() }, marks.count()),
        compiled: virtual_gpu.is_some_and(|facts| facts.compiles),
        steps: match recording.as_ref().and_then(|r| r.iterations.as_ref()) {
            Some(counted) if counted.by == recording::BY_STEPS => iterations::steps_of_each(&signs),
            _ => Vec::new(),
        },
        complete: recording.as_ref().is_none_or(recording::Recording::is_complete),
        coarse: integrity::is_coarse(&trace.ops),
        records_shapes: recording.is_some()
            || trace.header.options.iter().any(|option| option == "record_shapes"),
        counted_peaks: virtual_gpu.and_then(recording::VirtualGpu::counted_peaks),
        larger_segments: recording.as_ref().is_some_and(recording::Recording::has_larger_segments),
    });
    integrity.report(&mut notes);
    let phases = phases::find(&trace, &timeline, &forwards, job, &iterations);
    let registrations = calls.registrations(&trace.python, timeline.thread);
    let facts = Facts {
        program,
        timeline: &timeline,
        phases: &phases,
        iterations: &iterations,
        transfers: &transfers,
        frames: &frames,
        recording: recording.as_ref(),
        recorder: &recorder_facts,
        registrations: &registrations,
        step_period: iterations::steps_in_each(&signs),
    };
    let (mut blocks, learned) = roles::assign(&lifetimes, &origins, &facts);
    let mut gpu = gpu.map(|gpu| gpu.recording);
    if let Some(gpu) = &gpu {
        roles::on_gpu(&mut blocks, gpu, &facts);
    }
    let mut lines_of_history = Vec::new();
    if let (Some(gpu), Some(recording)) = (&mut gpu, &recording) {
        let memory = &trace.memory;
        let applied =
            allocator_history::apply(recording, memory, &rows, &mut blocks, gpu, &mut notes);
        if let Some(differs) = applied.differs {
            integrity.add_history(differs, &mut notes);
        }
        lines_of_history = applied.lines;
        if recording.has_lost_history() {
            integrity.add_lost_history(&mut notes);
        }
    }
    let preexisting = match &gpu {
        None => preexisting::find(&blocks, &facts, &learned, &mut notes),
        // What is not in the totals was not there.
        Some(gpu) if !gpu.may_hide_blocks() => Vec::new(),
        Some(_) => preexisting::find(&blocks, &facts, &learned, &mut Diagnostics::default()),
    };
    let phases = zero_grad::find(phases, &blocks, &mut notes);
    lines::of_history(&lines_of_history, &mut blocks, &mut trace, &autograd);
    let returns = Returns::of(&trace, calls.order());
    // The profile has what the memory events and the links say; the tables are not needed any more.
    trace.memory = MemoryTable::default();
    trace.flows = FlowTable::default();
    let profile = Profile {
        blocks,
        tree,
        phases,
        iterations,
        integrity,
        autograd,
        preexisting,
        transfers,
        device,
        gpu,
        tensors: recorder_facts.tensors,
        recording,
        names,
        arguments,
        trace,
        returns,
        streams: marks.streams,
    };
    (profile, notes)
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
