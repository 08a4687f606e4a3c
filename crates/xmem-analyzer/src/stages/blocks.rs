//! The fourth stage: blocks with their roles, and what was there before the recording began.

use super::course::Course;
use super::notes::Notes;
use super::structure::Structure;
use crate::block::Block;
use crate::gpu::GpuRecording;
use crate::integrity::Integrity;
use crate::lifetime::Tick;
use crate::preexisting::Preexisting;
use crate::rest::{self, Appended};
use crate::returns::Returns;
use crate::roles::{self, Facts};
use crate::spans::PhaseSpan;
use crate::{allocator_history, lines, preexisting, zero_grad};
use xmem_trace::Trace;
use xmem_types::{Diagnostics, Nanos};

/// Blocks, and all that follows from them.
pub(super) struct Blocks {
    /// In order of allocation.
    pub(super) blocks: Vec<Block>,
    pub(super) gpu: Option<GpuRecording>,
    pub(super) preexisting: Vec<Preexisting>,
    /// With the places where gradients are cleared.
    pub(super) phases: Vec<PhaseSpan>,
    /// With what the allocator's history contradicts.
    pub(super) integrity: Integrity,
    pub(super) returns: Returns,
}

impl Blocks {
    pub(super) fn find(
        trace: &mut Trace,
        notes: &mut Notes,
        structure: &Structure,
        course: &mut Course,
        odd: &mut Diagnostics,
    ) -> Self {
        let Structure { calls, lifetimes, origins, autograd, .. } = structure;
        let registrations = calls.registrations(&trace.python, course.timeline.thread);
        let facts = Facts {
            program: structure.program(trace),
            timeline: &course.timeline,
            phases: &course.phases,
            iterations: &course.iterations,
            transfers: &structure.transfers,
            frames: &structure.frames,
            recording: notes.recording.as_ref(),
            recorder: &structure.facts,
            registrations: &registrations,
            step_period: course.step_period,
        };
        let (mut blocks, learned) = roles::assign(lifetimes, origins, &facts);
        let mut gpu = notes.gpu.take().map(|gpu| gpu.recording);
        if let Some(gpu) = &gpu {
            roles::on_gpu(&mut blocks, gpu, &facts);
        }
        let mut integrity = std::mem::take(&mut course.integrity);
        let mut lines_of_history = Vec::new();
        if let (Some(gpu), Some(recording)) = (&mut gpu, &notes.recording) {
            let (memory, rows) = (&trace.memory, &structure.rows);
            let applied = allocator_history::apply(recording, memory, rows, &mut blocks, gpu, odd);
            if let Some(differs) = applied.differs {
                integrity.add_history(differs, odd);
            }
            lines_of_history = applied.lines;
            if recording.has_lost_history() {
                integrity.add_lost_history(odd);
            }
        }
        let preexisting = match &gpu {
            None => preexisting::find(&blocks, &facts, &learned, odd),
            // What is not in the totals was not there.
            Some(gpu) if !gpu.may_hide_blocks() => Vec::new(),
            Some(_) => preexisting::find(&blocks, &facts, &learned, &mut Diagnostics::default()),
        };
        let phases = zero_grad::find(std::mem::take(&mut course.phases), &blocks, odd);
        lines::of_history(&lines_of_history, &mut blocks, trace, autograd);
        let returns = Returns::of(trace, calls.order());
        Self { blocks, gpu, preexisting, phases, integrity, returns }
    }

    /// Appends what follows the recorded iterations, if the recording has it. Returns where it begins, and the parts of the
    /// script from there on.
    pub(super) fn append_rest(
        &mut self,
        trace: &mut Trace,
        notes: &Notes,
        structure: &Structure,
        odd: &mut Diagnostics,
    ) -> Option<Appended> {
        if notes.has_unread_rest {
            self.integrity.add_lost_history(odd);
        }
        let recording = notes.recording.as_ref()?;
        let (rest, gpu) = (recording.rest.as_ref()?, self.gpu.as_mut()?);
        // Without it, it is not known what is there.
        let history = recording.allocator_history.as_ref().filter(|_| gpu.has_history)?;
        let ends = trace.ops.start.iter().zip(&trace.ops.duration);
        let ends = ends
            .map(|(&start, &duration)| start + duration)
            .chain(trace.memory.time.iter().copied());
        let end = Nanos(ends.max().map_or(0, |last| last.get().saturating_add(1)));
        let tick = Tick(u32::try_from(structure.rows.len()).ok()?);
        let blocks = (&mut self.blocks, gpu);
        let appended = rest::append(rest, (tick, end), blocks, history, &mut trace.strings, odd);
        if appended.is_err() {
            self.integrity.add_history((1, 1), odd);
        }
        appended.ok()
    }
}
