//! Roles of the blocks of an allocator's history, by the part of the program that made them, how long they live, and
//! which others have their size.
//!
//! A history has no operators and no links of autograd. What its stacks do not show follows from the order: what is made
//! outside of modules lies before a forward pass (batches), or between forward and backward (losses). A block that is
//! freed by the part that made it is temporary; of the others, those of forward are kept for backward, those of backward
//! are gradients, those of optimizers are their state.

use crate::block::{Evidence, Role};
use crate::history::{HistoryBlock, HistoryPart};
use crate::lifetime::Tick;
use crate::spans::Phase;
use std::collections::BTreeMap;
use xmem_types::Bytes;

/// What a history shows of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoleOfHistory {
    pub(crate) role: Role,
    pub(crate) evidence: Evidence,
    pub(crate) phase: Phase,
}

/// The part of the program in which a block is made, with what follows from the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Parameters and buffers are made, moved or converted.
    Model,
    /// Outside of modules, before a forward pass.
    Batch,
    Phase(Phase),
    Workspace,
    Unknown,
}

/// `:4096:2:16:8` in KiB (aten/src/ATen/cuda/CublasHandlePool.cpp, `parseChosenWorkspaceSize`).
const CUBLAS_WORKSPACE: Bytes = Bytes((4096 * 2 + 16 * 8) << 10);

/// That of Hopper and later; also the size of many tensors.
const LARGE_CUBLAS_WORKSPACE: Bytes = Bytes::mib(32);

const NOT_SHOWN: &str = "neither the call stack nor the lifetime shows its purpose";

/// The roles of blocks by the parts of the program that made them; the first `earlier` were there before the history.
pub(crate) fn find(
    blocks: &[HistoryBlock],
    recorded: &[HistoryPart],
    earlier: usize,
) -> Vec<RoleOfHistory> {
    let parts = parts(&recorded[earlier..]);
    let later = &blocks[earlier..];
    let runs = Runs::new(later, &parts);
    let mut roles: Vec<RoleOfHistory> = (0..later.len())
        .map(|row| {
            let (role, text) = runs.role(row, recorded[earlier + row]);
            RoleOfHistory { role, evidence: Evidence(text), phase: phase(parts[row]) }
        })
        .collect();
    let gradients = gradients_of_a_pass(later, &roles, &runs);
    name_parameters(later, &runs, &gradients, &mut roles);
    name_last_gradients(later, &runs, &mut roles);
    let mut all = of_earlier(&blocks[..earlier], &gradients);
    all.extend(roles);
    all
}

fn phase(part: Part) -> Phase {
    match part {
        Part::Phase(phase) => phase,
        Part::Batch => Phase::Data,
        Part::Model | Part::Workspace | Part::Unknown => Phase::Init,
    }
}

/// The parts, with those of stacks that show none.
fn parts(recorded: &[HistoryPart]) -> Vec<Part> {
    // Where no stack has frames, their absence shows nothing.
    let has_stacks = recorded.iter().any(|part| !matches!(part, HistoryPart::NoFrame));
    let mut parts: Vec<Part> = recorded
        .iter()
        .map(|&part| match part {
            HistoryPart::Phase(phase) => Part::Phase(phase),
            HistoryPart::Workspace => Part::Workspace,
            HistoryPart::Parameters | HistoryPart::Buffers => Part::Model,
            HistoryPart::NoFrame if has_stacks => Part::Phase(Phase::Backward),
            HistoryPart::NoFrame | HistoryPart::Unknown => Part::Unknown,
        })
        .collect();
    let is_shown = |part: &Part| !matches!(part, Part::Unknown | Part::Workspace);
    let mut next = None;
    let nexts: Vec<Option<Part>> = {
        let mut nexts = vec![None; parts.len()];
        for row in (0..parts.len()).rev() {
            nexts[row] = next;
            if is_shown(&parts[row]) {
                next = Some(parts[row]);
            }
        }
        nexts
    };
    let mut before = None;
    for (part, next) in parts.iter_mut().zip(nexts) {
        if *part == Part::Unknown {
            *part = between(before, next);
        } else if is_shown(part) {
            before = Some(*part);
        }
    }
    parts
}

/// The part between two others.
fn between(before: Option<Part>, next: Option<Part>) -> Part {
    const FORWARD: Option<Part> = Some(Part::Phase(Phase::Forward));
    const BACKWARD: Option<Part> = Some(Part::Phase(Phase::Backward));
    if before == FORWARD && (next == FORWARD || next == BACKWARD) {
        Part::Phase(Phase::Forward)
    } else if next == FORWARD || next == Some(Part::Phase(Phase::Data)) {
        Part::Batch
    } else {
        Part::Unknown
    }
}

/// The blocks in the order of their allocation, as runs of one part each.
struct Runs<'a> {
    blocks: &'a [HistoryBlock],
    parts: &'a [Part],
    /// Of each block, the first allocation behind its run.
    ends: Vec<Option<Tick>>,
    /// The first allocations of the runs of backward, and of optimizers.
    backwards: Vec<Tick>,
    optimizers: Vec<Tick>,
    first_forward: Option<Tick>,
}

