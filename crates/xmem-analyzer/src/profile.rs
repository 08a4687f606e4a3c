//! The result of the analysis of a trace.

use crate::args::{ArgumentTable, Arguments};
use crate::autograd::Autograd;
use crate::block::{Block, Role};
use crate::distributed::{self, Collectives, Distributed};
use crate::gpu::GpuRecording;
use crate::integrity::Integrity;
use crate::names::Names;
use crate::optree::OpTree;
use crate::preexisting::Preexisting;
use crate::program::Program;
use crate::python::{self, ModuleCall};
use crate::recording::{NamedTensor, Rank, Recording, TensorKind, VirtualGpu};
use crate::rest::RestStart;
use crate::returns::{CallKind, Returns};
use crate::script_part::{PartStart, ScriptPart};
use crate::spans::{Iteration, PhaseSpan, span_at};
use crate::transfers::Transfer;
use std::collections::{BTreeMap, BTreeSet};
use xmem_trace::{DeviceKind, Trace};
use xmem_types::{Addr, BlockId, Nanos, OpId, StreamId, Sym, ThreadIdx};

/// The beginnings of the names of operators that provide memory for others (`aten::empty_strided`,
/// `aten::new_empty_strided`, `aten::resize_`).
const PROVIDERS: [&str; 4] =
    ["aten::empty", "aten::new_empty", "aten::resize_", "aten::_resize_output_"];

/// The kind of job that a recording shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// There is a backward pass or an optimizer step, or the recording does not tell.
    Training,
    /// There is neither.
    Inference,
}

/// A trace, understood: blocks with lifetime, origin and role, and the structure of the run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Profile {
    /// Training or inference.
    pub kind: JobKind,
    /// In order of allocation.
    pub blocks: Vec<Block>,
    /// The nesting of operators.
    pub tree: OpTree,
    /// Phases in order of time.
    pub phases: Vec<PhaseSpan>,
    /// Iterations in order of time.
    pub iterations: Vec<Iteration>,
    /// The parts of the script in order of time, where the recorder marked them.
    pub parts: Vec<PartStart>,
    /// Where what follows the recorded iterations begins, if it is there.
    pub rest: Option<RestStart>,
    /// Whether the events agree with each other as those of an intact recording do.
    pub integrity: Integrity,
    /// Autograd links, by operator row.
    pub autograd: Autograd,
    /// Memory whose allocation the trace does not show, of a recording that starts after the
    /// first iteration. Sizes are those of the CPU job; largest role first, then by size.
    pub preexisting: Vec<Preexisting>,
    /// Transfers between host and GPU in order of time, where the recorder marked them.
    pub transfers: Vec<Transfer>,
    /// The device whose memory was analyzed.
    pub device: DeviceKind,
    /// What the file says about its GPU, if that was recorded.
    pub gpu: Option<GpuRecording>,
    /// Rows of the recording's tensors.
    pub(crate) tensors: BTreeMap<BlockId, usize>,
    pub(crate) names: Names,
    pub(crate) arguments: ArgumentTable,
    pub(crate) trace: Trace,
    pub(crate) recording: Option<Recording>,
    pub(crate) returns: Returns,
    /// Streams that the program selects, each from then on, in order of time.
    pub(crate) streams: Vec<(Nanos, StreamId)>,
}

impl Profile {
    /// The block with this id.
    #[must_use]
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// Returns whether shapes of inputs were recorded, if operators were.
    #[must_use]
    pub fn has_shapes(&self) -> bool {
        self.trace.signatures.len() > 1 || self.trace.ops.is_empty()
    }

    /// The stream on which the program computes at a time (`with torch.cuda.stream(s):`), as far as the recorder
    /// marked it; the default stream elsewhere.
    #[must_use]
    pub fn stream_at(&self, time: Nanos) -> StreamId {
        let before = self.streams.partition_point(|&(from, _)| from <= time);
        before.checked_sub(1).map_or(StreamId(0), |at| self.streams[at].1)
    }

