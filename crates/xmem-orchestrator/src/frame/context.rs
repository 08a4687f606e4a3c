//! The context of a lowering: everything that any rule may look at.

use crate::frame::conversions::Conversions;
use crate::rule::Rule;
use crate::target::Target;
use rustc_hash::FxHashMap;
use xmem_analyzer::Profile;
use xmem_convolutions::ConvolutionAnswers;
use xmem_types::OpId;

/// The job, the target, and what is known beside: the same for all rules of one lowering.
pub(crate) struct Context<'p> {
    /// The job as recorded.
    pub(crate) profile: &'p Profile,
    /// The GPU, the PyTorch version and the what-ifs.
    pub(crate) target: &'p Target,
    /// The plans of the job's convolutions.
    pub(crate) convolutions: &'p ConvolutionAnswers,
    /// The backward nodes of each forward operator.
    pub(crate) backward: BackwardNodes,
    /// Conversions of tensors to another type.
    pub(crate) conversions: Conversions<'p>,
}

impl<'p> Context<'p> {
    pub(crate) fn new(
        profile: &'p Profile,
        target: &'p Target,
        convolutions: &'p ConvolutionAnswers,
    ) -> Self {
        let backward = BackwardNodes::of(profile);
        let conversions = Conversions::of(profile);
        Self { profile, target, convolutions, backward, conversions }
    }

    /// Returns whether the recorder gave the CPU's autocast CUDA's lists.
    pub(crate) fn has_cuda_autocast_lists(&self) -> bool {
        self.profile.recording().is_some_and(|r| r.cuda_autocast_lists)
    }

    /// Returns whether a rule is switched on.
    pub(crate) fn enables(&self, rule: &Rule) -> bool {
        self.target.disabled.is_empty() || !self.target.disabled.contains(rule.name)
    }
}

/// Backward nodes by the forward operator whose saved tensors they use.
#[derive(Debug, Default)]
pub(crate) struct BackwardNodes(FxHashMap<OpId, Vec<OpId>>);

impl BackwardNodes {
    fn of(profile: &Profile) -> Self {
        let mut nodes = Self::default();
        for (node, forward) in profile.autograd.pairs() {
            let saved_by = profile.autograd.saved_by(node).unwrap_or(forward);
            nodes.0.entry(saved_by).or_default().push(node);
        }
        nodes
    }

    /// The backward nodes of an operator and of the operators inside it, in order of time.
    pub(crate) fn within(&self, profile: &Profile, op: OpId) -> Vec<OpId> {
        let operators = std::iter::once(&op).chain(profile.tree.descendants(op));
        let mut found: Vec<OpId> =
            operators.filter_map(|op| self.0.get(op)).flatten().copied().collect();
        found.sort_unstable_by_key(|&node| (profile.op_start(node), node));
        found
    }
}
