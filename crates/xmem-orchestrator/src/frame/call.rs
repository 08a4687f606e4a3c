//! One operator in the hands of a rule.

use crate::frame::context::Context;
use crate::frame::draft::{Draft, Edits, Plan};
use crate::rule::{Rule, RuleId};
use crate::target::Target;
use rustc_hash::FxHashSet;
use xmem_analyzer::{Arguments, Profile};
use xmem_types::{BlockId, OpId};

/// One operator (or one annotation), the draft, and what a rule may look at.
pub(crate) struct Call<'c, 'd, 'p> {
    /// The operator.
    pub(crate) op: OpId,
    /// The job, the target, and what is known beside.
    pub(crate) cx: &'c Context<'p>,
    /// The draft; edits are credited to the rule.
    pub(crate) edits: Edits<'d, 'p>,
    without_epilogue: &'c mut FxHashSet<OpId>,
}

impl<'c, 'd, 'p> Call<'c, 'd, 'p> {
    pub(crate) fn new(
        op: OpId,
        cx: &'c Context<'p>,
        (draft, rule): (&'d mut Draft<'p>, RuleId),
        without_epilogue: &'c mut FxHashSet<OpId>,
    ) -> Self {
        Self { op, cx, edits: Edits::of(draft, rule), without_epilogue }
    }

    pub(crate) fn profile(&self) -> &'p Profile {
        self.cx.profile
    }

    pub(crate) fn target(&self) -> &'p Target {
        self.cx.target
    }

    /// The operator's name, as the profiler calls it.
    pub(crate) fn name(&self) -> &'p str {
        self.cx.profile.op_name(self.op)
    }

    /// The operator's recorded arguments.
    pub(crate) fn arguments(&self) -> &'p Arguments {
        self.cx.profile.arguments(self.op)
    }

    /// The operators inside, in program order.
    pub(crate) fn inside(&self) -> &'p [OpId] {
        self.cx.profile.tree.descendants(self.op)
    }

    /// Returns whether the operator calls itself: autocast and overloads dispatch an operator again within
    /// itself, with the arguments that count.
    pub(crate) fn calls_itself(&self) -> bool {
        let profile = self.profile();
        let symbol = profile.op_symbol(self.op);
        self.inside().iter().any(|&o| profile.op_symbol(o) == symbol)
    }

    /// The backward nodes of the operator and of the operators inside, in order of time.
    pub(crate) fn nodes(&self) -> Vec<OpId> {
        self.cx.backward.within(self.profile(), self.op)
    }

    /// Returns whether the operator runs in a backward node.
    pub(crate) fn in_backward(&self) -> bool {
        self.profile().backward_node(self.op).is_some()
    }

    /// The recorded blocks allocated within the operator, in order.
    pub(crate) fn blocks(&self) -> Vec<BlockId> {
        self.edits.blocks_in(self.op)
    }

    /// Returns whether a recorded block outlives the operator.
    pub(crate) fn escapes(&self, block: BlockId) -> bool {
        self.edits.escapes(block, self.op)
    }

    /// Returns whether another rule is switched on.
    pub(crate) fn enables(&self, rule: &Rule) -> bool {
        self.cx.enables(rule)
    }

    /// A plan of the operator's requests on CUDA in place of the CPU kernel's scratch.
    pub(crate) fn plan(&mut self) -> Plan<'_, 'd, 'p> {
        let op = self.op;
        self.edits.replace_scratch(op)
    }

    /// Says that CUDA runs a matrix product inside this operator without a bias in its epilogue.
    pub(crate) fn run_without_epilogue(&mut self, product: OpId) {
        self.without_epilogue.insert(product);
    }

    /// Returns whether an operator around this matrix product has said so.
    pub(crate) fn runs_without_epilogue(&self) -> bool {
        self.without_epilogue.contains(&self.op)
    }
}
