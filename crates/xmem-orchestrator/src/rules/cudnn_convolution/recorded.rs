//! The convolutions of a recorded GPU. The recording has the workspaces of the plans that PyTorch took; where memory
//! is shorter than it was there, PyTorch takes other plans, which the answers name.

use super::{NOTEWORTHY, Thread, calls, note_source, of_call};
use crate::block_size::rounded;
use crate::schedule::{Origin, Schedule, WithoutWorkspace};
use crate::target::Target;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use xmem_analyzer::{Block, Profile};
use xmem_convolutions::{ConvPass, ConvolutionAnswers, ConvolutionQuestion};
use xmem_types::{BlockId, Bytes, Diagnostics, FallbackId, Fallbacks, OpId, Severity};

/// Scratch of a convolution that is larger is a workspace.
const LARGE: Bytes = Bytes::mib(16);

/// What the recorded workspaces fall back on.
#[derive(Debug, Default)]
pub(crate) struct RecordedPlans {
    pub(crate) fallbacks: Fallbacks,
    /// The convolutions whose workspaces they are, but for those in which plans are tried.
    pub(crate) workspaces: BTreeMap<BlockId, ConvolutionQuestion>,
    /// The convolutions without one.
    pub(crate) without_workspace: Vec<WithoutWorkspace>,
    /// Workspaces that have such sizes.
    pub(crate) known: u64,
    /// Workspaces that no answer names, which are taken for those of the convolutions of their calls.
    pub(crate) guessed: u64,
    /// Workspaces in which plans are tried (`torch.backends.cudnn.benchmark`).
    pub(crate) trials: u64,
    /// Convolutions with a workspace whose plans the answers do not name, and the largest workspace of them.
    pub(crate) unknown: u64,
    pub(crate) largest_unknown: Bytes,
}

impl RecordedPlans {
    /// Notes the source of smaller workspaces, and those that cannot be smaller, although PyTorch would take smaller ones.
    pub(crate) fn note(&self, answers: &ConvolutionAnswers, notes: &mut Diagnostics) {
        if self.known > 0 {
            note_source(answers, notes);
            let guessed = match self.guessed {
                0 => String::new(),
                guessed => format!("; it does not have the recorded sizes of {guessed}"),
            };
            let tried = match self.trials {
                0 => "",
                _ => "; which plan is the fastest of those that fit is not known (cudnn.benchmark)",
            };
            notes.report_many("recorded-plans", Severity::Note, None, self.known, || {
                format!(
                    "workspaces of convolutions are as recorded, and smaller where memory is short, as PyTorch then takes \
                     other plans of cuDNN: their source is {}{guessed}{tried}",
                    answers.source()
                )
            });
        }
        if self.largest_unknown < NOTEWORTHY {
            return;
        }
        notes.report_many("recorded-plans-unknown", Severity::Note, None, self.unknown, || {
            format!(
                "workspaces of up to {} of some convolutions are as recorded: where memory is short, PyTorch takes plans \
                 of cuDNN with smaller ones, which only the library that the job was recorded with can name (`--cudnn`)",
                self.largest_unknown
            )
        });
    }
}

