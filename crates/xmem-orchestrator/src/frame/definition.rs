//! The definition of a rule: what it is, and its code.

use crate::frame::call::Call;
use crate::frame::context::Context;
use crate::frame::draft::Edits;
use crate::rule::Rule;
use std::ops::Deref;
use xmem_types::{Diagnostics, OpId};

/// A rule with its code.
///
/// Each rule is one file of `src/rules`: its documentation, its definition, its code and its cases.
pub(crate) struct RuleDefinition {
    /// The rule.
    pub(crate) rule: Rule,
    /// The code.
    pub(crate) applies: Applies,
}

impl Deref for RuleDefinition {
    type Target = Rule;

    fn deref(&self) -> &Rule {
        &self.rule
    }
}

/// The way in which a rule is applied.
pub(crate) enum Applies {
    /// To the whole schedule, at its place in [`crate::passes`].
    AsPass(fn(&Context<'_>, &mut Edits<'_, '_>)),
    /// To each operator that it claims, in program order; gives the rule's state for one lowering.
    ToOperators(fn(&Context<'_>) -> Box<dyn Lowering>),
    /// To annotations that begin with these words (`Optimizer.step#`), like operators.
    ToAnnotations(&'static str, fn(&Context<'_>) -> Box<dyn Lowering>),
    /// By the code of another rule, which asks whether this one is switched on.
    Through(&'static RuleDefinition),
}

/// The code of a rule about operators, with its state from operator to operator.
pub(crate) trait Lowering {
    /// Lowers one operator.
    fn lower(&mut self, call: &mut Call<'_, '_, '_>) -> Outcome;

    /// Reports on all operators together, after the last one.
    fn finish(&self, _cx: &Context<'_>, _notes: &mut Diagnostics) {}
}

impl<F: FnMut(&mut Call<'_, '_, '_>) -> Outcome> Lowering for F {
    fn lower(&mut self, call: &mut Call<'_, '_, '_>) -> Outcome {
        self(call)
    }
}

/// The result of lowering one operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The rule has nothing to say about this call; the operators inside are looked at.
    Unclaimed,
    /// The rule has added to the operator; the operators inside are looked at.
    Done,
    /// The rule has replaced the operators inside; they are not looked at.
    ReplacedInside,
    /// The rule has replaced the operators inside and these backward nodes; none of them is looked at.
    ReplacedNodes(Vec<OpId>),
    /// CUDA runs something else, but the rule cannot tell what: the operator stays as recorded, and
    /// the answer says so.
    KeptAsRecorded(Reason),
}

impl Outcome {
    /// The outcome of a rule about the innermost call of an operator: `body` lowers it, and the operators
    /// inside are not looked at. If `body` returns `None` (shapes that were not recorded, calls for which
    /// CUDA requests the same), the blocks stay as they are.
    pub(crate) fn of_innermost<'c, 'd, 'p>(
        call: &mut Call<'c, 'd, 'p>,
        body: impl FnOnce(&mut Call<'c, 'd, 'p>) -> Option<()>,
    ) -> Self {
        if call.calls_itself() {
            return Self::Unclaimed;
        }
        // `None` is an answer, too.
        let _as_recorded = body(call);
        Self::ReplacedInside
    }
}

/// The reason for keeping an operator as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    /// The diagnostic's stable name.
    pub(crate) code: &'static str,
    /// The diagnostic's message.
    pub(crate) message: String,
}