impl<'a> Runs<'a> {
    fn new(blocks: &'a [HistoryBlock], parts: &'a [Part]) -> Self {
        let mut ends = vec![None; blocks.len()];
        let mut end = None;
        // Workspaces are made wherever a handle is first used.
        let mut run = None;
        for row in (0..blocks.len()).rev() {
            if parts[row] != Part::Workspace {
                if run.is_some_and(|(part, _)| part != parts[row]) {
                    end = run.map(|(_, first)| first);
                }
                run = Some((parts[row], blocks[row].alloc.0));
            }
            ends[row] = end;
        }
        let begins = |phase: Phase| {
            let of_phase = Part::Phase(phase);
            let mut begins = Vec::new();
            let mut before = None;
            for (block, &part) in blocks.iter().zip(parts).filter(|(_, p)| **p != Part::Workspace) {
                if part == of_phase && before != Some(part) {
                    begins.push(block.alloc.0);
                }
                before = Some(part);
            }
            begins
        };
        let (backwards, optimizers) = (begins(Phase::Backward), begins(Phase::OptimizerStep));
        let first_forward = begins(Phase::Forward).first().copied();
        Self { blocks, parts, ends, backwards, optimizers, first_forward }
    }

    /// Returns whether a block lives at a moment behind its allocation.
    fn lives_at(&self, row: usize, moment: Tick) -> bool {
        self.blocks[row].free.is_none_or(|(free, _)| free > moment)
    }

    /// Returns whether a block is freed by the part that made it, and not by what follows without an allocation.
    fn is_brief(&self, row: usize) -> bool {
        if matches!(
            self.blocks[row].freed_in,
            Some(HistoryPart::Phase(Phase::ZeroGrad | Phase::OptimizerStep))
        ) && self.parts[row] == Part::Phase(Phase::Backward)
        {
            return false;
        }
        let end = self.ends[row];
        self.blocks[row].free.is_some_and(|(free, _)| end.is_none_or(|end| free <= end))
    }

    /// The number of these moments that a block lives at.
    fn survives(&self, row: usize, moments: &[Tick]) -> usize {
        let from = moments.partition_point(|&moment| moment <= self.blocks[row].alloc.0);
        moments[from..].iter().take_while(|&&moment| self.lives_at(row, moment)).count()
    }

    fn role(&self, row: usize, recorded: HistoryPart) -> (Role, &'static str) {
        let phase = match self.parts[row] {
            Part::Workspace => return (Role::Workspace, "made in a handle of cuBLAS"),
            Part::Phase(_) if self.is_workspace(row) => {
                return (
                    Role::Workspace,
                    "has the size of a workspace of cuBLAS, and is never freed",
                );
            }
            _ if self.is_brief(row) => {
                return (Role::Temporary, "made and freed by the same part of the program");
            }
            Part::Model if recorded == HistoryPart::Buffers => {
                return (Role::Buffer, "moved behind the parameters of its module, and kept");
            }
            Part::Model => {
                return (Role::Parameter, "made or moved with a module, and kept");
            }
            Part::Batch if self.blocks[row].free.is_some() => {
                return (
                    Role::Input,
                    "made outside of modules before a forward pass, and freed after it",
                );
            }
            Part::Batch | Part::Unknown => return (Role::Unknown, NOT_SHOWN),
            Part::Phase(phase) => phase,
        };
        match phase {
            Phase::Data => (Role::Input, "made by torch/utils/data, and kept for the model"),
            Phase::Forward => self.of_forward(row),
            Phase::Backward if self.ends[row].is_some() || self.blocks[row].free.is_some() => {
                (Role::Gradient, "made in backward, which it outlives")
            }
            Phase::OptimizerStep
                if self.blocks[row].free.is_none() || self.survives(row, &self.optimizers) > 0 =>
            {
                (Role::OptimizerState, "made in torch/optim and kept beyond the step")
            }
            _ => (Role::Unknown, NOT_SHOWN),
        }
    }

    /// Returns whether a block, which module or autograd made, is never freed and has the size of a workspace of cuBLAS.
    fn is_workspace(&self, row: usize) -> bool {
        let HistoryBlock { size, free, .. } = self.blocks[row];
        let is_of_size =
            size == CUBLAS_WORKSPACE || size == LARGE_CUBLAS_WORKSPACE && self.is_of_no_tensor(row);
        free.is_none() && is_of_size
    }

    /// Returns whether forward or backward made a block that is kept beyond the iteration, and no parameter has its size:
    /// neither a saved tensor nor a gradient.
    fn is_of_no_tensor(&self, row: usize) -> bool {
        let later = match self.parts[row] {
            Part::Phase(Phase::Forward) => 2,
            Part::Phase(Phase::Backward) => 1,
            _ => return false,
        };
        let size = self.blocks[row].size;
        let is_before =
            |block: &&HistoryBlock| self.first_forward.is_some_and(|first| block.alloc.0 < first);
        self.survives(row, &self.backwards) >= later
            && !self.blocks.iter().take_while(is_before).any(|block| block.size == size)
    }

