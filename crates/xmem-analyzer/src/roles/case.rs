//! One block under decision, and the conditions of the table.

use super::clues::Clues;
use super::facts::Facts;
use super::gradients::{self, Accumulated};
use super::initial::{self, Claim, ModelRows};
use super::running;
use crate::block::{Block, Residency, Role};
use crate::names::NameKind;
use crate::python::{Context, Registered};
use crate::recorder_facts::{Arrival, State};
use crate::recording::{NamedTensor, TensorKind};
use crate::spans::Phase;
use crate::timeline::span_around;
use xmem_trace::DeviceKind;
use xmem_types::{BlockId, Bytes, Nanos};

/// The size of a complex number of double precision, the largest that Python has. In the recorded traces
/// (traces/, 54 files) each of 2,883 wrapped numbers has 8 bytes.
const MAX_NUMBER_SIZE: Bytes = Bytes(16);

/// A block under decision.
pub(super) struct Case<'a> {
    facts: &'a Facts<'a>,
    blocks: &'a [Block],
    row: usize,
    pub(super) clues: &'a mut Clues,
    /// See [`Case::is_beside_the_models`], which takes out of an inventory and is evaluated twice.
    beside_the_models: Option<bool>,
}

impl<'a> Case<'a> {
    pub(super) fn new(
        row: usize,
        blocks: &'a [Block],
        facts: &'a Facts<'a>,
        clues: &'a mut Clues,
    ) -> Self {
        Self { facts, blocks, row, clues, beside_the_models: None }
    }