    /// The notes of `xmem profile` beside the events, if it made the recording.
    #[must_use]
    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// What the job shares among its processes; none if it shows no sign of others.
    #[must_use]
    pub fn distributed(&self) -> Option<Distributed> {
        distributed::find(&self.trace, &self.iterations)
    }

    /// The kinds of collectives that were recorded.
    #[must_use]
    pub fn collectives(&self) -> Collectives {
        Collectives::find(&self.trace)
    }

    /// The place of the recorded process among those of its job; none if it is alone, or not recorded.
    #[must_use]
    pub fn rank(&self) -> Option<Rank> {
        Rank::find(&self.trace, self.recording())
    }

    /// The facts of the virtual GPU, if the job was recorded on one.
    #[must_use]
    pub fn virtual_gpu(&self) -> Option<&VirtualGpu> {
        self.recording()?.virtual_gpu.as_ref()
    }

    /// The system's number of a thread; none if the trace has none.
    #[must_use]
    pub fn system_thread(&self, thread: ThreadIdx) -> Option<u32> {
        let thread = self.trace.threads.get(thread.index())?;
        self.trace.strings.resolve(thread.thread).parse().ok()
    }

    /// The parameter or buffer that lies in a block, where the recording names it.
    #[must_use]
    pub fn tensor(&self, id: BlockId) -> Option<&NamedTensor> {
        self.recording()?.tensors.get(*self.tensors.get(&id)?)
    }

