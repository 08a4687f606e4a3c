//! The second stage: the nesting of operators, the lifetimes of memory, and the places in the program where it is allocated.

use super::notes::Notes;
use crate::args::ArgumentTable;
use crate::attribution;
use crate::autograd::Autograd;
use crate::lifetime::{Lifetime, Origin};
use crate::names::Names;
use crate::optree::OpTree;
use crate::pairing::{self, PairingCounts, Pairs};
use crate::program::Program;
use crate::python::{self, Frame, PythonCalls};
use crate::recorder_facts::RecorderFacts;
use crate::timeline::{self, Timeline};
use crate::transfers::{self, Transfer};
use crate::{distributed, lines};
use xmem_parallel::both;
use xmem_trace::{DeviceKind, Trace};
use xmem_types::Diagnostics;

/// Operators and lifetimes.
pub(super) struct Structure {
    device: DeviceKind,
    pub(super) names: Names,
    pub(super) tree: OpTree,
    pub(super) autograd: Autograd,
    pub(super) arguments: ArgumentTable,
    /// In order of allocation.
    pub(super) lifetimes: Vec<Lifetime>,
    /// Rows of the memory table in order of time.
    pub(super) rows: Vec<u32>,
    pub(super) pairing: PairingCounts,
    pub(super) calls: PythonCalls,
    /// Per lifetime: its operator.
    pub(super) origins: Vec<Origin>,
    /// Per lifetime: its place in the Python program.
    pub(super) frames: Vec<Frame>,
    /// The training thread, as annotations mark it; the next stage takes it.
    pub(super) timeline: Timeline,
    pub(super) transfers: Vec<Transfer>,
    /// What the recorder says about blocks.
    pub(super) facts: RecorderFacts,
}

impl Structure {
    pub(super) fn find(trace: &mut Trace, notes: &Notes, odd: &mut Diagnostics) -> Self {
        let recording = notes.recording.as_ref();
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
                let pairs = pairing::pair(&trace.memory, notes.selection(), odd);
                (pairs, PythonCalls::build(&trace.python, &mut trace.strings))
            },
        );
        let Pairs { lifetimes, rows, counts: pairing } = pairs;
        let ((origins, arguments), timeline) = both(
            || {
                let (memory, ops) = (&trace.memory, &trace.ops);
                let origins = attribution::origins(&lifetimes, &rows, memory, ops, &tree);
                let arguments = ArgumentTable::build(&trace.signatures, &trace.strings);
                let as_bfloat16 = recording.is_some_and(|r| r.float16_as_bfloat16);
                (origins, if as_bfloat16 { arguments.with_float16() } else { arguments })
            },
            || timeline::find(trace, &tree, &names, &calls).unwrap_or_default(),
        );
        let transfers = transfers::resolve(&notes.marks, &lifetimes);
        let facts = RecorderFacts::find(recording, &transfers, &lifetimes);
        let lines = trace.header.take_extra(lines::KEY);
        let lines = lines.map_or_else(Vec::new, |raw| lines::read(&raw, trace, odd));
        let mut frames = python::frames(&lifetimes, &origins, &calls, &lines, trace, &autograd);
        facts.name_tensors(recording, &mut frames, &mut trace.strings);
        Self {
            device: notes.device,
            names,
            tree,
            autograd,
            arguments,
            lifetimes,
            rows,
            pairing,
            calls,
            origins,
            frames,
            timeline,
            transfers,
            facts,
        }
    }

    /// The operators as later stages see them.
    pub(super) fn program<'a>(&'a self, trace: &'a Trace) -> Program<'a> {
        Program {
            trace,
            names: &self.names,
            tree: &self.tree,
            autograd: &self.autograd,
            arguments: &self.arguments,
            device: self.device,
        }
    }
}
