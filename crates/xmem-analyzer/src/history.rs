//! Profiles of an allocator's history: what a memory snapshot says about blocks, without operators.
//!
//! A history has sizes, lifetimes, streams and call stacks. Phases and roles are those that the stacks and lifetimes show
//! (`history_roles`); what they do not show stays unknown.

use crate::args::ArgumentTable;
use crate::autograd::Autograd;
use crate::block::{Block, Evidence, Residency, Role};
use crate::gpu::GpuRecording;
use crate::history_roles::{self, RoleOfHistory};
use crate::integrity::SnapshotEvidence;
use crate::lifetime::Tick;
use crate::names::Names;
use crate::optree::OpTree;
use crate::profile::{JobKind, Profile};
use crate::returns::Returns;
use crate::spans::{Iteration, Phase};
use std::collections::BTreeMap;
use xmem_trace::{DeviceKind, OpKind, Signature, SignatureId, Thread, Trace};
use xmem_types::{
    Addr, Bytes, Diagnostics, IterationId, Nanos, OpId, PrivatePoolId, StreamId, Sym, ThreadIdx,
};

/// A block of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryBlock {
    /// The size that the program requested.
    pub size: Bytes,
    /// The address.
    pub address: Addr,
    /// The stream that it was allocated on.
    pub stream: StreamId,
    /// The private pool that it was allocated from, where that is known; none for the default pool.
    pub pool: Option<PrivatePoolId>,
    /// Position and time of the allocation.
    pub alloc: (Tick, Nanos),
    /// Position and time of the free; none if the history ends first.
    pub free: Option<(Tick, Nanos)>,
    /// The position before which the free was complete, if it waited for other streams.
    pub completed: Option<Tick>,
    /// The call that allocated it: a row of [`History::sites`].
    pub site: usize,
    /// The part of the program that freed it, where the free has a stack.
    pub freed_in: Option<HistoryPart>,
}

/// The place of a call in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistorySite {
    /// The innermost operator.
    pub op: Option<String>,
    /// The innermost Python line.
    pub line: Option<String>,
    /// The part of the program.
    pub part: HistoryPart,
    /// What the file says about the blocks, if xmem wrote it.
    pub purpose: Option<HistoryPurpose>,
}

/// The purpose of blocks, as the snapshot of a predicted run has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryPurpose {
    /// The role.
    pub role: Role,
    /// The phase.
    pub phase: Phase,
    /// The iteration; none before the first.
    pub iteration: Option<IterationId>,
}

/// The part of a program that a call stack shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HistoryPart {
    /// A phase of training.
    Phase(Phase),
    /// The workspace of a library is made.
    Workspace,
    /// Parameters are made, moved or converted.
    Parameters,
    /// Buffers are moved or converted.
    Buffers,
    /// There is no frame of Python.
    NoFrame,
    /// The stack does not tell.
    #[default]
    Unknown,
}

/// The evidence for roles that the file states.
const STATED: Evidence = Evidence("stated by the snapshot, which xmem wrote of a predicted run");

/// A history of one device.
#[derive(Clone, Debug)]
pub struct History {
    /// In order of allocation.
    pub blocks: Vec<HistoryBlock>,
    /// The calls that allocate.
    pub sites: Vec<HistorySite>,
    /// The origin of all times, since the Unix epoch.
    pub base_time: Option<Nanos>,
    /// What else the file says.
    pub gpu: GpuRecording,
    /// What the file shows that no allocator leaves behind.
    pub evidence: SnapshotEvidence,
}