    /// The operators as the passes saw them.
    fn program(&self) -> Program<'_> {
        Program {
            trace: &self.trace,
            names: &self.names,
            tree: &self.tree,
            autograd: &self.autograd,
            arguments: &self.arguments,
            device: self.device,
        }
    }

    /// The addresses of parameters, buffers and optimizer state that the recording lists.
    pub fn listed(&self) -> impl Iterator<Item = (Addr, Role)> {
        let tensors = self.recording().into_iter().flat_map(|r| &r.tensors);
        let state = self.recording().into_iter().flat_map(|r| &r.optimizers).flat_map(|o| &o.state);
        let tensors = tensors.map(|tensor| {
            let role = match tensor.kind {
                TensorKind::Parameter => Role::Parameter,
                TensorKind::Buffer => Role::Buffer,
            };
            (tensor.storage.address, role)
        });
        tensors.chain(state.map(|s| (s.storage.address, Role::OptimizerState)))
    }

    /// The origin of all times, since the Unix epoch; zero where the trace does not give it.
    #[must_use]
    pub fn base_time(&self) -> Nanos {
        self.trace.header.base_time.unwrap_or_default()
    }

    /// The text of a symbol.
    #[must_use]
    pub fn text(&self, sym: Sym) -> &str {
        self.trace.strings.resolve(sym)
    }

    /// The symbol of a text, if the trace has it.
    #[must_use]
    pub fn symbol(&self, text: &str) -> Option<Sym> {
        self.trace.strings.get(text)
    }

    /// Every distinct string of the trace.
    pub fn symbols(&self) -> impl Iterator<Item = (Sym, &str)> {
        self.trace.strings.iter()
    }

    /// The part of the script at a moment behind the recorded iterations; none before it.
    #[must_use]
    pub fn part_in_rest(&self, time: Nanos) -> Option<ScriptPart> {
        self.rest.filter(|rest| time >= rest.time)?;
        let after = self.parts.partition_point(|start| start.time <= time);
        after.checked_sub(1).map(|at| self.parts[at].part)
    }

    /// The classes of the optimizers that step. `profile_hook_step` in torch/optim/optimizer.py names each step after one.
    #[must_use]
    pub fn step_classes(&self) -> BTreeSet<&str> {
        self.symbols()
            .filter_map(|(_, text)| text.strip_prefix("Optimizer.step#")?.strip_suffix(".step"))
            .collect()
    }

    /// Number of operators and annotations.
    #[must_use]
    pub fn op_count(&self) -> usize {
        self.trace.ops.len()
    }

    /// An operator's name.
    #[must_use]
    pub fn op_name(&self, op: OpId) -> &str {
        self.program().op_name(op)
    }

    /// An operator's name as a symbol.
    #[must_use]
    pub fn op_symbol(&self, op: OpId) -> Sym {
        self.program().op_symbol(op)
    }

    /// Returns whether the row is an annotation rather than an operator. Old formats say so by name
    /// only.
    #[must_use]
    pub fn is_annotation(&self, op: OpId) -> bool {
        self.program().is_annotation(op)
    }

    /// The start of an operator.
    #[must_use]
    pub fn op_start(&self, op: OpId) -> Nanos {
        self.program().op_start(op)
    }

    /// The end of an operator.
    #[must_use]
    pub fn op_end(&self, op: OpId) -> Nanos {
        self.program().op_end(op)
    }

    /// The thread an operator ran on.
    #[must_use]
    pub fn op_thread(&self, op: OpId) -> ThreadIdx {
        self.trace.ops.thread[op.index()]
    }

    /// An operator's autograd sequence number.
    #[must_use]
    pub fn op_sequence(&self, op: OpId) -> Option<i64> {
        Some(self.trace.ops.sequence[op.index()]).filter(|&s| s >= 0)
    }

    /// An operator's recorded arguments; empty where shapes were not recorded.
    #[must_use]
    pub fn arguments(&self, op: OpId) -> &Arguments {
        self.program().arguments(op)
    }

    /// The operator that asks for memory where `op` is the innermost one: `aten::empty` and its like only provide it.
    #[must_use]
    pub fn asking_op(&self, op: OpId) -> OpId {
        let provides =
            |op: &OpId| PROVIDERS.iter().any(|provider| self.op_name(*op).starts_with(provider));
        let mut asking = op;
        for outer in self.tree.path(op) {
            if self.is_annotation(outer) {
                break;
            }
            asking = outer;
            if !provides(&outer) {
                break;
            }
        }
        asking
    }

    /// The operators and annotations around a block's allocation, innermost first.
    pub fn op_path(&self, block: &Block) -> impl Iterator<Item = OpId> + '_ {
        self.program().op_path(block)
    }

    /// The outermost operator at a block's allocation; annotations do not count.
    #[must_use]
    pub fn outermost_op(&self, block: &Block) -> Option<OpId> {
        self.program().outermost_op(block)
    }

    /// The autograd node (`autograd::engine::evaluate_function: …`) that an operator runs in: the
    /// innermost one, as backward of a checkpointed segment nests them.
    #[must_use]
    pub fn backward_node(&self, op: OpId) -> Option<OpId> {
        self.autograd.node_of(op)
    }

    /// The forward operator that made the autograd node which an operator runs in.
    #[must_use]
    pub fn forward_op(&self, op: OpId) -> Option<OpId> {
        self.backward_node(op).and_then(|node| self.autograd.forward_of(node))
    }

    /// The calls of modules, by thread and start, outer ones first; none where Python stacks were not recorded.
    #[must_use]
    pub fn module_calls(&self) -> Vec<ModuleCall> {
        python::module_calls(&self.trace.python, &self.trace.strings)
    }

    /// The return of the innermost Python call of a kind that an operator runs in and that has been
    /// running since `from`; none where Python stacks were not recorded.
    ///
    /// The variables of such a call are released by then.
    #[must_use]
    pub fn return_around(&self, op: OpId, kind: CallKind, from: Nanos) -> Option<Nanos> {
        let (start, end) = (self.op_start(op), self.op_end(op));
        let thread = self.op_thread(op);
        self.returns.around(&self.trace.python, kind, thread, from.min(start), end)
    }

    /// The phase at a time, and its span.
    #[must_use]
    pub fn phase_at(&self, time: Nanos) -> Option<&PhaseSpan> {
        span_at(&self.phases, time)
    }

    /// Indices of the blocks whose allocation lies in `[start, end]`.
    #[must_use]
    pub fn blocks_between(&self, start: Nanos, end: Nanos) -> std::ops::Range<usize> {
        let from = self.blocks.partition_point(|b| b.alloc_time < start);
        let to = self.blocks.partition_point(|b| b.alloc_time <= end);
        from..to.max(from)
    }
}
