//! The table of rules.

use xmem_types::Bytes;

/// A rule of the lowering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Name, for `--explain` and for switching it off.
    pub name: &'static str,
    /// One line: what changes from the CPU to the GPU.
    pub summary: &'static str,
    /// Where it is known from.
    pub source: &'static str,
}

/// What one rule did to a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleEffect {
    /// The rule.
    pub rule: &'static Rule,
    /// Blocks it left out, and their bytes on the CPU.
    pub dropped: (u64, Bytes),
    /// Blocks it added, and their bytes on the GPU.
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
}

/// Every rule, in the order in which they are applied.
#[must_use]
pub fn rules() -> &'static [Rule] {
    RULES
}

/// Names of the rules, for the code that applies them.
pub(crate) mod name {
    pub(crate) const HOST_ONLY: &str = "host-only";
    pub(crate) const LEAF_SCRATCH: &str = "leaf-scratch";
}

const RULES: &[Rule] = &[
    Rule {
        name: name::HOST_ONLY,
        summary: "memory that never reaches the GPU: initialisation temporaries, optimizer step counters, Python scalars",
        source: "torch/optim/optimizer.py `_get_scalar_dtype`; aten/src/ATen/native/TensorIterator.cpp (CPU scalars)",
    },
    Rule {
        name: name::LEAF_SCRATCH,
        summary: "scratch that a CPU kernel allocates and frees within one leaf operator",
        source: "c10/core/CPUAllocator.cpp; aten/src/ATen/native/mkldnn/IDeepRegistration.cpp",
    },
];