/// Finds the workspaces of a schedule by the sizes of the plans that the answers name.
pub(crate) fn plans(
    profile: &Profile,
    schedule: &Schedule,
    target: &Target,
    answers: &ConvolutionAnswers,
) -> RecordedPlans {
    let mut found = RecordedPlans::default();
    let Some(is_call) = calls(profile) else { return found };
    let mut blocks_of: FxHashMap<OpId, Vec<(BlockId, Bytes)>> = FxHashMap::default();
    let mut results_of: FxHashMap<OpId, Vec<BlockId>> = FxHashMap::default();
    for (row, block) in schedule.blocks.iter().enumerate() {
        let Origin::Recorded(recorded) = block.origin else { continue };
        let recorded = profile.block(recorded);
        let Some(call) = profile.op_path(recorded).find(|&op| is_call(op)) else { continue };
        let id = BlockId::new(row);
        match ends_within(profile, recorded, call) {
            true => blocks_of.entry(call).or_default().push((id, block.size)),
            false => results_of.entry(call).or_default().push(id),
        }
    }
    let choice = target.cudnn_benchmark.choice();
    let mut lists: FxHashMap<(Thread, ConvolutionQuestion), FallbackId> = FxHashMap::default();
    let mut tried = FxHashSet::default();
    for &call in profile.tree.preorder() {
        let results = results_of.remove(&call).unwrap_or_default();
        let mut blocks = blocks_of.remove(&call).unwrap_or_default();
        if results.is_empty() && blocks.is_empty() {
            continue;
        }
        let thread =
            if profile.backward_node(call).is_some() { Thread::Backward } else { Thread::Program };
        let mut has_unknown = false;
        for (at, question) in of_call(profile, call).into_iter().enumerate() {
            let question = question.chosen_by(choice);
            let Some(plans) = answers.get(&question) else {
                has_unknown = true;
                continue;
            };
            // After a trial, the plan may be any: which one is the fastest depends on the GPU.
            let sizes = plans.trial.as_ref().map_or(&plans.sizes, |trial| &trial.sizes);
            let sizes = || sizes.iter().map(|&size| rounded(size));
            let named = |blocks: &[(BlockId, Bytes)]| {
                sizes().filter(|&size| size > Bytes::ZERO).find_map(|size| {
                    blocks.iter().position(|&(_, recorded)| is_block_for(rounded(recorded), size))
                })
            };
            if plans.trial.is_some() && tried.insert((thread, question)) {
                // The workspace of the trial is the largest that memory had room for, and comes before that of the plan.
                if let Some(place) = named(&blocks) {
                    let list = found.fallbacks.add(sizes());
                    found.fallbacks.assign_trial(blocks.remove(place).0, list);
                    found.known += 1;
                    found.trials += 1;
                }
            }
            // The first plan, or a later one where the memory of the recorded GPU was short.
            let named = named(&blocks);
            // Answers that are not the recorded library's may name other sizes: then the workspace is what is large.
            // Only on virtual GPUs, whose other scratch is known.
            let place = named.or_else(|| {
                profile.virtual_gpu()?;
                let at = (0..blocks.len()).max_by_key(|&at| blocks[at].1)?;
                (blocks[at].1 > LARGE && plans.first() > Bytes::ZERO).then_some(at)
            });
            let Some(place) = place else {
                has_unknown |= plans.first() > Bytes::ZERO;
                let result = results.get(at).or(results.last());
                let result =
                    result.filter(|_| plans.trial.is_none() && plans.first() == Bytes::ZERO);
                found.without_workspace.extend(result.map(|&behind| {
                    // The operator of cuDNN's function allocates the result of a forward pass and its workspace.
                    let own = schedule.place(profile, behind).op;
                    let op = own.filter(|_| question.pass == ConvPass::Forward).unwrap_or(call);
                    WithoutWorkspace { convolution: question, op, behind }
                }));
                continue;
            };
            found.known += 1;
            found.guessed += u64::from(named.is_none());
            let (block, _) = blocks.remove(place);
            let list = lists.entry((thread, question));
            let list = *list.or_insert_with(|| found.fallbacks.add(sizes()));
            found.fallbacks.assign(block, list);
            found.workspaces.insert(block, question);
        }
        // Where all are known, what is left are copies of operands.
        let left = blocks.iter().map(|&(_, size)| size).max();
        if let Some(largest) = left.filter(|_| has_unknown) {
            found.unknown += 1;
            found.largest_unknown = found.largest_unknown.max(largest);
        }
    }
    found
}

/// Whether a block may have been allocated for so many bytes: what remains of a large block is split off only if it is
/// more than 1 MiB (c10/cuda/CUDACachingAllocator.cpp, `should_split`).
fn is_block_for(block: Bytes, size: Bytes) -> bool {
    const SMALL: Bytes = Bytes::mib(1);
    block == size || (size > SMALL && block > size && block - size <= SMALL)
}

fn ends_within(profile: &Profile, block: &Block, call: OpId) -> bool {
    block.free_time.is_some_and(|free| free <= profile.tree.end(call))
}
