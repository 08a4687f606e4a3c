//! The analysis of a trace: allocations and frees paired into blocks, each with the operator,
//! module and phase it comes from and the role it plays in training.
//!
//! This room knows autograd, optimizers and modules. It knows nothing of GPUs or allocators.
#![forbid(unsafe_code)]

mod args;
mod attribution;
mod autograd;
mod block;
mod clearing;
mod forwards;
mod iterations;
mod known;
mod marks;
mod names;
mod optree;
mod pairing;
mod periods;
mod phases;
mod preexisting;
mod profile;
mod python;
pub mod recording;
mod returns;
mod roles;
mod steps;
mod timeline;
mod transfers;

pub use args::{Argument, Arguments, DType, TensorArg};
pub use autograd::Autograd;
pub use block::{Block, Evidence, Phase, Residency, Role, Tick};
pub use marks::TransferKind;
pub use optree::OpTree;
pub use preexisting::Preexisting;
pub use profile::{Iteration, PhaseSpan, Profile};
pub use returns::CallKind;
pub use transfers::Transfer;

use args::ArgumentTable;
use forwards::Forwards;
use iterations::Signs;
use known::Known;
use names::Names;
use python::PythonCalls;
use recording::{EndReason, Recording};
use std::sync::OnceLock;
use xmem_parallel::both;
use xmem_trace::{DeviceKind, FlowTable, MemoryTable, Trace};
use xmem_types::{Diagnostics, Severity};

/// Analyses the host memory of a trace.
///
/// Odd content is reported in the diagnostics and never ends the analysis.
#[must_use]
pub fn analyze(trace: Trace) -> (Profile, Diagnostics) {
    analyze_device(trace, DeviceKind::Cpu)
}

/// Analyses the memory of one kind of device; of several devices of a kind, blocks of all are in
/// the profile.
///
/// Odd content is reported in the diagnostics and never ends the analysis.
#[must_use]
pub fn analyze_device(mut trace: Trace, device: DeviceKind) -> (Profile, Diagnostics) {
    let mut notes = Diagnostics::default();
    let recording = trace.header.take_extra(recording::KEY);
    let recording = recording.and_then(|raw| recording::read(&raw, &mut notes));
    completeness(&trace, recording.as_ref(), device, &mut notes);
    let marks = marks::take_out(&mut trace);
    let names = Names::build(&trace.strings);
    let ((tree, autograd), (pairs, calls)) = both(
        || {
            let tree = OpTree::build_with(&trace.ops, |row| names.is_node(trace.ops.name[row]));
            let autograd = Autograd::build(&trace.ops, &trace.flows, &tree, &names);
            (tree, autograd)
        },
        || {
            let pairs = pairing::pair(&trace.memory, device, &mut notes);
            (pairs, PythonCalls::build(&trace.python, &mut trace.strings))
        },
    );
    let pairing::Pairs { mut blocks, rows } = pairs;
    let (arguments, timeline) = both(
        || {
            attribution::attribute_ops(&mut blocks, &rows, &trace.memory, &trace.ops, &tree);
            ArgumentTable::build(&trace.signatures, &trace.strings)
        },
        || timeline::find(&trace, &tree, &names, &calls),
    );
    let mut timeline = timeline.unwrap_or_default();
    let transfers = transfers::resolve(&marks.moves, &blocks);
    let known = Known::find(recording.as_ref(), &transfers, &blocks);
    let context = python::attribute(&mut blocks, &calls, &mut trace, &autograd);

    let forwards = Forwards::find(&trace, &calls, &autograd, &timeline, &transfers);
    steps::infer(&mut timeline, &trace, &tree, &names, &arguments, &forwards, &mut notes);
    let signatures = steps::signatures(&timeline, &trace, &tree, &names, &arguments);
    let signs = Signs {
        trace: &trace,
        names: &names,
        timeline: &timeline,
        forwards: &forwards,
        signatures: &signatures,
        ends: &marks.ends,
    };
    let (job, iterations) = iterations::find(&signs, &mut notes);
    let phases = phases::find(&trace, &timeline, &forwards, job, &iterations);

    let registrations = calls.registrations(&trace.python, timeline.thread);
    let step_period = iterations::steps_in_each(&signs);
    let mut profile = Profile {
        blocks: Vec::new(),
        tree,
        phases,
        iterations,
        autograd,
        preexisting: Vec::new(),
        transfers,
        recording,
        tensors: known.tensors.clone(),
        device,
        names,
        arguments,
        trace,
        returns: OnceLock::new(),
    };
    let facts = roles::Facts {
        profile: &profile,
        timeline: &timeline,
        context: &context,
        known: &known,
        registrations: &registrations,
        step_period,
    };
    let learned = roles::assign(&mut blocks, &facts);
    let preexisting = preexisting::find(&blocks, &facts, &learned, &mut notes);
    clearing::find(&mut profile.phases, &blocks, &mut notes);
    profile.preexisting = preexisting;
    profile.blocks = blocks;
    // What the blocks and the autograd links say; nobody asks for more.
    profile.trace.memory = MemoryTable::default();
    profile.trace.flows = FlowTable::default();
    profile.name_tensors();
    (profile, notes)
}

