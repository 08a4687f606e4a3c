//! The analysis in four stages, each with a typed output that the next ones read: what the file notes beside its events
//! ([`notes`]), operators and lifetimes ([`structure`]), the order of the run ([`course`]), and blocks with their roles
//! ([`blocks`]).

mod blocks;
mod course;
mod notes;
mod structure;

use crate::profile::Profile;
use blocks::Blocks;
use course::Course;
use notes::Notes;
use structure::Structure;
use xmem_trace::{DeviceKind, FlowTable, MemoryTable, Trace};
use xmem_types::Diagnostics;

/// Analyzes the memory of one kind of device, and of the GPU with this index, if one is given.
pub(crate) fn run(
    mut trace: Trace,
    device: DeviceKind,
    index: Option<i16>,
) -> (Profile, Diagnostics) {
    let mut odd = Diagnostics::default();
    let mut notes = Notes::take_out(&mut trace, (device, index), &mut odd);
    let mut structure = Structure::find(&mut trace, &notes, &mut odd);
    let mut course = Course::find(&trace, &notes, &mut structure, &mut odd);
    let mut blocks = Blocks::find(&mut trace, &mut notes, &structure, &mut course, &mut odd);
    let rest = blocks.append_rest(&mut trace, &notes, &structure, &mut odd);
    let mut parts = std::mem::take(&mut notes.marks.parts);
    let rest = rest.map(|rest| {
        parts.extend(rest.parts);
        rest.start
    });
    // The profile has what the memory events and the links say; the tables are not needed any more.
    trace.memory = MemoryTable::default();
    trace.flows = FlowTable::default();
    let profile = Profile {
        kind: course.kind,
        blocks: blocks.blocks,
        tree: structure.tree,
        phases: blocks.phases,
        iterations: course.iterations,
        parts,
        rest,
        integrity: blocks.integrity,
        autograd: structure.autograd,
        preexisting: blocks.preexisting,
        transfers: structure.transfers,
        device,
        gpu: blocks.gpu,
        tensors: structure.facts.tensors,
        recording: notes.recording,
        names: structure.names,
        arguments: structure.arguments,
        trace,
        returns: blocks.returns,
        streams: notes.marks.streams,
    };
    (profile, odd)
}
