//! The third stage: the order of the run, which is iterations and their phases, and whether the events agree with it.

use super::notes::Notes;
use super::structure::Structure;
use crate::forwards::Forwards;
use crate::integrity::{self, Integrity};
use crate::iterations::{self, Signs};
use crate::profile::JobKind;
use crate::recording::{self, Recording, VirtualGpu};
use crate::spans::{Iteration, PhaseSpan};
use crate::timeline::Timeline;
use crate::{phases, steps};
use xmem_trace::Trace;
use xmem_types::Diagnostics;

/// The course of a run.
pub(super) struct Course {
    pub(super) kind: JobKind,
    /// The training thread, with the steps that no annotation marks.
    pub(super) timeline: Timeline,
    /// In order of time.
    pub(super) iterations: Vec<Iteration>,
    /// In order of time. Places where gradients are cleared follow from the blocks.
    pub(super) phases: Vec<PhaseSpan>,
    /// The number of optimizer steps in each iteration.
    pub(super) step_period: usize,
    pub(super) integrity: Integrity,
}

impl Course {
    pub(super) fn find(
        trace: &Trace,
        notes: &Notes,
        structure: &mut Structure,
        odd: &mut Diagnostics,
    ) -> Self {
        let marked = std::mem::take(&mut structure.timeline);
        let structure = &*structure;
        let Structure { calls, autograd, transfers, names, .. } = structure;
        let program = structure.program(trace);
        let forwards = Forwards::find(trace, calls, autograd, &marked, transfers, notes.models());
        let timeline = steps::infer(marked, program, &forwards, odd);
        let signatures = steps::signatures(&timeline, program);
        let signs = Signs {
            trace,
            names,
            timeline: &timeline,
            forwards: &forwards,
            signatures: &signatures,
            ends: &notes.marks.ends,
        };
        let (kind, iterations) = iterations::find(&signs, odd);
        let integrity = integrity(trace, (notes, structure), &signs, &iterations);
        integrity.report(odd);
        let phases = phases::find(trace, &timeline, &forwards, kind, &iterations);
        let step_period = iterations::steps_in_each(&signs);
        Self { kind, timeline, iterations, phases, step_period, integrity }
    }
}

/// Compares what the recording says twice.
fn integrity(
    trace: &Trace,
    (notes, structure): (&Notes, &Structure),
    signs: &Signs<'_>,
    iterations: &[Iteration],
) -> Integrity {
    let (recording, virtual_gpu) = (notes.recording.as_ref(), notes.virtual_gpu());
    let marks = notes.marks.count();
    integrity::check(&integrity::Subject {
        program: structure.program(trace),
        rows: &structure.rows,
        pairing: structure.pairing,
        lifetimes: &structure.lifetimes,
        origins: &structure.origins,
        gpu: notes.gpu.as_ref(),
        iterations,
        marks_without_notes: (if notes.has_notes { 0 } else { marks }, marks),
        compiled: virtual_gpu.is_some_and(|facts| facts.compiles),
        steps: match recording.and_then(|r| r.iterations.as_ref()) {
            Some(counted) if counted.by == recording::BY_STEPS => iterations::steps_of_each(signs),
            _ => Vec::new(),
        },
        complete: recording.is_none_or(Recording::is_complete),
        coarse: integrity::is_coarse(&trace.ops),
        records_shapes: recording.is_some()
            || trace.header.options.iter().any(|option| option == "record_shapes"),
        counted_peaks: virtual_gpu.and_then(VirtualGpu::counted_peaks),
        larger_segments: recording.is_some_and(Recording::has_larger_segments),
    })
}
