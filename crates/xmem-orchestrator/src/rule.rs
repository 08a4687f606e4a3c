//! Rules: what is known to differ between the CPU and CUDA, with its source, and what it did.

use xmem_types::Bytes;

/// A rule of the lowering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name, for `--explain` and for switching the rule off.
    pub name: &'static str,
    /// One line: the change from the CPU to the GPU.
    pub summary: &'static str,
    /// The evidence: PyTorch files and functions, sections of papers.
    pub source: &'static str,
    /// The operators that are handed to the rule.
    pub operators: &'static [&'static str],
    /// Operators whose memory the rule accounts for through others: parts of a claimed operator,
    /// operators around one, other names of one.
    pub covers: &'static [&'static str],
}

/// The id of a rule: its place among the rules of a lowering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RuleId(u8);

impl RuleId {
    pub(crate) const fn new(index: usize) -> Self {
        Self(index as u8)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
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

    /// Returns whether the rule changed nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.dropped.0 == 0 && self.added.0 == 0 && self.resized.0 == 0 && self.retimed.0 == 0
    }
}
