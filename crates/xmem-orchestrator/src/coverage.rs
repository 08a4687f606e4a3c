//! The operators whose memory on CUDA is known: alike on the CPU and CUDA, claimed by a rule, or neither.
//!
//! `alike.txt` has one operator a line. Jobs made of these operators requested the same blocks on both
//! sides: recorded with PyTorch 2.11's CPU build and its CUDA build, kernels stubbed; views, factories
//! and pointwise operators of the same kind (aten/src/ATen/TensorIterator.cpp: the output and nothing
//! else) are listed with them. Every other known operator is claimed or covered by a rule.

use crate::rule::Rule;
use crate::rules::RULES;
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// The knowledge of an operator's memory on CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// CUDA requests the blocks that escape it, and nothing else.
    Alike,
    /// The rule of this name knows the difference.
    Rule(&'static str),
    /// Nothing is known: what escapes it on the CPU is kept, and CUDA may take more within it.
    Unknown,
}

/// The operators that are alike.
fn alike() -> impl Iterator<Item = &'static str> {
    include_str!("alike.txt").lines()
}

/// Every operator of a rule, with the rule.
pub(crate) fn ruled() -> impl Iterator<Item = (&'static str, &'static Rule)> {
    RULES.iter().flat_map(|&rule| {
        rule.operators.iter().chain(rule.covers).map(move |&operator| (operator, rule))
    })
}

static TABLE: LazyLock<FxHashMap<&'static str, Coverage>> = LazyLock::new(|| {
    let ruled = ruled().map(|(operator, rule)| (operator, Coverage::Rule(rule.name)));
    alike().map(|operator| (operator, Coverage::Alike)).chain(ruled).collect()
});

/// The coverage of the operator `name`, as the profiler calls it (`aten::mul`).
///
/// Autograd nodes and the engine's own work (`MulBackward0`, `torch::autograd::AccumulateGrad`,
/// `autograd::engine::…`) are alike: they are the same code on every device
/// (torch/csrc/autograd/FunctionsManual.cpp, accumulate_grad.h); the operators that they call are
/// looked up on their own. Operators of other libraries are unknown.
#[must_use]
pub fn of(name: &str) -> Coverage {
    match TABLE.get(name) {
        Some(&known) => known,
        None if is_autograd(name) => Coverage::Alike,
        None => Coverage::Unknown,
    }
}

/// Returns whether a profiler name is that of an autograd node or of the engine.
pub(crate) fn is_autograd(name: &str) -> bool {
    let engine = ["autograd::engine::", "torch::autograd::"];
    let node = name.trim_end_matches(|c: char| c.is_ascii_digit());
    engine.iter().any(|e| name.starts_with(e))
        || (!name.contains("::") && node.ends_with("Backward") && node.len() < name.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn alike_operators_are_sorted_without_repeats() {
        let rows: Vec<_> = alike().collect();
        assert_eq!(rows.windows(2).find(|w| w[0] >= w[1]), None);
        assert!(rows.iter().all(|row| !row.is_empty() && !row.contains(' ')));
    }

    #[test]
    fn no_two_rules_claim_an_operator_and_none_is_alike_and_claimed() {
        let mut owners: BTreeMap<&str, &str> = alike().map(|op| (op, "alike")).collect();
        for (operator, rule) in ruled() {
            let before = owners.insert(operator, rule.name);
            assert_eq!(before, None, "{operator} belongs to {} already", rule.name);
        }
    }

    #[test]
    fn operators_are_alike_ruled_or_unknown() {
        for (name, expected) in [
            ("aten::mul", Coverage::Alike),
            ("aten::mm", Coverage::Rule("cublas-workspace")),
            ("MulBackward0", Coverage::Alike),
            ("torch::autograd::AccumulateGrad", Coverage::Alike),
            ("autograd::engine::evaluate_function: MulBackward0", Coverage::Alike),
            ("torchvision::nms", Coverage::Unknown),
            ("aten::linalg_svd", Coverage::Unknown),
            ("MyFunctionBackward", Coverage::Unknown),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
    }
}