    fn of_forward(&self, row: usize) -> (Role, &'static str) {
        match self.survives(row, &self.backwards) {
            0 => (Role::Unknown, NOT_SHOWN),
            1 => (Role::Activation, "made in forward, and alive when backward begins"),
            _ => (Role::Unknown, "made in forward, and kept beyond an iteration"),
        }
    }
}

/// The most gradients of each size that one backward pass makes.
fn gradients_of_a_pass(
    blocks: &[HistoryBlock],
    roles: &[RoleOfHistory],
    runs: &Runs<'_>,
) -> BTreeMap<Bytes, usize> {
    let mut of_pass: BTreeMap<(Bytes, usize), usize> = BTreeMap::new();
    for (block, _) in blocks.iter().zip(roles).filter(|(_, role)| role.role == Role::Gradient) {
        let pass = runs.backwards.partition_point(|&begin| begin <= block.alloc.0);
        *of_pass.entry((block.size, pass)).or_default() += 1;
    }
    let mut most = BTreeMap::new();
    for ((size, _), count) in of_pass {
        let known: &mut usize = most.entry(size).or_default();
        *known = count.max(*known);
    }
    most
}

/// What is made before the first forward pass and never freed is a parameter if gradients have its size.
fn name_parameters(
    blocks: &[HistoryBlock],
    runs: &Runs<'_>,
    gradients: &BTreeMap<Bytes, usize>,
    roles: &mut [RoleOfHistory],
) {
    let mut left = gradients.clone();
    for (block, role) in blocks.iter().zip(&*roles) {
        if role.role == Role::Parameter
            && let Some(left) = left.get_mut(&block.size)
        {
            *left = left.saturating_sub(1);
        }
    }
    for (row, block) in blocks.iter().enumerate() {
        let is_first = runs.first_forward.is_some_and(|first| block.alloc.0 < first);
        if roles[row].role == Role::Unknown
            && is_first
            && block.free.is_none()
            && let Some(left) = left.get_mut(&block.size).filter(|left| **left > 0)
        {
            *left -= 1;
            roles[row].role = Role::Parameter;
            roles[row].evidence = Evidence(
                "kept from before the first forward pass; backward makes a gradient of its size",
            );
        }
    }
}

/// What backward makes, and is alive when the history ends with it, is a gradient if a parameter has its size.
fn name_last_gradients(blocks: &[HistoryBlock], runs: &Runs<'_>, roles: &mut [RoleOfHistory]) {
    let mut left: BTreeMap<Bytes, usize> = BTreeMap::new();
    for (block, _) in blocks.iter().zip(&*roles).filter(|(_, role)| role.role == Role::Parameter) {
        *left.entry(block.size).or_default() += 1;
    }
    for (row, block) in blocks.iter().enumerate() {
        if roles[row].role == Role::Unknown
            && runs.parts[row] == Part::Phase(Phase::Backward)
            && let Some(left) = left.get_mut(&block.size).filter(|left| **left > 0)
        {
            *left -= 1;
            roles[row].role = Role::Gradient;
            roles[row].evidence =
                Evidence("made in backward, with which the history ends; a parameter has its size");
        }
    }
}

/// Blocks from before the history: of those with the size of a gradient, as many are parameters as a backward pass makes
/// gradients; if there are twice or three times as many, the others are state of the optimizer.
fn of_earlier(blocks: &[HistoryBlock], gradients: &BTreeMap<Bytes, usize>) -> Vec<RoleOfHistory> {
    let mut there: BTreeMap<Bytes, usize> = BTreeMap::new();
    for block in blocks.iter().filter(|block| block.free.is_none()) {
        *there.entry(block.size).or_default() += 1;
    }
    let mut seen: BTreeMap<Bytes, usize> = BTreeMap::new();
    let mut of_block = |block: &HistoryBlock| {
        let unknown = (Role::Unknown, "allocated before the history began");
        let Some(&count) = gradients.get(&block.size).filter(|_| block.free.is_none()) else {
            return unknown;
        };
        let seen = seen.entry(block.size).or_default();
        *seen += 1;
        let there = there[&block.size];
        match there / count {
            1..=3 if there.is_multiple_of(count) && *seen <= count => (
                Role::Parameter,
                "there before the history; backward makes as many gradients of its size",
            ),
            2..=3 if there.is_multiple_of(count) => (
                Role::OptimizerState,
                "there before the history, once or twice for each gradient of its size",
            ),
            _ => unknown,
        }
    };
    let with_phase =
        |(role, text)| RoleOfHistory { role, evidence: Evidence(text), phase: Phase::Init };
    blocks.iter().map(|block| with_phase(of_block(block))).collect()
}
