//! A rule: what is known to differ between the CPU and CUDA, with its source, its claims and its code.

use crate::call::Call;
use crate::context::Context;
use crate::draft::Edits;
use crate::rules::RULES;
use std::fmt;
use xmem_types::{Bytes, Diagnostics, OpId};

/// A rule of the lowering.
///
/// Each rule is one file of `src/rules`: its documentation, the operators that it claims, its code and
/// its cases.
pub struct Rule {
    /// The name, for `--explain` and for switching the rule off.
    pub name: &'static str,
    /// One line: the change from the CPU to the GPU.
    pub summary: &'static str,
    /// The evidence: PyTorch files and functions, sections of papers.
    pub source: &'static str,
    /// The operators that are handed to the rule.
    pub(crate) operators: &'static [&'static str],
    /// Operators whose memory the rule accounts for through others: parts of a claimed operator,
    /// operators around one, other names of one.
    pub(crate) covers: &'static [&'static str],
    /// The code.
    pub(crate) applies: Applies,
}

/// How a rule is applied.
pub(crate) enum Applies {
    /// To the whole schedule, at its place in [`crate::passes`].
    AsPass(fn(&Context<'_>, &mut Edits<'_, '_>)),
    /// To each operator that it claims, in program order; gives the rule's state for one lowering.
    ToOperators(fn(&Context<'_>) -> Box<dyn Lowering>),
    /// To annotations that begin with these words (`Optimizer.step#`), like operators.
    ToAnnotations(&'static str, fn(&Context<'_>) -> Box<dyn Lowering>),
    /// By the code of another rule, which asks whether this one is switched on.
    Through(&'static Rule),
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

/// The reason for keeping an operator as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    /// The diagnostic's stable name.
    pub(crate) code: &'static str,
    /// The diagnostic's message.
    pub(crate) message: String,
}

/// The id of a rule: its place in [`rules`](crate::rules()).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(u8);

impl RuleId {
    pub(crate) const fn new(index: usize) -> Self {
        Self(index as u8)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// The rule.
    #[must_use]
    pub fn rule(self) -> &'static Rule {
        RULES[self.index()]
    }

    /// The rule's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.rule().name
    }
}

impl Rule {
    /// The rule's id.
    pub(crate) fn id(&'static self) -> RuleId {
        let index = RULES.iter().position(|rule| std::ptr::eq(*rule, self));
        RuleId::new(index.expect("every rule is registered"))
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Rule {}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The effect of one rule on a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleEffect {
    /// The rule.
    pub rule: &'static Rule,
    /// Blocks that it left out, and their bytes on the CPU.
    pub dropped: (u64, Bytes),
    /// Blocks that it added, and their bytes on the GPU.
    pub added: (u64, Bytes),
    /// Blocks whose size it changed: count, bytes before, bytes after.
    pub resized: (u64, Bytes, Bytes),
    /// Blocks whose lifetime it changed, and their bytes.
    pub retimed: (u64, Bytes),
}

impl RuleEffect {
    pub(crate) const fn none(rule: &'static Rule) -> Self {
        Self {
            rule,
            dropped: (0, Bytes::ZERO),
            added: (0, Bytes::ZERO),
            resized: (0, Bytes::ZERO, Bytes::ZERO),
            retimed: (0, Bytes::ZERO),
        }
    }

    /// Whether the rule changed nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.dropped.0 == 0 && self.added.0 == 0 && self.resized.0 == 0 && self.retimed.0 == 0
    }
}