/// Reports what the recording lacks, and what that costs.
fn completeness(
    trace: &Trace,
    recording: Option<&Recording>,
    device: DeviceKind,
    notes: &mut Diagnostics,
) {
    let on = |kind| trace.memory.device.iter().filter(|d| **d == kind).count() as u64;
    let (cpu, cuda) = (on(DeviceKind::Cpu), on(DeviceKind::Cuda));
    let analysed = on(device);
    if trace.memory.is_empty() {
        notes.report("no-memory-events", Severity::Serious, None, || {
            "the trace has no memory events: record with profile_memory=True".into()
        });
    } else if analysed == 0 {
        notes.report("no-events-of-device", Severity::Serious, None, || {
            format!("the trace has no memory events of the analysed device ({cpu} of the host, {cuda} of GPUs)")
        });
    }
    cut_short(recording, notes);
    if device == DeviceKind::Cpu {
        notes.report_many("gpu-trace", Severity::Serious, None, cuda, || {
            "the job was recorded on a GPU: its device memory events are left out here, and the \
             host's alone do not show what the job needs"
                .into()
        });
    }
    if trace.ops.is_empty() {
        notes.report("no-operators", Severity::Serious, None, || {
            "the trace has no operators: memory cannot be told apart by what made it".into()
        });
        return;
    }
    if trace.signatures.len() <= 1 {
        notes.report("no-shapes", Severity::Warning, None, || {
            "input shapes were not recorded: gradients and parameters are told by lifetime alone, \
             and operator sizes on the GPU are less exact; record with record_shapes=True"
                .into()
        });
    }
    if trace.python.is_empty() && recording.is_some() {
        notes.report("no-python-stacks", Severity::Note, None, || {
            "Python stacks were not recorded: module paths and source lines are missing".into()
        });
    } else if trace.python.is_empty() {
        notes.report("no-python-stacks", Severity::Warning, None, || {
            "Python stacks were not recorded: module paths and source lines are missing, buffers \
             and data are told apart by order alone; record with with_stack=True"
                .into()
        });
    }
}

/// Reports a recording that lacks some of what it was to have.
fn cut_short(recording: Option<&Recording>, notes: &mut Diagnostics) {
    let ended = recording.and_then(|r| r.ended.as_ref());
    let Some(ended) = ended else { return };
    let why = match ended.reason {
        EndReason::Complete => return,
        EndReason::ScriptEnd => "the script came to its end before",
        EndReason::Exit => "the script called sys.exit",
        EndReason::Exception => "the script raised an exception",
        EndReason::Signal => "the script was ended by a signal",
        EndReason::Timeout => "it took longer than allowed",
        EndReason::Memory => "it took more memory than allowed",
        EndReason::Other => "the recorder says nothing that is known",
    };
    notes.report("recording-cut-short", Severity::Warning, None, || {
        let detail = ended.detail.as_ref().map_or(String::new(), |text| format!(" ({text})"));
        format!(
            "the recording has fewer iterations than were asked for: {why}{detail}. The answer is \
             about what was recorded"
        )
    });
}