/// The profile of a history, and what is odd about it.
#[must_use]
pub fn analyze_history(history: History) -> (Profile, Diagnostics) {
    let History { blocks, sites, base_time, gpu, evidence } = history;
    let integrity = evidence.integrity();
    let mut notes = Diagnostics::default();
    integrity.report(&mut notes);
    let mut trace = Trace::default();
    trace.header.base_time = base_time;
    trace.signatures = vec![Signature::default()];
    trace.threads = vec![Thread { process: Sym::EMPTY, thread: Sym::EMPTY }];
    let mut operators = Operators::default();
    let places: Vec<(Option<OpId>, Sym)> = sites
        .iter()
        .map(|site| {
            let op = site.op.as_deref().map(|name| operators.row(name, &mut trace));
            let line = site.line.as_deref().map_or(Sym::EMPTY, |line| trace.strings.intern(line));
            (op, line)
        })
        .collect();
    let parts: Vec<HistoryPart> = blocks.iter().map(|block| sites[block.site].part).collect();
    let roles = history_roles::find(&blocks, &parts, gpu.earlier);
    let iterations = iterations(&blocks, &sites);
    let described = |(row, block): (usize, HistoryBlock)| {
        let (op, line) = places[block.site];
        let found = roles[row];
        let (RoleOfHistory { role, evidence, phase }, iteration) = match sites[block.site].purpose {
            Some(HistoryPurpose { role, phase, iteration }) => {
                (RoleOfHistory { role, evidence: STATED, phase }, iteration)
            }
            None => (found, None),
        };
        Block {
            size: block.size,
            address: block.address,
            thread: ThreadIdx::new(0),
            alloc: block.alloc.0,
            alloc_time: block.alloc.1,
            free: block.free.map(|free| free.0),
            free_time: block.free.map(|free| free.1),
            stream: block.stream,
            pool: block.pool,
            completed: block.completed,
            op,
            freed_in: None,
            module: Sym::EMPTY,
            line,
            iteration,
            phase,
            role,
            residency: Residency::Device,
            evidence,
        }
    };
    let blocks: Vec<Block> = blocks.into_iter().enumerate().map(described).collect();
    let names = Names::build(&trace.strings);
    let tree = OpTree::build(&trace.ops);
    let profile = Profile {
        kind: JobKind::Training,
        blocks,
        autograd: Autograd::build(&trace.ops, &trace.flows, &tree, &names),
        tree,
        phases: Vec::new(),
        iterations,
        parts: Vec::new(),
        rest: None,
        integrity,
        preexisting: Vec::new(),
        transfers: Vec::new(),
        device: DeviceKind::Cuda,
        gpu: Some(gpu),
        tensors: BTreeMap::new(),
        names,
        arguments: ArgumentTable::build(&trace.signatures, &trace.strings),
        recording: None,
        returns: Returns::default(),
        streams: Vec::new(),
        trace,
    };
    (profile, notes)
}

/// The iterations that the purposes of blocks name: each lasts until the next begins.
fn iterations(blocks: &[HistoryBlock], sites: &[HistorySite]) -> Vec<Iteration> {
    let mut starts: BTreeMap<IterationId, Nanos> = BTreeMap::new();
    for block in blocks {
        if let Some(HistoryPurpose { iteration: Some(iteration), .. }) = sites[block.site].purpose {
            let start = starts.entry(iteration).or_insert(block.alloc.1);
            *start = block.alloc.1.min(*start);
        }
    }
    let times =
        blocks.iter().flat_map(|block| [Some(block.alloc.1), block.free.map(|free| free.1)]);
    let end = times.flatten().max().unwrap_or(Nanos::ZERO);
    // A snapshot that was cut at its begin has no first iterations.
    let is_whole = starts.keys().copied().eq((0..starts.len()).map(IterationId::new));
    let starts: Vec<Nanos> = starts.into_values().filter(|_| is_whole).collect();
    let ends = starts.iter().skip(1).copied().chain([Nanos(end.0.saturating_add(1))]);
    starts.iter().zip(ends).map(|(&start, end)| Iteration { start, end }).collect()
}

/// Operators by name: each has one row, as a history has no times of operators.
#[derive(Default)]
struct Operators(BTreeMap<String, OpId>);

impl Operators {
    fn row(&mut self, name: &str, trace: &mut Trace) -> OpId {
        if let Some(&known) = self.0.get(name) {
            return known;
        }
        let id = OpId::new(trace.ops.len());
        // Side by side, so that none encloses another.
        trace.ops.start.push(Nanos(2 * self.0.len() as i64));
        trace.ops.duration.push(Nanos(1));
        trace.ops.name.push(trace.strings.intern(name));
        trace.ops.thread.push(ThreadIdx::new(0));
        trace.ops.kind.push(OpKind::Operator);
        trace.ops.sequence.push(-1);
        trace.ops.forward_thread.push(0);
        trace.ops.signature.push(SignatureId(0));
        self.0.insert(name.to_owned(), id);
        id
    }
}