    pub(super) fn block(&self) -> &'a Block {
        &self.blocks[self.row]
    }

    pub(super) fn id(&self) -> BlockId {
        BlockId::new(self.row)
    }

    pub(super) fn context(&self) -> Context {
        self.facts.frames[self.row].context
    }

    pub(super) fn has_python(&self) -> bool {
        self.facts.program.has_python()
    }

    /// Returns whether the block is alive when the model is last seen at work.
    pub(super) fn is_kept(&self) -> bool {
        self.block().lasts_beyond(self.clues.last_use)
    }

    /// Returns whether the block outlives the phase it is made in.
    pub(super) fn outlives_phase(&self) -> bool {
        self.block().lasts_beyond(self.facts.span_end(self.block().alloc_time))
    }

    /// Returns whether an operator made the block from Python values.
    pub(super) fn is_from_number(&self) -> bool {
        self.block().op.is_some_and(|op| self.clues.numbers.contains(&op))
    }

    /// Takes a parameter of the block's size out of those that backward reaches.
    pub(super) fn takes_gradient(&mut self) -> bool {
        self.clues.unmatched.take(self.block().size)
    }

    /// The way in which an accumulation node kept the block, if one did.
    pub(super) fn accumulated(&self) -> Option<Accumulated> {
        self.clues.accumulated.get(&self.row).copied()
    }

    /// Returns whether a backward node made the block.
    pub(super) fn is_in_node(&self) -> bool {
        gradients::is_in_node(self.block(), self.facts)
    }

    /// The way in which an operator shows that the block is a parameter. Only of blocks that are kept,
    /// and not of those that are registered as buffers next.
    pub(super) fn claim(&self) -> Option<Claim> {
        let &(claim, at) = self.clues.claims.get(&self.row).filter(|_| self.is_kept())?;
        let is_buffer = claim == Claim::Wrapped
            && initial::registered_after(self.facts, at) == Some(Registered::Buffer);
        (!is_buffer).then_some(claim)
    }

    /// Returns whether a module is given something after the block was wrapped.
    pub(super) fn is_registered(&self) -> bool {
        let claim = self.clues.claims.get(&self.row);
        claim.is_some_and(|&(_, at)| initial::registered_after(self.facts, at).is_some())
    }

    /// Takes a weight of the block's size out of those that forward takes and that get no gradient.
    pub(super) fn takes_frozen_weight(&mut self) -> bool {
        self.clues.frozen.take(self.block().size)
    }

    pub(super) fn is_freed_before_first_forward(&self) -> bool {
        !self.block().lasts_beyond(self.clues.first_forward)
    }

    /// Returns whether the block is a copy of another tensor, as `copy.deepcopy` of a module makes them
    /// for an average of the weights (torch/nn/parameter.py, `Parameter.__deepcopy__`).
    pub(super) fn is_copy(&self) -> bool {
        let program = self.facts.program;
        program.outermost_op(self.block()).is_some_and(|op| program.op_name(op) == "aten::clone")
    }

    /// Takes a size out of the parameters': each is copied once.
    pub(super) fn takes_parameter_size(&mut self) -> bool {
        match self.clues.model.sizes.get_mut(&self.blocks[self.row].size) {
            Some(n @ 1..) => {
                *n -= 1;
                true
            }
            _ => false,
        }
    }

    /// Returns whether the block was made after the first and before the last parameter.
    pub(super) fn is_among_parameters(&self) -> bool {
        let ModelRows { first, last, .. } = self.clues.model;
        first.is_some_and(|first| first < self.row) && last.is_some_and(|last| self.row < last)
    }

    /// Returns whether the block has the form of another tensor.
    pub(super) fn is_like_a_parameter(&self) -> bool {
        initial::is_like_a_parameter(self.block(), self.facts)
    }

    /// Returns whether the next block has the form of another tensor.
    pub(super) fn is_next_like_a_parameter(&self) -> bool {
        let next = self.blocks.get(self.row + 1).filter(|b| b.phase == Phase::Init);
        next.is_some_and(|b| initial::is_like_a_parameter(b, self.facts))
    }

    /// Returns whether the block was made after the parameters and has the size of running statistics.
    pub(super) fn is_statistic(&self) -> bool {
        self.clues.statistics.contains_key(&self.block().size)
            && self.clues.model.last.is_some_and(|last| self.row > last)
    }

    /// Returns whether the first forward takes a tensor of the block's size; none where shapes were not
    /// recorded.
    pub(super) fn does_forward_take(&self) -> Option<bool> {
        let sizes = self.clues.data_uses.forward_takes.as_ref()?;
        Some(sizes.contains(&self.block().size))
    }

    /// Returns whether the block is a number that Python passes where a tensor is expected: it becomes
    /// a tensor outside of any operator and is gone when the operator that takes it ends
    /// (torch/csrc/autograd/utils/wrap_outputs.h, aten/src/ATen/ScalarOps.h).
    pub(super) fn is_wrapped_number(&self) -> bool {
        let (block, program) = (self.block(), self.facts.program);
        if block.op.is_some_and(|op| !program.is_annotation(op)) {
            return false;
        }
        let Some(freed) = block.free_time else { return false };
        let outer = &self.facts.timeline.outer;
        let next = outer.partition_point(|&o| program.op_start(o) < block.alloc_time);
        // Within the next operator, or just after it where the reference is dropped.
        outer.get(next + 1).is_none_or(|&o| freed <= program.op_start(o))
            && block.size <= MAX_NUMBER_SIZE
    }

    /// Returns whether the block outlives the optimizer's step around it.
    pub(super) fn outlives_step(&self) -> bool {
        self.block().lasts_beyond(running::step_end(self.facts, self.block().alloc_time))
    }

    /// Returns whether the block is an optimizer's counter. Unless they run fused or captured,
    /// optimizers keep their counters on the host, as `torch.zeros(())` (torch/optim/rmsprop.py,
    /// `_init_group`).
    pub(super) fn is_counter(&self) -> bool {
        let program = self.facts.program;
        let Some(op) = program.outermost_op(self.block()) else { return false };
        if program.op_name(op) != "aten::zeros" || program.arguments(op).value(0) != Some("[]") {
            return false;
        }
        let steps = &self.clues.fused_steps;
        let after = steps.partition_point(|f| f.0 <= self.block().alloc_time);
        !after.checked_sub(1).is_some_and(|at| steps[at].1)
    }

    /// The start of the next forward.
    pub(super) fn next_forward(&self) -> Option<Nanos> {
        let starts = &self.clues.forward_starts;
        starts.get(starts.partition_point(|s| *s < self.block().alloc_time)).copied()
    }

    /// Returns whether the block is alive when the next forward begins.
    pub(super) fn is_alive_at_forward(&self) -> bool {
        self.next_forward().is_some_and(|forward| self.block().lasts_beyond(forward))
    }

    /// Returns whether the block is alive when forward first starts in the second iteration after its
    /// own. An iteration may have several forwards.
    pub(super) fn outlives_two_iterations(&self) -> bool {
        let starts = &self.clues.forward_starts;
        let at = self.block().iteration.map(|i| i.index() + 2);
        let iteration = at.and_then(|at| self.facts.iterations.get(at)).map(|i| i.start);
        let forward = iteration.and_then(|i| starts.get(starts.partition_point(|s| *s < i)));
        forward.is_some_and(|&forward| self.block().lasts_beyond(forward))
    }

    /// Returns whether the block is freed before the next backward pass.
    pub(super) fn is_freed_in_forward(&self) -> bool {
        let starts = &self.clues.backward_starts;
        let next = starts.partition_point(|s| *s < self.block().alloc_time);
        let end = starts.get(next).copied().unwrap_or(Nanos::MAX);
        self.block().free_time.is_some_and(|freed| freed < end)
    }

    pub(super) fn is_freed_in_backward(&self) -> bool {
        let span = self.block().free_time.and_then(|freed| self.facts.phase_at(freed));
        span.is_some_and(|p| p.phase == Phase::Backward)
    }

    /// Returns whether only the first of several iterations makes the block, and it is never freed.
    pub(super) fn is_made_once(&self) -> bool {
        self.facts.iterations.len() >= 2
            && self.is_kept()
            && self.clues.made.get(&running::likeness(self.block(), self.facts)) == Some(&1)
    }

    /// Returns whether the block is a workspace of cuBLAS. They are made in the first matrix product of
    /// a stream and kept (aten/src/ATen/cuda/CublasHandlePool.cpp, `getCUDABlasLtWorkspace`); a CPU
    /// recording has none.
    pub(super) fn is_library_workspace(&self) -> bool {
        self.facts.program.device == DeviceKind::Cuda
            && self.block().op.is_some_and(|op| {
                matches!(
                    self.facts.program.op_name(op),
                    "aten::mm" | "aten::addmm" | "aten::bmm" | "aten::baddbmm" | "aten::linear"
                )
            })
    }

    /// Returns whether a call of cuDNN made the block on the GPU and freed it before it ended.
    pub(super) fn is_scratch_of_cudnn(&self) -> bool {
        let (block, program) = (self.block(), self.facts.program);
        program.device == DeviceKind::Cuda
            && block.op.zip(block.free_time).is_some_and(|(op, freed)| {
                let name = program.op_name(op);
                let is_cudnn = name.starts_with("aten::cudnn_convolution")
                    || matches!(
                        name,
                        "aten::convolution_backward"
                            | "aten::_cudnn_rnn"
                            | "aten::_cudnn_rnn_backward"
                    );
                is_cudnn && freed <= program.op_end(op)
            })
    }

    /// Returns whether the block was made in the first of several iterations.
    pub(super) fn is_of_first_iteration(&self) -> bool {
        self.facts.iterations.len() >= 2
            && self.block().iteration.is_some_and(|iteration| iteration.index() == 0)
    }

    /// The way in which the block comes to the GPU, if a mark says that it does.
    pub(super) fn arrival(&self) -> Option<Arrival> {
        self.facts.recorder.arrival(self.id())
    }

    pub(super) fn is_made_on_device(&self) -> bool {
        self.arrival() == Some(Arrival::Made)
    }

    /// Returns whether the recording names the block as a tensor of this kind.
    pub(super) fn is_named(&self, kind: TensorKind) -> bool {
        self.tensor().is_some_and(|t| t.kind == kind)
    }

    fn tensor(&self) -> Option<&NamedTensor> {
        let row = *self.facts.recorder.tensors.get(&self.id())?;
        self.facts.recording?.tensors.get(row)
    }

    /// Returns whether the block is a copy that was made for the host and never comes to the GPU.
    pub(super) fn is_host_copy(&self) -> bool {
        self.facts.recorder.is_host_copy(self.id()) && self.arrival().is_none()
    }

    /// Returns whether the block belongs to a model that is not at work, made before anything came to
    /// the GPU.
    pub(super) fn is_of_idle_model(&self) -> bool {
        let at_work = self.tensor().is_some_and(|t| self.facts.recorder.is_at_work(t.model));
        self.arrival().is_none() && !at_work && self.is_before_all_arrivals()
    }

    /// The part of an optimizer's state that the recording lists the block as.
    pub(super) fn listed_state(&self) -> Option<State> {
        self.facts.recorder.state.get(&self.id()).copied()
    }

    pub(super) fn is_listed_gradient(&self) -> bool {
        self.facts.recorder.gradients.contains(&self.id())
    }

    pub(super) fn is_init(&self) -> bool {
        self.block().phase == Phase::Init
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.block().phase == Phase::Data
    }

    pub(super) fn is_of_model(&self) -> bool {
        matches!(self.block().role, Role::Parameter | Role::Buffer)
    }

    /// Returns whether the block is like a tensor of a model and none that the recording names: it
    /// lists none, or the block is a trained leaf of which it names no parameter.
    pub(super) fn is_beside_the_models(&mut self) -> bool {
        if let Some(known) = self.beside_the_models {
            return known;
        }
        let block = self.block();
        let leaf = block.role == Role::Parameter
            && self
                .clues
                .unnamed
                .get_mut(&block.size)
                .filter(|n| **n > 0)
                .map(|n| *n -= 1)
                .is_some();
        let beside = self.is_of_model() && (leaf || !self.facts.recorder.lists.tensors);
        *self.beside_the_models.insert(beside)
    }

    /// Returns whether the block is freed before the forward that follows begins.
    pub(super) fn is_freed_before_forward(&self) -> bool {
        if self.is_init() {
            return self.is_freed_before_first_forward();
        }
        let forwards = &self.clues.moves.forwards;
        let next = forwards.get(forwards.partition_point(|f| *f < self.block().alloc_time));
        next.is_some_and(|&forward| !self.block().lasts_beyond(forward))
    }

    pub(super) fn is_moved_before_the_loop(&self) -> bool {
        let start = self.clues.moves.loop_start;
        matches!(self.arrival(), Some(Arrival::Moved(time)) if time < start)
    }

    /// Returns whether the block was made before anything came to the GPU.
    pub(super) fn is_before_all_arrivals(&self) -> bool {
        self.facts.recorder.first_arrival.is_some_and(|first| self.block().alloc_time < first)
    }

    /// Returns whether the block was taken for a batch, though batches that were made after it are
    /// moved.
    pub(super) fn is_batch_beside_moved_ones(&self) -> bool {
        let block = self.block();
        self.facts.recorder.first_arrival.is_some()
            && block.residency == Residency::Batch
            && self.clues.moves.loaded.last().is_some_and(|&last| block.alloc_time < last)
    }

    pub(super) fn is_in_loader(&self) -> bool {
        let program = self.facts.program;
        program.op_path(self.block()).any(|op| program.kind(op) == NameKind::Data)
    }

    /// Returns whether FSDP2 made the block.
    pub(super) fn is_of_fsdp(&self) -> bool {
        self.is_within(NameKind::is_of_fsdp)
    }

    /// Returns whether the block is a parameter that FSDP2 gathered.
    pub(super) fn is_gathered(&self) -> bool {
        self.is_within(|kind| kind == NameKind::FsdpGathered)
    }

    /// Returns whether the block was made within a span of FSDP2 of these kinds.
    fn is_within(&self, of: impl Fn(NameKind) -> bool) -> bool {
        let program = self.facts.program;
        program.names.has_fsdp() && program.op_path(self.block()).any(|op| of(program.kind(op)))
    }

    /// Returns whether a batch is moved after the block was made and before the loop turns.
    pub(super) fn is_before_the_batch_moves(&self) -> bool {
        let (time, moves) = (self.block().alloc_time, &self.clues.moves);
        let turn = span_around(&moves.turns, time);
        let next = moves.loaded.get(moves.loaded.partition_point(|at| *at <= time));
        next.is_some_and(|at| *at < turn.end)
    }

    /// Returns whether a batch was moved since the loop turned, and another is moved before it turns again.
    pub(super) fn is_between_moves(&self) -> bool {
        self.is_before_the_batch_moves() && self.is_after_the_batch_moved()
    }

    /// Returns whether a batch was moved since the loop turned, and forward is still to come.
    pub(super) fn is_after_the_batch_moved(&self) -> bool {
        let (time, moves) = (self.block().alloc_time, &self.clues.moves);
        let turn = span_around(&moves.turns, time);
        let before = moves.loaded.partition_point(|at| *at <= time);
        let previous = before.checked_sub(1).map(|at| moves.loaded[at]);
        previous.is_some_and(|at| at >= turn.start && at >= moves.loop_start)
            && moves.forwards.last().is_some_and(|&last| time < last)
    }
}
