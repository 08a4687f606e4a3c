//! The convolutions of a recorded GPU. The recording has the workspaces of the plans that PyTorch took; where memory
//! is shorter than it was there, PyTorch takes other plans, which the answers name.

use super::{BACKWARD_OP, BackwardCall, FORWARD_OP, Thread, forward_question};
use crate::block_size::rounded;
use crate::schedule::{Origin, Schedule};
use crate::target::Target;
use rustc_hash::FxHashMap;
use xmem_analyzer::{Block, Profile};
use xmem_convolutions::{ConvolutionAnswers, ConvolutionQuestion};
use xmem_types::{BlockId, Bytes, FallbackId, Fallbacks, OpId};

/// Scratch of a convolution that is larger is a workspace.
const LARGE: Bytes = Bytes::mib(16);

/// What the recorded workspaces fall back on.
#[derive(Debug, Default)]
pub(crate) struct RecordedPlans {
    pub(crate) fallbacks: Fallbacks,
    /// Workspaces that no answer names, which are taken for those of the convolutions of their calls.
    pub(crate) guessed: u64,
    /// Convolutions with a workspace whose plans the answers do not name, and the largest workspace of them.
    pub(crate) unknown: u64,
    pub(crate) largest_unknown: Bytes,
}

/// Finds the workspaces of a schedule by the sizes of the plans that the answers name.
pub(crate) fn plans(
    profile: &Profile,
    schedule: &Schedule,
    target: &Target,
    answers: &ConvolutionAnswers,
) -> RecordedPlans {
    let mut found = RecordedPlans::default();
    let names = [FORWARD_OP, BACKWARD_OP].map(|name| profile.symbol(name));
    if names == [None, None] {
        return found;
    }
    let is_call = |op: &OpId| names.contains(&Some(profile.op_symbol(*op)));
    let mut of_call: FxHashMap<OpId, Vec<(BlockId, Bytes)>> = FxHashMap::default();
    for (row, block) in schedule.blocks.iter().enumerate() {
        let Origin::Recorded(recorded) = block.origin else { continue };
        let recorded = profile.block(recorded);
        let call = profile.op_path(recorded).find(is_call);
        if let Some(call) = call.filter(|&call| ends_within(profile, recorded, call)) {
            of_call.entry(call).or_default().push((BlockId::new(row), block.size));
        }
    }
    let choice = target.cudnn_benchmark.choice();
    let mut lists: FxHashMap<(Thread, ConvolutionQuestion), FallbackId> = FxHashMap::default();
    for &call in profile.tree.preorder() {
        let Some(mut blocks) = of_call.remove(&call) else { continue };
        let thread =
            if profile.backward_node(call).is_some() { Thread::Backward } else { Thread::Program };
        for question in questions(profile, call) {
            let question = question.chosen_by(choice);
            let Some(plans) = answers.get(&question) else { continue };
            let sizes = || plans.sizes.iter().map(|&size| rounded(size));
            // The first plan, or a later one where the memory of the recorded GPU was short.
            let place = sizes().filter(|&size| size > Bytes::ZERO).find_map(|size| {
                blocks.iter().position(|&(_, recorded)| is_block_for(rounded(recorded), size))
            });
            // cuDNN answers otherwise about a device with other clocks and caches: then the workspace is what is large.
            // Only where the recording says which cuDNN the job ran with.
            let largest = || {
                profile.virtual_gpu()?;
                let at = (0..blocks.len()).max_by_key(|&at| blocks[at].1)?;
                (blocks[at].1 > LARGE && plans.first() > Bytes::ZERO).then_some(at)
            };
            found.guessed += u64::from(place.is_none() && largest().is_some());
            let Some(place) = place.or_else(largest) else { continue };
            let (block, _) = blocks.remove(place);
            let list = lists.entry((thread, question));
            let list = *list.or_insert_with(|| found.fallbacks.add(sizes()));
            found.fallbacks.assign(block, list);
        }
        if let Some(&(_, largest)) = blocks.iter().max_by_key(|(_, size)| *size) {
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

fn questions(profile: &Profile, call: OpId) -> Vec<ConvolutionQuestion> {
    let arguments = profile.arguments(call);
    if profile.op_name(call) == FORWARD_OP {
        forward_question(arguments).into_iter().collect()
    } else {
        BackwardCall::read(arguments).map_or_else(Vec::new, |call| call.questions())
    }
}
